// The list of tools with a filter, and the form of the selected tool.

import { h, fill, debounce } from "../../dom.js";
import { listAll } from "../../mcp.js";
import { badge, problem } from "../../components/widgets.js";
import { form } from "./call.js";

export async function list(container, selected) {
  const search = h("input", { type: "search", placeholder: "Filter tools", "aria-label": "Filter tools", "data-search": true });
  const names = h("ul.plain.tool-names");
  const tool = h("div.stack");
  // On a phone the list covers the screen, so it is collapsed once a tool is selected.
  const phone = matchMedia("(max-width: 760px)");
  const disclosure = h("details", { open: !(phone.matches && selected) }, h("summary", selected ? "All tools" : "Tools"), search, names);
  const adapt = () => (disclosure.open = !(phone.matches && selected));
  phone.addEventListener("change", adapt);
  fill(container, h("div.tools", h("nav.card", { "aria-label": "Tools" }, disclosure), tool));
  let tools;
  try {
    tools = await listAll("tools/list", "tools");
  } catch (error) {
    phone.removeEventListener("change", adapt);
    fill(container, problem(error, () => list(container, selected), { autoRetry: true }));
    return undefined;
  }
  const draw = () => {
    const filter = search.value.trim().toLowerCase();
    const shown = tools.filter(({ name, title = "", description = "" }) => `${name} ${title} ${description}`.toLowerCase().includes(filter));
    fill(names, shown.map(({ name, title, annotations = {} }) => h("li", h("a", { href: `#/tools/call/${encodeURIComponent(name)}`, "aria-current": name === current?.name ? "page" : null },
      h("span.break", name), annotations.destructiveHint ? badge("destructive", "bad") : null, h("span.quiet.small", title ?? "")))),
      shown.length ? null : h("li.quiet", "No matching tools."));
  };
  const current = tools.find(({ name }) => name === selected) ?? tools.find(({ name }) => name === "classify_text") ?? tools[0];
  search.addEventListener("input", debounce(draw, 60));
  draw();
  // Scrolls the list to the selected tool, but not the page.
  const link = names.querySelector("[aria-current]");
  if (link && names.scrollHeight > names.clientHeight) names.scrollTop = link.offsetTop - names.offsetTop - names.clientHeight / 3;
  if (selected && current?.name !== selected) fill(tool, problem({ message: `Tool \`${selected}\` does not exist or is not permitted.` }));
  else if (current && (selected || !phone.matches)) form(tool, current);
  return () => phone.removeEventListener("change", adapt);
}

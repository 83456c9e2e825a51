// The tools there are, and the one that was chosen.

import { h, fill, debounce } from "../../dom.js";
import { all } from "../../mcp.js";
import { badge, problem } from "../../components/parts.js";
import { form } from "./call.js";

export async function list(place, chosen) {
  const search = h("input", { type: "search", placeholder: "Filter tools", "aria-label": "Filter tools", "data-search": true });
  const names = h("ul.plain.tool-names");
  const tool = h("div.stack");
  fill(place, h("div.tools", h("nav.card", { "aria-label": "Tools" }, search, names), tool));
  let tools;
  try {
    tools = await all("tools/list", "tools");
  } catch (error) {
    fill(place, problem(error, () => list(place, chosen), { alone: true }));
    return;
  }
  const draw = () => {
    const wanted = search.value.trim().toLowerCase();
    const shown = tools.filter(({ name, title = "", description = "" }) => `${name} ${title} ${description}`.toLowerCase().includes(wanted));
    fill(names, shown.map(({ name, title, annotations = {} }) => h("li", h("a", { href: `#/tools/call/${encodeURIComponent(name)}`, "aria-current": name === current?.name ? "page" : null },
      h("span.break", name), annotations.destructiveHint ? badge("destructive", "bad") : null, h("span.quiet.small", title ?? "")))),
      shown.length ? null : h("li.quiet", "No tool is called so."));
  };
  const current = tools.find(({ name }) => name === chosen) ?? tools.find(({ name }) => name === "classify_text") ?? tools[0];
  search.addEventListener("input", debounce(draw, 60));
  draw();
  // Only the list scrolls, where it is one that does.
  const marked = names.querySelector("[aria-current]");
  if (marked && names.scrollHeight > names.clientHeight) names.scrollTop = marked.offsetTop - names.offsetTop - names.clientHeight / 3;
  if (chosen && current?.name !== chosen) fill(tool, problem({ message: `There is no tool \`${chosen}\` here, or this page may not use it.` }));
  else if (current) form(tool, current);
}

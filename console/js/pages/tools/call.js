// One tool: its schema as a form, the call, and both sides of it as they are on the wire.

import { h, fill } from "../../dom.js";
import { observe, request } from "../../mcp.js";
import { badge, json, problem } from "../../components/parts.js";
import { dialog } from "../../components/dialog.js";
import { milliseconds } from "../../format.js";
import { lacking } from "../../allowed.js";
import { fields } from "./fields.js";
import { ticked } from "../../components/said.js";

export function form(place, tool) {
  const { annotations = {}, inputSchema = {} } = tool;
  const inputs = fields(inputSchema);
  const raw = h("textarea.code", { rows: "8", "aria-label": "Arguments as JSON", spellcheck: "false" });
  const wrong = h("p.field-error", { role: "alert" });
  const written = h("input", { type: "checkbox" });
  const outcome = h("div.stack", { "aria-live": "polite" });
  const stop = h("button", { type: "button", hidden: true, onclick: () => running?.abort() }, "Cancel");
  const go = h(annotations.destructiveHint ? "button.danger" : "button.main", { type: "submit" }, "Call");
  const missing = lacking(tool, `\`${tool.name}\``);
  let running;

  written.addEventListener("change", () => {
    if (written.checked) raw.value = JSON.stringify(inputs.value(), null, 2);
    body.hidden = written.checked;
    raw.hidden = !written.checked;
  });
  raw.hidden = true;
  const body = h("div.stack", inputs.elements.length ? inputs.elements : h("p.quiet", "It takes no arguments."));
  const card = h("form.card.stack", { onsubmit: submit, novalidate: true },
    h("header", h("h2.break", tool.name), annotations.readOnlyHint ? badge("reads only", "good") : null, annotations.destructiveHint ? badge("destructive", "bad") : null),
    h("p.quiet.break", ticked(tool.description ?? "")),
    missing ? h("p.quiet", ticked(missing)) : null,
    body, raw, wrong,
    missing ? null : h("div.row", go, stop, h("label.inline", written, "Write the arguments as JSON")),
    h("details", h("summary", "Schema"), json(inputSchema)));
  fill(place, card, outcome);

  async function submit(event) {
    event.preventDefault();
    if (missing) return;
    fill(wrong);
    let args;
    try {
      args = written.checked ? JSON.parse(raw.value || "{}") : inputs.read();
    } catch (error) {
      fill(wrong, ticked(error.message));
      return;
    }
    if (annotations.destructiveHint && !(await dialog({ title: `Call ${tool.name}?`, body: [h("p", "It may change or remove things, and that cannot be undone."), json(args)], confirm: "Call it", danger: true }))) return;
    await send(args);
  }

  async function send(args) {
    running = new AbortController();
    go.disabled = true;
    stop.hidden = false;
    const progress = h("p.quiet", "Calling…");
    fill(outcome, h("div.card", progress));
    let exchange;
    const forget = observe((seen) => seen.request.params?.name === tool.name && (exchange = seen));
    try {
      const result = await request("tools/call", { name: tool.name, arguments: args }, { signal: running.signal, onprogress: (told) => (progress.textContent = told.message ?? `${told.progress}${told.total ? ` of ${told.total}` : ""}`) });
      fill(outcome, answered(result), wire(exchange));
    } catch (error) {
      fill(outcome, problem(error), exchange ? wire(exchange) : null);
    } finally {
      forget();
      go.disabled = false;
      stop.hidden = true;
    }
  }
}

function answered(result) {
  const content = result.structuredContent ?? result.content;
  const failed = result.isError || result.structuredContent?.success === false;
  return h("section.card", h("header", h("h2", "Result"), badge(failed ? "the tool says it failed" : "ok", failed ? "bad" : "good")),
    (result.content ?? []).some(({ type }) => type !== "text") ? h("p.quiet.small", "It has parts that are not text; they are below as they came.") : null,
    json(content));
}

function wire({ request: sent, response, status, milliseconds: took }) {
  return h("section.card", h("header", h("h2", "On the wire"), badge(`HTTP ${status || "–"}`), h("span.quiet.small", milliseconds(took))),
    h("div.grid.two", h("div", h("h3", "Request"), json(sent)), h("div", h("h3", "Response"), json(response ?? null))));
}

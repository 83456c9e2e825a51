// The form of a tool, its result, and the raw request and response.

import { h, fill, submitOnEnter } from "../../dom.js";
import { observe, request } from "../../mcp.js";
import { badge, json, problem } from "../../components/widgets.js";
import { dialog } from "../../components/dialog.js";
import { milliseconds } from "../../format.js";
import { denialReason } from "../../permissions.js";
import { fields } from "./fields.js";
import { inlineCode } from "../../components/inline-code.js";

export function form(container, tool) {
  const { annotations = {}, inputSchema = {} } = tool;
  const inputs = fields(inputSchema);
  const raw = h("textarea.code", { rows: "8", "aria-label": "Arguments as JSON", spellcheck: "false", dataset: { multiline: "" } });
  const formError = h("p.field-error", { role: "alert" });
  const asJson = h("input", { type: "checkbox" });
  const outcome = h("div.stack", { "aria-live": "polite" });
  const cancelButton = h("button", { type: "button", hidden: true, onclick: () => running?.abort() }, "Cancel");
  const callButton = h(annotations.destructiveHint ? "button.danger" : "button.main", { type: "submit" }, "Call");
  const denied = denialReason(tool, `\`${tool.name}\``);
  let running;

  asJson.addEventListener("change", () => {
    if (asJson.checked) raw.value = JSON.stringify(inputs.value(), null, 2);
    body.hidden = asJson.checked;
    raw.hidden = !asJson.checked;
  });
  raw.hidden = true;
  const body = h("div.stack", inputs.elements.length ? inputs.elements : h("p.quiet", "No arguments."));
  const card = h("form.card.stack", { onsubmit: submit, novalidate: true },
    h("header", h("h2.break", tool.name), annotations.readOnlyHint ? badge("read-only", "good") : null, annotations.destructiveHint ? badge("destructive", "bad") : null),
    h("p.quiet.break", inlineCode(tool.description ?? "")),
    denied ? h("p.quiet", inlineCode(denied)) : null,
    body, raw, formError,
    denied ? null : h("div.row", callButton, cancelButton, h("label.inline", asJson, "Edit as JSON")),
    h("details", h("summary", "Schema"), json(inputSchema)));
  for (const field of card.querySelectorAll("textarea")) submitOnEnter(field, () => card.requestSubmit(), { multiline: field.dataset.multiline !== undefined });
  fill(container, card, outcome);

  async function submit(event) {
    event.preventDefault();
    if (denied) return;
    fill(formError);
    let args;
    try {
      args = asJson.checked ? JSON.parse(raw.value || "{}") : inputs.read();
    } catch (error) {
      fill(formError, inlineCode(error.message));
      return;
    }
    if (annotations.destructiveHint && !(await dialog({ title: `Call ${tool.name}?`, body: [h("p", "This tool can modify or delete data. This cannot be undone."), json(args)], confirm: "Call", danger: true }))) return;
    await send(args);
  }

  async function send(args) {
    running = new AbortController();
    callButton.disabled = true;
    cancelButton.hidden = false;
    const progress = h("p.quiet", "Calling…");
    fill(outcome, h("div.card", progress));
    let exchange;
    const stopObserving = observe((observed) => observed.request.params?.name === tool.name && (exchange = observed));
    try {
      const result = await request("tools/call", { name: tool.name, arguments: args }, { signal: running.signal, onprogress: (update) => (progress.textContent = update.message ?? `${update.progress}${update.total ? ` of ${update.total}` : ""}`) });
      fill(outcome, renderResult(result), renderExchange(exchange));
    } catch (error) {
      fill(outcome, problem(error), exchange ? renderExchange(exchange) : null);
    } finally {
      stopObserving();
      callButton.disabled = false;
      cancelButton.hidden = true;
    }
  }
}

function renderResult(result) {
  const content = result.structuredContent ?? result.content;
  const failed = result.isError || result.structuredContent?.success === false;
  return h("section.card", h("header", h("h2", "Result"), badge(failed ? "failed" : "ok", failed ? "bad" : "good")),
    (result.content ?? []).some(({ type }) => type !== "text") ? h("p.quiet.small", "The result includes content that is not text, shown as JSON.") : null,
    json(content));
}

function renderExchange({ request: sent, response, status, milliseconds: duration }) {
  return h("section.card", h("header", h("h2", "HTTP exchange"), badge(`HTTP ${status || "–"}`), h("span.quiet.small", milliseconds(duration))),
    h("div.grid.two", h("div", h("h3", "Request"), json(sent)), h("div", h("h3", "Response"), json(response ?? null))));
}

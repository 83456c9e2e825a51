// Recent routing decisions: category, model, outcome, latency, tokens and cost of each prompt.

import { h, fill } from "../../dom.js";
import { readResource, token } from "../../mcp.js";
import { poll } from "../../connection.js";
import { loadPermissions } from "../../permissions.js";
import { badge, copyable, empty, json, problem } from "../../components/widgets.js";
import { inlineCode } from "../../components/inline-code.js";
import { methodName } from "../../classification.js";
import { dollars, milliseconds, number, percent, relativeTime } from "../../format.js";

/** In milliseconds. */
const POLL_INTERVAL = 2_000;

/** Descriptions of the reasons of the router. */
const REASONS = {
  requested: "requested by the caller", category: "model of the category", documents: "answered from documents", fallback: "fallback", default: "default model", cache: "response cache",
};

export function decisions(container) {
  const body = h("tbody");
  const table = h("div.card.table.decisions-region", { tabindex: "0", role: "region", "aria-label": "Decisions" },
    h("table.decisions", h("thead", h("tr", ["When", "Category", "Model", "Result", "Time", "Tokens", "Cost"].map((name, index) => h(index > 3 ? "th.n" : "th", { scope: "col" }, name)))), body));
  let emptyState;
  const expanded = new Set();
  let drawnVersion = "";
  fill(container, h("p.quiet", "Loading…"));
  return poll(async () => {
    const { decisions: list } = await readResource("corbie://decisions", { quiet: true });
    const version = JSON.stringify([list.map(({ id }) => id), list.find(({ outcome }) => !outcome)]);
    if (version === drawnVersion) return;
    if (!list.length) emptyState ??= noDecisions((await loadPermissions()).denialReason("chat_completion", "Sending prompts"));
    drawnVersion = version;
    fill(body, list.map((record) => renderRows(record, expanded)));
    fill(container, list.length ? table : emptyState);
  }, POLL_INTERVAL, (error) => fill(container, problem(error)));
}

/** The empty state. `denied` is the reason why this client cannot send a prompt, if so. */
function noDecisions(denied) {
  const bearer = token.get() ? " -H 'authorization: Bearer YOUR-TOKEN'" : "";
  return empty("No decisions yet", "Each routed prompt is listed here with the reason for its model.",
    denied ? h("p", inlineCode(denied)) : ["Send a prompt with any client of the OpenAI API:",
      copyable(`curl ${location.origin}/v1/chat/completions${bearer} -H 'content-type: application/json' -d '{"model": "auto", "messages": [{"role": "user", "content": "Why is the sky blue?"}]}'`)],
    h("p", h("a", { href: "#/routing/explain" }, "Preview the route of a prompt without sending it")));
}

function renderRows(record, expanded) {
  const { classified, attempts = [], usage } = record;
  const details = h("tr.more", { hidden: !expanded.has(record.id) }, h("td", { colspan: "7" }, h("div.detail", renderDetails(record))));
  const toggle = () => {
    details.hidden = !details.hidden;
    button.setAttribute("aria-expanded", String(!details.hidden));
    details.hidden ? expanded.delete(record.id) : expanded.add(record.id);
  };
  // A click anywhere on the row expands it; with the keyboard, the button does.
  const button = h("button.plain.opens", { "aria-expanded": String(expanded.has(record.id)), title: "Show details" }, relativeTime(record.at_ms));
  const isAnswered = record.outcome === "answered";
  return [
    h("tr.opens", { onclick: toggle }, h("td", button),
      h("td", classified ? [classified.category, h("div.quiet.small.once", `${percent(classified.confidence)} confidence`)] : h("span.quiet", "not classified")),
      h("td.whole", modelName(record), h("div.quiet.small", record.rule ? `rule ${record.rule}` : reasonText(record))),
      h("td", badge(record.outcome ?? "running", isAnswered ? "good" : record.outcome ? "bad" : "accent"), attempts.length > 1 ? h("div.quiet.small", `${attempts.length} attempts`) : null),
      h("td.n", milliseconds(record.latency_ms)),
      h("td.n", usage ? number(usage.prompt + usage.completion) : "–"),
      h("td.n", record.cost === undefined || record.cost === null ? "–" : dollars(record.cost))),
    details,
  ];
}

const reasonText = ({ reason, requested_model: requested }) => REASONS[reason || (requested ? "requested" : "")] ?? reason;

/** The model that answered; if none did, the last one that was tried, or the one the caller requested. */
function modelName({ provider, model, attempts = [], requested_model: requested, unavailable_models: unavailable = [], candidates = [] }) {
  if (model) return `${provider}/${model}`;
  const last = attempts.at(-1);
  if (last) return `${last.provider}/${last.model}`;
  return requested ?? unavailable[0] ?? candidates[0] ?? "–";
}

function renderDetails(record) {
  const { classified, attempts = [], usage } = record;
  return h("div.stack",
    h("dl.facts",
      fact("Category", classified ? `${classified.category} · ${percent(classified.confidence)} confidence · ${milliseconds(classified.duration_ms)}${classified.used_fallback ? " · fallback category: low confidence" : ""}` : record.requested_model ? "not classified: the caller requested a model" : "not classified"),
      classified ? fact("Classified by", methodName(classified.method)) : null,
      record.requested_model ? fact("Requested model", record.requested_model) : null,
      record.unavailable_models?.length ? fact("Unavailable models", record.unavailable_models.join(", ")) : null,
      fact("Reasoning", record.use_reasoning ? "yes" : "no"),
      record.error ? fact("Error", record.error) : null,
      record.caller ? fact("Caller", record.caller) : null,
      fact("Candidates", (record.candidates ?? []).join(", ") || "none"),
      fact("Tokens", usage ? `${number(usage.prompt)} input, ${number(usage.completion)} output${usage.cached ? `, ${number(usage.cached)} cached` : ""}${usage.reasoning ? `, ${number(usage.reasoning)} reasoning` : ""}` : "not reported")),
    attempts.length ? h("div.table", { tabindex: "0", role: "region", "aria-label": "Attempts" }, h("table", h("thead", h("tr", ["Attempt", "Requests", "Time", "Result"].map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", attempts.map((attempt) => h("tr", h("td.whole", `${attempt.provider}/${attempt.model}`), h("td", attempt.requests), h("td", milliseconds(attempt.duration_ms)), h("td", badge(attempt.result, attempt.result === "ok" ? "good" : "bad"))))))) : null,
    h("details", h("summary", "Raw record"), json(record)));
}

const fact = (name, value) => [h("dt", name), h("dd.break", value)];

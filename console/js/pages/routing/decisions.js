// Recent routing decisions: category, model, outcome, latency, tokens and cost of each prompt.

import { h, fill } from "../../dom.js";
import { readResource, token } from "../../mcp.js";
import { poll } from "../../connection.js";
import { loadPermissions } from "../../permissions.js";
import { badge, copyable, empty, json, problem } from "../../components/widgets.js";
import { inlineCode } from "../../components/inline-code.js";
import { dollars, milliseconds, number, percent, relativeTime } from "../../format.js";

/** In milliseconds. */
const POLL_INTERVAL = 2_000;

/** Descriptions of the reasons of the router. */
const REASONS = {
  requested: "named by the caller", category: "the category's own model", documents: "the documents had a say", fallback: "a fallback", default: "the default",
};

export function decisions(container) {
  const body = h("tbody");
  const table = h("div.card.table.decisions-region", { tabindex: "0", role: "region", "aria-label": "Decisions" },
    h("table.decisions", h("thead", h("tr", ["When", "Category", "Asked", "Result", "Time", "Tokens", "Cost"].map((name, index) => h(index > 3 ? "th.n" : "th", { scope: "col" }, name)))), body));
  let emptyState;
  const expanded = new Set();
  let drawnVersion = "";
  fill(container, h("p.quiet", "One moment…"));
  return poll(async () => {
    const { decisions: list } = await readResource("corbie://decisions", { quiet: true });
    const version = JSON.stringify([list.map(({ id }) => id), list.find(({ outcome }) => !outcome)]);
    if (version === drawnVersion) return;
    if (!list.length) emptyState ??= noDecisions((await loadPermissions()).denialReason("chat_completion", "Asking a model"));
    drawnVersion = version;
    fill(body, list.map((record) => renderRows(record, expanded)));
    fill(container, list.length ? table : emptyState);
  }, POLL_INTERVAL, (error) => fill(container, problem(error)));
}

/** The empty state. `denied` is the reason why this client cannot send a prompt, if so. */
function noDecisions(denied) {
  const bearer = token.get() ? " -H 'authorization: Bearer YOUR-TOKEN'" : "";
  return empty("No prompt has been routed yet", "Each prompt shows here, with why it went where it went.",
    denied ? h("p", inlineCode(denied)) : ["Ask something, from any program that speaks OpenAI's API:",
      copyable(`curl ${location.origin}/v1/chat/completions${bearer} -H 'content-type: application/json' -d '{"model": "auto", "messages": [{"role": "user", "content": "Why is the sky blue?"}]}'`)],
    h("p", h("a", { href: "#/routing/explain" }, denied ? "See where a prompt would go, without sending it." : "Or see where a prompt would go, without sending it.")));
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
  const button = h("button.plain.opens", { "aria-expanded": String(expanded.has(record.id)), title: "Show why" }, relativeTime(record.at_ms));
  const isAnswered = record.outcome === "answered";
  return [
    h("tr.opens", { onclick: toggle }, h("td", button),
      h("td", classified ? [classified.category, h("div.quiet.small.once", `${percent(classified.confidence)} · ${classified.method}`)] : h("span.quiet", "not looked at")),
      h("td.whole", record.model ? `${record.provider}/${record.model}` : "–", h("div.quiet.small", record.rule ? `rule ${record.rule}` : REASONS[record.reason] ?? record.reason)),
      h("td", badge(record.outcome ?? "running", isAnswered ? "good" : record.outcome ? "bad" : "accent"), attempts.length > 1 ? h("div.quiet.small", `${attempts.length} asked`) : null),
      h("td.n", milliseconds(record.latency_ms)),
      h("td.n", usage ? number(usage.prompt + usage.completion) : "–"),
      h("td.n", record.cost === undefined || record.cost === null ? "–" : dollars(record.cost))),
    details,
  ];
}

function renderDetails(record) {
  const { classified, attempts = [], usage } = record;
  return h("div.stack",
    h("dl.facts",
      fact("Sorted", classified ? `as ${classified.category}, ${percent(classified.confidence)} sure, in ${milliseconds(classified.duration_ms)}, by ${classified.method}${classified.used_fallback ? "; unsure, so it fell back" : ""}` : "the caller named the model"),
      fact("Reasoning", record.use_reasoning ? "yes" : "no"),
      record.error ? fact("Failed", record.error) : null,
      record.caller ? fact("Caller", record.caller) : null,
      fact("Candidates", (record.candidates ?? []).join(", ") || "none"),
      fact("Tokens", usage ? `${number(usage.prompt)} in, ${number(usage.completion)} out${usage.cached ? `, ${number(usage.cached)} cached` : ""}${usage.reasoning ? `, ${number(usage.reasoning)} for reasoning` : ""}` : "not told")),
    attempts.length ? h("div.table", { tabindex: "0", role: "region", "aria-label": "Attempts" }, h("table", h("thead", h("tr", ["Attempt", "Tries", "Time", "Result"].map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", attempts.map((attempt) => h("tr", h("td.whole", `${attempt.provider}/${attempt.model}`), h("td", attempt.requests), h("td", milliseconds(attempt.duration_ms)), h("td", badge(attempt.result, attempt.result === "ok" ? "good" : "bad"))))))) : null,
    h("details", h("summary", "As the server keeps it"), json(record)));
}

const fact = (name, value) => [h("dt", name), h("dd.break", value)];

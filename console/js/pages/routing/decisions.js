// The last prompts, as they come: what each was taken for, who was asked, what it took and what it cost.

import { h, fill } from "../../dom.js";
import { resource, token } from "../../mcp.js";
import { poll } from "../../connection.js";
import { allowed } from "../../allowed.js";
import { badge, copyable, empty, json, problem } from "../../components/parts.js";
import { ticked } from "../../components/said.js";
import { dollars, milliseconds, number, percent, when } from "../../format.js";

const EVERY = 2_000;

/** What the router says of why a model was asked, in words. */
const WHY = {
  requested: "named by the caller", category: "the category's own model", documents: "the documents had a say", fallback: "a fallback", default: "the default",
};

export function decisions(place) {
  const body = h("tbody");
  const table = h("div.card.table.decisions-region", { tabindex: "0", role: "region", "aria-label": "Decisions" },
    h("table.decisions", h("thead", h("tr", ["When", "Category", "Asked", "Result", "Time", "Tokens", "Cost"].map((name, at) => h(at > 3 ? "th.n" : "th", { scope: "col" }, name)))), body));
  let none;
  const open = new Set();
  let drawn = "";
  fill(place, h("p.quiet", "One moment…"));
  return poll(async () => {
    const { decisions: list } = await resource("corbie://decisions", { quiet: true });
    const now = JSON.stringify([list.map(({ id }) => id), list.find(({ outcome }) => !outcome)]);
    if (now === drawn) return;
    if (!list.length) none ??= nothing((await allowed()).lacks("chat_completion", "Asking a model"));
    drawn = now;
    fill(body, list.map((record) => rows(record, open)));
    fill(place, list.length ? table : none);
  }, EVERY, (error) => fill(place, problem(error)));
}

/** What to do where nothing was asked yet; `lacking` is what this page, and a program like it, is missing to ask. */
function nothing(lacking) {
  const bearer = token.get() ? " -H 'authorization: Bearer YOUR-TOKEN'" : "";
  return empty("No prompt has been routed yet", "Each prompt shows here, with why it went where it went.",
    lacking ? h("p", ticked(lacking)) : ["Ask something, from any program that speaks OpenAI's API:",
      copyable(`curl ${location.origin}/v1/chat/completions${bearer} -H 'content-type: application/json' -d '{"model": "auto", "messages": [{"role": "user", "content": "Why is the sky blue?"}]}'`)],
    h("p", h("a", { href: "#/routing/explain" }, lacking ? "See where a prompt would go, without sending it." : "Or see where a prompt would go, without sending it.")));
}

function rows(record, open) {
  const { classified, attempts = [], usage } = record;
  const more = h("tr.more", { hidden: !open.has(record.id) }, h("td", { colspan: "7" }, h("div.detail", detail(record))));
  const turn = () => {
    more.hidden = !more.hidden;
    button.setAttribute("aria-expanded", String(!more.hidden));
    more.hidden ? open.delete(record.id) : open.add(record.id);
  };
  // The whole row opens it for a pointer; for the keyboard it is the button.
  const button = h("button.plain.opens", { "aria-expanded": String(open.has(record.id)), title: "Show why" }, when(record.at_ms));
  const good = record.outcome === "answered";
  return [
    h("tr.opens", { onclick: turn }, h("td", button),
      h("td", classified ? [classified.category, h("div.quiet.small.once", `${percent(classified.confidence)} · ${classified.method}`)] : h("span.quiet", "not looked at")),
      h("td.whole", record.model ? `${record.provider}/${record.model}` : "–", h("div.quiet.small", record.rule ? `rule ${record.rule}` : WHY[record.reason] ?? record.reason)),
      h("td", badge(record.outcome ?? "running", good ? "good" : record.outcome ? "bad" : "accent"), attempts.length > 1 ? h("div.quiet.small", `${attempts.length} asked`) : null),
      h("td.n", milliseconds(record.latency_ms)),
      h("td.n", usage ? number(usage.prompt + usage.completion) : "–"),
      h("td.n", record.cost === undefined || record.cost === null ? "–" : dollars(record.cost))),
    more,
  ];
}

function detail(record) {
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

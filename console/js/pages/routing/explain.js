// Where a prompt would go, without sending it to anybody.

import { h, fill } from "../../dom.js";
import { call } from "../../mcp.js";
import { badge, bars, empty, problem } from "../../components/parts.js";
import { dollars, percent } from "../../format.js";

const EXAMPLES = ["Why is the sky blue?", "Integrate x² from 0 to 3", "Who was the last tsar of Russia?", "My laptop will not wake from sleep"];

export function explain(place) {
  const prompt = h("textarea", { name: "prompt", rows: "4", required: true, "data-search": true, placeholder: "A prompt, as one would send it" });
  const model = h("input", { name: "model", placeholder: "auto", autocomplete: "off", spellcheck: "false" });
  const answer = h("div.stack", { "aria-live": "polite" }, empty("No model is asked", "The prompt is sorted on this machine; you see who would be asked, in which order, and what it would cost."));
  const form = h("form.card.stack", { onsubmit: submit },
    h("label", "Prompt", prompt),
    h("div.row", EXAMPLES.map((text) => h("button", { type: "button", onclick: () => ((prompt.value = text), submit()) }, text))),
    h("label", "Model", h("span.hint", "Left empty, the prompt decides."), model),
    h("div.row", h("button.main", { type: "submit" }, "Explain")));
  let asking;
  async function submit(event) {
    event?.preventDefault();
    if (!prompt.value.trim()) return prompt.focus();
    asking?.abort();
    asking = new AbortController();
    try {
      const told = await call("explain_route", { prompt: prompt.value, ...(model.value.trim() ? { model: model.value.trim() } : {}) }, { signal: asking.signal });
      fill(answer, ...said(told, await nobody(told)));
    } catch (error) {
      if (error.kind !== "cancelled") fill(answer, problem(error, () => submit()));
    }
  }
  prompt.addEventListener("keydown", (event) => event.key === "Enter" && (event.ctrlKey || event.metaKey) && submit(event));
  fill(place, h("div.grid.two.explain", form, answer));
}

/** What is said where nobody would be asked: one who has providers needs another model, and who has none a provider. */
async function nobody({ candidates = [], unavailable_models: missing = [] }) {
  if (candidates.length) return undefined;
  const { providers = [] } = await call("list_providers", {}, { quiet: true }).catch(() => ({}));
  const there = (text) => h("a", { href: "#/routing/providers" }, text);
  if (!providers.length) return h("p", "Nobody: there is no provider yet. ", there("How to add one"), ".");
  return h("p.break", "Nobody: no provider serves ", missing.length ? missing.map((name, at) => [at ? ", " : "", h("code", name)]) : "such a model", ". The models there are stand under ", there("Providers"), "; the name has to be one of theirs.");
}

function said(told, instead) {
  const candidates = told.candidates ?? [];
  return [
    h("section.card", h("header", h("h2", told.category ?? "Not sorted"), told.confidence === undefined ? null : badge(`${percent(told.confidence)} sure`, "accent"), told.method ? badge(told.method) : null, told.use_reasoning ? badge("reasons first", "warn") : null, told.used_fallback ? badge("unsure, fell back", "warn") : null),
      told.probabilities ? bars(told.probabilities.slice(0, 6).map(({ category, score }) => ({ name: category, value: score }))) : null,
      told.category === undefined && told.unavailable_models?.length ? h("p.quiet.small", "The model was named, so the prompt was not looked at.") : null,
      told.entropy === undefined ? null : h("p.quiet.small", `Undecided by ${told.entropy.toFixed(2)} bits.`)),
    told.documents ? documents(told.documents) : null,
    h("section.card", h("h2", "Who would be asked"),
      candidates.length
        ? h("ol.candidates", candidates.map((candidate) => h("li", h("strong.break", `${candidate.provider}/${candidate.model}`), " ", badge(candidate.rule ? `rule ${candidate.rule}` : candidate.reason), candidate.circuit_open ? badge("circuit open", "warn") : null, price(candidate))))
        : instead,
      told.unavailable_models?.length && candidates.length ? h("p.quiet.small.break", `Nobody serves: ${told.unavailable_models.join(", ")}`) : null),
    told.system_prompt ? h("section.card", h("h2", "What it would be told first"), h("pre", { tabindex: "0" }, told.system_prompt)) : null,
  ];
}

/** What a million tokens cost, where that is known. */
const price = ({ price: told }) => (told ? h("div.quiet.small", `a million tokens: ${dollars(told.input ?? told.prompt)} in, ${dollars(told.output ?? told.completion)} out`) : null);

const VERDICTS = { answered: "The documents answer it.", unsure: "The documents may answer it.", unanswered: "The documents say nothing about it." };

function documents(told) {
  return h("section.card", h("h2", "What the documents know"), h("p", VERDICTS[told.verdict] ?? told.verdict, ` The best passage is ${percent(told.relevance)} relevant.`),
    told.sources?.length ? h("ul", told.sources.map((source) => h("li.break", source))) : null);
}

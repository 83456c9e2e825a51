// Explains the route of a prompt without sending it to a provider.

import { h, fill } from "../../dom.js";
import { call } from "../../mcp.js";
import { badge, bars, empty, problem } from "../../components/widgets.js";
import { dollars, percent } from "../../format.js";

const EXAMPLES = ["Why is the sky blue?", "Integrate x² from 0 to 3", "Who was the last tsar of Russia?", "My laptop will not wake from sleep"];

export function explain(container) {
  const prompt = h("textarea", { name: "prompt", rows: "4", required: true, "data-search": true, placeholder: "A prompt, as one would send it" });
  const model = h("input", { name: "model", placeholder: "auto", autocomplete: "off", spellcheck: "false" });
  const answer = h("div.stack", { "aria-live": "polite" }, empty("No model is asked", "The prompt is sorted on this machine; you see who would be asked, in which order, and what it would cost."));
  const form = h("form.card.stack", { onsubmit: submit },
    h("label", "Prompt", prompt),
    h("div.row", EXAMPLES.map((text) => h("button", { type: "button", onclick: () => ((prompt.value = text), submit()) }, text))),
    h("label", "Model", h("span.hint", "Left empty, the prompt decides."), model),
    h("div.row", h("button.main", { type: "submit" }, "Explain")));
  let running;
  async function submit(event) {
    event?.preventDefault();
    if (!prompt.value.trim()) return prompt.focus();
    running?.abort();
    running = new AbortController();
    try {
      const route = await call("explain_route", { prompt: prompt.value, ...(model.value.trim() ? { model: model.value.trim() } : {}) }, { signal: running.signal });
      fill(answer, ...renderRoute(route, await explainNoCandidates(route)));
    } catch (error) {
      if (error.kind !== "cancelled") fill(answer, problem(error, () => submit()));
    }
  }
  prompt.addEventListener("keydown", (event) => event.key === "Enter" && (event.ctrlKey || event.metaKey) && submit(event));
  fill(container, h("div.grid.two.explain", form, answer));
}

/** The message for a route without candidates: no provider is configured, or none has the model. */
async function explainNoCandidates({ candidates = [], unavailable_models: unavailable = [] }) {
  if (candidates.length) return undefined;
  const { providers = [] } = await call("list_providers", {}, { quiet: true }).catch(() => ({}));
  const link = (text) => h("a", { href: "#/routing/providers" }, text);
  if (!providers.length) return h("p", "Nobody: there is no provider yet. ", link("How to add one"), ".");
  return h("p.break", "Nobody: no provider serves ", unavailable.length ? unavailable.map((name, index) => [index ? ", " : "", h("code", name)]) : "such a model", ". The models there are stand under ", link("Providers"), "; the name has to be one of theirs.");
}

function renderRoute(route, noCandidates) {
  const candidates = route.candidates ?? [];
  return [
    h("section.card", h("header", h("h2", route.category ?? "Not sorted"), route.confidence === undefined ? null : badge(`${percent(route.confidence)} sure`, "accent"), route.method ? badge(route.method) : null, route.use_reasoning ? badge("reasons first", "warn") : null, route.used_fallback ? badge("unsure, fell back", "warn") : null),
      route.probabilities ? bars(route.probabilities.slice(0, 6).map(({ category, score }) => ({ name: category, value: score }))) : null,
      route.category === undefined && route.unavailable_models?.length ? h("p.quiet.small", "The model was named, so the prompt was not looked at.") : null,
      route.entropy === undefined ? null : h("p.quiet.small", `Undecided by ${route.entropy.toFixed(2)} bits.`)),
    route.documents ? renderDocuments(route.documents) : null,
    h("section.card", h("h2", "Who would be asked"),
      candidates.length
        ? h("ol.candidates", candidates.map((candidate) => h("li", h("strong.break", `${candidate.provider}/${candidate.model}`), " ", badge(candidate.rule ? `rule ${candidate.rule}` : candidate.reason), candidate.circuit_open ? badge("circuit open", "warn") : null, price(candidate))))
        : noCandidates,
      route.unavailable_models?.length && candidates.length ? h("p.quiet.small.break", `Nobody serves: ${route.unavailable_models.join(", ")}`) : null),
    route.system_prompt ? h("section.card", h("h2", "What it would be told first"), h("pre", { tabindex: "0" }, route.system_prompt)) : null,
  ];
}

/** The price per million tokens, if known. */
const price = ({ price: perMillion }) => (perMillion ? h("div.quiet.small", `a million tokens: ${dollars(perMillion.input ?? perMillion.prompt)} in, ${dollars(perMillion.output ?? perMillion.completion)} out`) : null);

const VERDICTS = { answered: "The documents answer it.", unsure: "The documents may answer it.", unanswered: "The documents say nothing about it." };

function renderDocuments(verdict) {
  return h("section.card", h("h2", "What the documents know"), h("p", VERDICTS[verdict.verdict] ?? verdict.verdict, ` The best passage is ${percent(verdict.relevance)} relevant.`),
    verdict.sources?.length ? h("ul", verdict.sources.map((source) => h("li.break", source))) : null);
}

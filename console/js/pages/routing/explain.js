// Explains the route of a prompt without sending it to a provider.

import { h, fill, submitOnEnter } from "../../dom.js";
import { call } from "../../mcp.js";
import { badge, bars, empty, problem } from "../../components/widgets.js";
import { dollars, percent } from "../../format.js";
import { describeEntropy, methodName } from "../../classification.js";

const EXAMPLES = ["Why is the sky blue?", "Integrate x² from 0 to 3", "Who was the last tsar of Russia?", "My laptop will not wake from sleep"];

export function explain(container) {
  const prompt = h("textarea", { name: "prompt", rows: "4", required: true, "data-search": true, placeholder: "Enter a prompt (Shift+Enter for a new line)" });
  const model = h("input", { name: "model", placeholder: "auto", autocomplete: "off", spellcheck: "false" });
  const answer = h("div.stack", { "aria-live": "polite" }, empty("Preview a route", "The prompt is classified locally and not sent to a provider. You see the candidate models in order, with prices."));
  const form = h("form.card.stack", { onsubmit: submit },
    h("label", "Prompt", prompt),
    h("div.row", EXAMPLES.map((text) => h("button.sample", { type: "button", onclick: () => ((prompt.value = text), submit()) }, text))),
    h("label", "Model", h("span.hint", "Leave empty to route by category."), model),
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
  submitOnEnter(prompt, submit);
  fill(container, h("div.grid.two.explain", form, answer));
}

/** The message for a route without candidates: no provider is configured, or none has the model. */
async function explainNoCandidates({ candidates = [], unavailable_models: unavailable = [] }) {
  if (candidates.length) return undefined;
  const { providers = [] } = await call("list_providers", {}, { quiet: true }).catch(() => ({}));
  const link = (text) => h("a", { href: "#/routing/providers" }, text);
  if (!providers.length) return h("p", "No provider is configured. ", link("How to add one"), ".");
  return h("p.break", "No provider offers ", unavailable.length ? unavailable.map((name, index) => [index ? ", " : "", h("code", name)]) : "this model", ". Available models are listed under ", link("Providers"), ".");
}

function renderRoute(route, noCandidates) {
  const candidates = route.candidates ?? [];
  return [
    h("section.card", h("header", h("h2", route.category ?? "Not classified"), route.confidence === undefined ? null : badge(`${percent(route.confidence)} confidence`, "accent"), route.method ? badge(methodName(route.method)) : null, route.use_reasoning ? badge("reasoning", "warn") : null, route.used_fallback ? badge("fallback: low confidence", "warn") : null),
      route.probabilities ? bars(route.probabilities.slice(0, 6).map(({ category, score }) => ({ name: category, value: score }))) : null,
      route.category === undefined && route.unavailable_models?.length ? h("p.quiet.small", "The model was requested by name, so the prompt was not classified.") : null,
      route.entropy === undefined ? null : h("p.quiet.small", describeEntropy(route.entropy, route.probabilities?.length))),
    route.documents ? renderDocuments(route.documents) : null,
    h("section.card", h("h2", "Candidates"),
      candidates.length
        ? h("ol.candidates", candidates.map((candidate) => h("li", h("strong.break", `${candidate.provider}/${candidate.model}`), " ", badge(candidate.rule ? `rule ${candidate.rule}` : candidate.reason), candidate.circuit_open ? badge("circuit open", "warn") : null, price(candidate))))
        : noCandidates,
      route.unavailable_models?.length && candidates.length ? h("p.quiet.small.break", `Not available from any provider: ${route.unavailable_models.join(", ")}`) : null),
    route.system_prompt ? h("section.card", h("h2", "System prompt"), h("pre", { tabindex: "0" }, route.system_prompt)) : null,
  ];
}

/** The price per million tokens, if known. */
const price = ({ price: perMillion }) => (perMillion ? h("div.quiet.small", `per million tokens: ${dollars(perMillion.input ?? perMillion.prompt)} input, ${dollars(perMillion.output ?? perMillion.completion)} output`) : null);

const VERDICTS = { answered: "The documents answer the prompt.", unsure: "The documents may answer the prompt.", unanswered: "The documents do not answer the prompt." };

function renderDocuments(verdict) {
  return h("section.card", h("h2", "Documents"), h("p", VERDICTS[verdict.verdict] ?? verdict.verdict, ` Best passage: ${percent(verdict.relevance)} relevance.`),
    verdict.sources?.length ? h("ul", verdict.sources.map((source) => h("li.break", source))) : null);
}

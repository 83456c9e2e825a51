// Classifies a text while it is typed, and shows the probability distribution.

import { h, fill, debounce, submitOnEnter } from "../../dom.js";
import { call } from "../../mcp.js";
import { bars, updateBars, badge } from "../../components/widgets.js";
import { percent, plural } from "../../format.js";
import { onReconnect } from "../../connection.js";
import { latestRequest } from "./requests.js";
import { certainty, methodName } from "../../classification.js";
import { sentence, inlineCode } from "../../components/inline-code.js";

/** Debounce before the text is classified, in milliseconds. */
const CLASSIFY_DEBOUNCE = 80;
/** Delay before a retry after "too many requests", in milliseconds. */
const RETRY_DELAY = 1_000;
/** Debounce before a screen reader announces the result, in milliseconds; otherwise each result interrupts the last one. */
const ANNOUNCE_DEBOUNCE = 700;
/** Only the most probable categories are shown. */
const MAX_BARS = 12;

/** Threshold of the out-of-scope score of the server. */
const OUT_OF_SCOPE_THRESHOLD = 0.95;

const SAMPLES = ["What is 12 times 12?", "hello there", "My laptop does not charge any more", "Who was the first pharaoh?", "Why is the sky blue?", "Where is my invoice?"];

/** The input is kept while other tabs are shown. */
let input = "";

export async function show(container) {
  let names = (await call("list_categories")).categories;
  const requests = latestRequest();
  const field = h("textarea.ask", { "data-search": true, id: "classify-text", rows: 4, value: input, placeholder: "Type or paste a text…", "aria-describedby": "classify-hint" });
  const verdict = h("div.verdict");
  const announcement = h("p.visually-hidden", { role: "status", "aria-live": "polite" });
  const distribution = bars([]);
  const others = h("p.quiet.small.others");
  const entropy = gauge("Entropy", "Uncertainty of the distribution in bits; 0 is certain");
  const outOfScope = gauge("Out of scope", "Percentile of the out-of-scope score among the examples; 95 % and more is probably out of scope", OUT_OF_SCOPE_THRESHOLD);
  const facts = h("dl.why");
  const neighbors = h("ol.near");
  const announce = debounce((text) => fill(announcement, text), ANNOUNCE_DEBOUNCE);
  const classifyDebounced = debounce(classify, CLASSIFY_DEBOUNCE);
  const classifyLater = debounce(classify, RETRY_DELAY);

  async function classify() {
    const text = input;
    const signal = requests.signal();
    if (!text.trim()) return draw();
    try {
      const reply = await call("classify_text", { text, with_probabilities: true, with_examples: true }, { signal });
      // The taxonomy has changed since the page was loaded.
      if (reply.probabilities.length !== names.length || names[reply.class] !== reply.category) names = (await call("list_categories", {}, { signal })).categories;
      if (!signal.aborted) draw(reply);
    } catch (error) {
      if (error.kind === "cancelled" || signal.aborted) return;
      if (error.kind === "rate") return classifyLater();
      draw();
      fill(verdict, h("div.problem", { role: "alert" }, inlineCode(sentence(error.message))));
    }
  }

  function draw(reply) {
    fill(verdict, reply
      ? [h("strong.number.break", reply.category), h("span.quiet", `${percent(reply.confidence)} confidence`), reply.out_of_scope >= OUT_OF_SCOPE_THRESHOLD ? badge("probably out of scope", "warn") : null]
      : h("span.quiet", "Enter a text to classify it."));
    announce(reply ? `${reply.category}, ${percent(reply.confidence)}` : "");
    const items = names.map((name, index) => ({ name, value: reply?.probabilities[index] ?? 0 }));
    const shown = items.length > MAX_BARS && reply ? items.sort((a, b) => b.value - a.value).slice(0, MAX_BARS) : items.slice(0, MAX_BARS);
    updateBars(distribution, shown);
    const rest = names.length - shown.length;
    const share = 1 - shown.reduce((sum, item) => sum + item.value, 0);
    fill(others, rest > 0 ? `${plural(rest, "more category", "more categories")}${reply ? `, total ${percent(Math.max(0, share))}` : ""}` : "");
    const maxEntropy = Math.log2(Math.max(names.length, 2));
    entropy.set(reply && reply.entropy / maxEntropy, reply && `${reply.entropy.toFixed(2)} bits`, reply ? certainty(reply.entropy, names.length) : "uncertainty of the distribution");
    outOfScope.set(reply?.out_of_scope, reply && percent(reply.out_of_scope), reply ? describeOutOfScope(reply.out_of_scope) : "percentile among the examples");
    fill(facts, renderFacts(reply));
    fill(neighbors, renderNeighbors(reply));
  }

  field.addEventListener("input", () => {
    input = field.value;
    classifyDebounced();
  });
  submitOnEnter(field, classify);
  const sample = (text) => h("button.sample", { type: "button", onclick: () => {
    field.value = input = text;
    classify();
  } }, text);

  container.append(h("div.trying",
    h("section.card.stack", { "aria-label": "Text" },
      h("div", h("label", "Text", field), h("p.quiet.small.flat", { id: "classify-hint" }, "The server does not store the text.")),
      h("div.row.samples", { role: "group", "aria-label": "Sample texts" }, SAMPLES.map(sample))),
    h("section.card.stack", { "aria-label": "Distribution" }, verdict, distribution, others, h("div.gauges", entropy.element, outOfScope.element), announcement),
    h("section.card", h("h2", "Decision"), facts),
    h("section.card", h("h2", "Nearest examples"), neighbors)));
  draw();
  if (input) classify();
  const removeListener = onReconnect(classify);
  return () => {
    removeListener();
    requests.cancel();
    // Otherwise retries to a busy server would continue after the page is left.
    for (const timer of [classifyDebounced, classifyLater, announce]) timer.cancel();
  };
}

/** A gauge of a share with a caption. `threshold` is marked with a tick. */
function gauge(name, help, threshold) {
  const fillElement = h("div.fill");
  const value = h("span.value", "–");
  const caption = h("p.quiet.small");
  const tick = threshold === undefined ? null : h("span.tick", { style: { left: `${threshold * 100}%` } });
  const element = h("div.gauge", { title: help }, h("div.row", h("h3", name), value), h("div.track", { "aria-hidden": "true" }, fillElement, tick), caption);
  return {
    element,
    set(share, text, description) {
      fillElement.style.transform = `scaleX(${Math.max(0, Math.min(1, share ?? 0))})`;
      fillElement.classList.toggle("warn", threshold !== undefined && share >= threshold);
      fill(value, text ?? "–");
      fill(caption, description);
    },
  };
}

/** The score is a percentile: the share of known texts with a lower score. */
function describeOutOfScope(share) {
  if (share >= OUT_OF_SCOPE_THRESHOLD) return "probably belongs to no category";
  if (share >= 0.8) return "unusual";
  if (share >= 0.5) return "typical (above the median)";
  if (share > 0) return "typical";
  return "very typical";
}

function renderFacts(reply) {
  const rules = reply?.rules?.length ? reply.rules : reply?.matched_rule ? [reply.matched_rule.rule] : [];
  const source = (rule) => h("div.quiet.small", rule ? ["from rule ", h("code", rule)] : "from the category");
  const rows = [
    ["Method", reply && methodName(reply.method)],
    ["Matched rules", reply && (rules.length ? rules.map((rule) => h("code.rule", rule)) : "none")],
    ["Recommended model", reply && [h("code.break", reply.model), source(reply.rule?.model)]],
    ["Reasoning", reply && [reply.use_reasoning ? "yes" : "no", source(reply.rule?.reasoning)]],
  ];
  return rows.map(([name, value], index) => [h("dt", name), h(index > 1 ? "dd.two" : "dd", value ?? h("span.quiet", "–"))]);
}

function renderNeighbors(reply) {
  if (!reply) return h("li.quiet", "The most similar examples and their categories.");
  if (!reply.examples?.length) return h("li.quiet", reply.examples ? "None. The method does not compare examples, or showing them requires trust level trusted." : "Not supported by this version of the server.");
  return reply.examples.map(({ text, category, similarity }) =>
    h("li", h("span.text.break", { title: text }, text), badge(category, category === reply.category ? "accent" : ""), h("span.quiet.similar", { title: "Cosine similarity; 1 is identical" }, similarity.toFixed(2))));
}

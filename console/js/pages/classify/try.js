// Classifies a text while it is typed, and shows the probability distribution.

import { h, fill, debounce } from "../../dom.js";
import { call } from "../../mcp.js";
import { bars, updateBars, badge } from "../../components/widgets.js";
import { percent, plural } from "../../format.js";
import { onReconnect } from "../../connection.js";
import { latestRequest } from "./requests.js";
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

const METHODS = {
  rules: "a rule that leaves no doubt",
  words: "words it has learned",
  embedding: "the nearest examples",
  model: "the trained model",
};

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
  const entropy = gauge("Entropy", "How undecided the probabilities are, in bits: 0 is certain");
  const outOfScope = gauge("Strangeness", "The share of the known texts that are less strange than this one; from 95 % on it probably belongs nowhere", OUT_OF_SCOPE_THRESHOLD);
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
      ? [h("strong.number.break", reply.category), h("span.quiet", `${percent(reply.confidence)} sure`), reply.out_of_scope >= OUT_OF_SCOPE_THRESHOLD ? badge("probably out of scope", "warn") : null]
      : h("span.quiet", "Nothing typed yet. The bars move with every key."));
    announce(reply ? `${reply.category}, ${percent(reply.confidence)}` : "");
    const items = names.map((name, index) => ({ name, value: reply?.probabilities[index] ?? 0 }));
    const shown = items.length > MAX_BARS && reply ? items.sort((a, b) => b.value - a.value).slice(0, MAX_BARS) : items.slice(0, MAX_BARS);
    updateBars(distribution, shown);
    const rest = names.length - shown.length;
    const share = 1 - shown.reduce((sum, item) => sum + item.value, 0);
    fill(others, rest > 0 ? `and ${plural(rest, "other", "others")}${reply ? `, together ${percent(Math.max(0, share))}` : ""}` : "");
    const maxEntropy = Math.log2(Math.max(names.length, 2));
    entropy.set(reply && reply.entropy / maxEntropy, reply && `${reply.entropy.toFixed(2)} bits`, reply ? describeEntropy(reply.entropy / maxEntropy) : "how undecided it is");
    outOfScope.set(reply?.out_of_scope, reply && percent(reply.out_of_scope), reply ? describeOutOfScope(reply.out_of_scope) : "how many known texts are less strange");
    fill(facts, renderFacts(reply));
    fill(neighbors, renderNeighbors(reply));
  }

  field.addEventListener("input", () => {
    input = field.value;
    classifyDebounced();
  });
  const sample = (text) => h("button.sample", { type: "button", onclick: () => {
    field.value = input = text;
    classify();
  } }, text);

  container.append(h("div.trying",
    h("section.card.stack", { "aria-label": "Text" },
      h("div", h("label", "Text", field), h("p.quiet.small.flat", { id: "classify-hint" }, "This server keeps no word of it.")),
      h("div.row.samples", { role: "group", "aria-label": "Texts to begin with" }, SAMPLES.map(sample))),
    h("section.card.stack", { "aria-label": "Distribution" }, verdict, distribution, others, h("div.gauges", entropy.element, outOfScope.element), announcement),
    h("section.card", h("h2", "Why, and what next"), facts),
    h("section.card", h("header", h("h2", "Nearest examples"), h("span.quiet.small", "nearest in meaning")), neighbors)));
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

function describeEntropy(share) {
  if (share < 0.1) return "certain: nearly all of it is one category";
  if (share < 0.35) return "fairly sure: another category is possible";
  if (share < 0.7) return "torn between some categories";
  return "undecided: it could be nearly anything";
}

/** The score is a percentile: the share of known texts with a lower score. */
function describeOutOfScope(share) {
  if (share >= OUT_OF_SCOPE_THRESHOLD) return "stranger than nearly all examples: it probably belongs to no category";
  if (share >= 0.8) return "unusual: most known texts are less strange";
  if (share >= 0.5) return "stranger than half of the known texts, which is nothing special";
  if (share > 0) return "usual: most known texts are stranger";
  return "nothing about it is strange";
}

function renderFacts(reply) {
  const rules = reply?.rules?.length ? reply.rules : reply?.matched_rule ? [reply.matched_rule.rule] : [];
  const source = (rule) => h("div.quiet.small", rule ? ["by the rule ", h("code", rule)] : "as the category says");
  const rows = [
    ["Decided by", reply && (METHODS[reply.method] ?? reply.method)],
    ["Rule that fired", reply && (rules.length ? rules.map((rule) => h("code.rule", rule)) : "none; the meaning decided")],
    ["Recommended model", reply && [h("code.break", reply.model), source(reply.rule?.model)]],
    ["Reasoning first", reply && [reply.use_reasoning ? "yes" : "no", source(reply.rule?.reasoning)]],
  ];
  return rows.map(([name, value], index) => [h("dt", name), h(index > 1 ? "dd.two" : "dd", value ?? h("span.quiet", "–"))]);
}

function renderNeighbors(reply) {
  if (!reply) return h("li.quiet", "They appear as you type, each with its category.");
  if (!reply.examples?.length) return h("li.quiet", reply.examples ? "None: the method in use does not compare examples, or they are only shown to callers with more trust." : "This server does not tell them; a newer corbie does.");
  return reply.examples.map(({ text, category, similarity }) =>
    h("li", h("span.text.break", { title: text }, text), badge(category, category === reply.category ? "accent" : ""), h("span.quiet.similar", { title: "1 is the same meaning" }, similarity.toFixed(2))));
}

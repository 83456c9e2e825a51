// Type, and see the distribution move.

import { h, fill, debounce } from "../../dom.js";
import { call } from "../../mcp.js";
import { bars, moveBars, badge } from "../../components/parts.js";
import { percent, plural } from "../../format.js";
import { onReturn } from "../../connection.js";
import { newest } from "./asking.js";
import { sentence, ticked } from "../../components/said.js";

/** How long the typing may pause before the text is asked about, in milliseconds. */
const PAUSE = 80;
/** How long until it is asked again after "too many requests", in milliseconds. */
const LATER = 1_000;
/** How long until the result is read out, so that no word is cut off by the next one. */
const SPOKEN = 700;
/** More categories than this are no longer a picture: the most probable ones are shown. */
const MOST_BARS = 12;

/** From this share on a text probably belongs to no category; the server says so of its figure. */
const STRANGE = 0.95;

const SAMPLES = ["What is 12 times 12?", "hello there", "My laptop does not charge any more", "Who was the first pharaoh?", "Why is the sky blue?", "Where is my invoice?"];

const METHODS = {
  rules: "a rule that leaves no doubt",
  words: "words it has learned",
  embedding: "the nearest examples",
  model: "the trained model",
};

/** What was typed stays while other parts are looked at. */
let typed = "";

export async function show(place) {
  let names = (await call("list_categories")).categories;
  const asking = newest();
  const field = h("textarea.ask", { "data-search": true, id: "classify-text", rows: 4, value: typed, placeholder: "Type or paste a text…", "aria-describedby": "classify-hint" });
  const verdict = h("div.verdict");
  const spoken = h("p.visually-hidden", { role: "status", "aria-live": "polite" });
  const distribution = bars([]);
  const others = h("p.quiet.small.others");
  const entropy = gauge("Entropy", "How undecided the probabilities are, in bits: 0 is certain");
  const strange = gauge("Strangeness", "The share of the known texts that are less strange than this one; from 95 % on it probably belongs nowhere", STRANGE);
  const facts = h("dl.why");
  const near = h("ol.near");
  const say = debounce((text) => fill(spoken, text), SPOKEN);
  const soon = debounce(ask, PAUSE);
  const later = debounce(ask, LATER);

  async function ask() {
    const text = typed;
    const signal = asking.signal();
    if (!text.trim()) return draw();
    try {
      const reply = await call("classify_text", { text, with_probabilities: true, with_examples: true }, { signal });
      // The taxonomy was changed since the page was shown.
      if (reply.probabilities.length !== names.length || names[reply.class] !== reply.category) names = (await call("list_categories", {}, { signal })).categories;
      if (!signal.aborted) draw(reply);
    } catch (error) {
      if (error.kind === "cancelled" || signal.aborted) return;
      if (error.kind === "rate") return later();
      draw();
      fill(verdict, h("div.problem", { role: "alert" }, ticked(sentence(error.message))));
    }
  }

  function draw(reply) {
    fill(verdict, reply
      ? [h("strong.number.break", reply.category), h("span.quiet", `${percent(reply.confidence)} sure`), reply.out_of_scope >= STRANGE ? badge("probably out of scope", "warn") : null]
      : h("span.quiet", "Nothing typed yet. The bars move with every key."));
    say(reply ? `${reply.category}, ${percent(reply.confidence)}` : "");
    const items = names.map((name, at) => ({ name, value: reply?.probabilities[at] ?? 0 }));
    const shown = items.length > MOST_BARS && reply ? items.sort((a, b) => b.value - a.value).slice(0, MOST_BARS) : items.slice(0, MOST_BARS);
    moveBars(distribution, shown);
    const rest = names.length - shown.length;
    const share = 1 - shown.reduce((sum, item) => sum + item.value, 0);
    fill(others, rest > 0 ? `and ${plural(rest, "other", "others")}${reply ? `, together ${percent(Math.max(0, share))}` : ""}` : "");
    const most = Math.log2(Math.max(names.length, 2));
    entropy.set(reply && reply.entropy / most, reply && `${reply.entropy.toFixed(2)} bits`, reply ? undecided(reply.entropy / most) : "how undecided it is");
    strange.set(reply?.out_of_scope, reply && percent(reply.out_of_scope), reply ? strangeness(reply.out_of_scope) : "how many known texts are less strange");
    fill(facts, factsOf(reply));
    fill(near, nearest(reply));
  }

  field.addEventListener("input", () => {
    typed = field.value;
    soon();
  });
  const sample = (text) => h("button.sample", { type: "button", onclick: () => {
    field.value = typed = text;
    ask();
  } }, text);

  place.append(h("div.trying",
    h("section.card.stack", { "aria-label": "Text" },
      h("div", h("label", "Text", field), h("p.quiet.small.flat", { id: "classify-hint" }, "This server keeps no word of it.")),
      h("div.row.samples", { role: "group", "aria-label": "Texts to begin with" }, SAMPLES.map(sample))),
    h("section.card.stack", { "aria-label": "Distribution" }, verdict, distribution, others, h("div.gauges", entropy.element, strange.element), spoken),
    h("section.card", h("h2", "Why, and what next"), facts),
    h("section.card", h("header", h("h2", "Nearest examples"), h("span.quiet.small", "nearest in meaning")), near)));
  draw();
  if (typed) ask();
  const forget = onReturn(ask);
  return () => {
    forget();
    asking.end();
    // A server that is busy would be asked again and again for a page that is gone.
    for (const timer of [soon, later, say]) timer.cancel();
  };
}

/** A share with a word for it. `mark` is where it begins to matter. */
function gauge(name, help, mark) {
  const fillElement = h("div.fill");
  const value = h("span.value", "–");
  const word = h("p.quiet.small");
  const tick = mark === undefined ? null : h("span.tick", { style: { left: `${mark * 100}%` } });
  const element = h("div.gauge", { title: help }, h("div.row", h("h3", name), value), h("div.track", { "aria-hidden": "true" }, fillElement, tick), word);
  return {
    element,
    set(share, text, said) {
      fillElement.style.transform = `scaleX(${Math.max(0, Math.min(1, share ?? 0))})`;
      fillElement.classList.toggle("warn", mark !== undefined && share >= mark);
      fill(value, text ?? "–");
      fill(word, said);
    },
  };
}

function undecided(share) {
  if (share < 0.1) return "certain: nearly all of it is one category";
  if (share < 0.35) return "fairly sure: another category is possible";
  if (share < 0.7) return "torn between some categories";
  return "undecided: it could be nearly anything";
}

/** What the share of known texts that are less strange says: those that are known are spread evenly over it. */
function strangeness(share) {
  if (share >= STRANGE) return "stranger than nearly all examples: it probably belongs to no category";
  if (share >= 0.8) return "unusual: most known texts are less strange";
  if (share >= 0.5) return "stranger than half of the known texts, which is nothing special";
  if (share > 0) return "usual: most known texts are stranger";
  return "nothing about it is strange";
}

function factsOf(reply) {
  const rules = reply?.rules?.length ? reply.rules : reply?.matched_rule ? [reply.matched_rule.rule] : [];
  const by = (rule) => h("div.quiet.small", rule ? ["by the rule ", h("code", rule)] : "as the category says");
  const rows = [
    ["Decided by", reply && (METHODS[reply.method] ?? reply.method)],
    ["Rule that fired", reply && (rules.length ? rules.map((rule) => h("code.rule", rule)) : "none; the meaning decided")],
    ["Recommended model", reply && [h("code.break", reply.model), by(reply.rule?.model)]],
    ["Reasoning first", reply && [reply.use_reasoning ? "yes" : "no", by(reply.rule?.reasoning)]],
  ];
  return rows.map(([name, value], at) => [h("dt", name), h(at > 1 ? "dd.two" : "dd", value ?? h("span.quiet", "–"))]);
}

function nearest(reply) {
  if (!reply) return h("li.quiet", "They appear as you type, each with its category.");
  if (!reply.examples?.length) return h("li.quiet", reply.examples ? "None: the method in use does not compare examples, or they are only shown to callers with more trust." : "This server does not tell them; a newer corbie does.");
  return reply.examples.map(({ text, category, similarity }) =>
    h("li", h("span.text.break", { title: text }, text), badge(category, category === reply.category ? "accent" : ""), h("span.quiet.similar", { title: "1 is the same meaning" }, similarity.toFixed(2))));
}

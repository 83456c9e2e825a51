// Trial of an edited taxonomy before it is saved: compares its predictions with the current ones.

import { h, fill, submitOnEnter } from "../../dom.js";
import { call } from "../../mcp.js";
import { badge, problem } from "../../components/widgets.js";
import { percent, plural } from "../../format.js";
import { latestRequest } from "./requests.js";

/** Limit of the server. */
const MAX_TEXTS = 20;

/** The input is kept while other tabs are shown. */
let input = "";

/** `text` returns the edited taxonomy; `onInvalid` is called with its problems. */
export function taxonomyTrial({ text, onInvalid }) {
  const requests = latestRequest();
  const field = h("textarea", { rows: 3, value: input, placeholder: "I was charged twice\nWhere is my parcel?", oninput: () => (input = field.value) });
  const button = h("button", { type: "button", onclick: run }, "Compare");
  const result = h("div.tried", { "aria-live": "polite" }, h("p.quiet.small", "Compare current and edited categories here."));

  submitOnEnter(field, run, { multiline: true });

  async function run() {
    const texts = input.split("\n").map((line) => line.trim()).filter(Boolean);
    if (!texts.length) return fill(result, h("p.quiet.small", "Enter at least one text."));
    if (texts.length > MAX_TEXTS) return fill(result, h("p.quiet.small", `Too many texts (${texts.length}). Enter at most ${MAX_TEXTS}.`));
    const signal = requests.signal();
    button.disabled = true;
    result.setAttribute("aria-busy", "true");
    fill(result, h("p.quiet.small", "Training on the edited taxonomy…"));
    try {
      const [now, then] = await Promise.all([call("batch_categorize", { texts }, { signal }), call("check_taxonomy", { text: text(), trial_texts: texts }, { signal })]);
      if (!then.valid) {
        onInvalid(then);
        fill(result, h("p.quiet.small", "Fix the errors in the taxonomy first."));
      } else fill(result, table(texts, now.results, then.trial_results));
    } catch (error) {
      if (error.kind !== "cancelled") fill(result, problem(error, run));
    } finally {
      if (!signal.aborted) button.disabled = false;
      result.removeAttribute("aria-busy");
    }
  }

  return {
    element: h("section.card.stack", { "aria-label": "Test changes" },
      h("label", "Test changes", h("span.hint", `One text per line, at most ${MAX_TEXTS}. Ctrl+Enter compares.`), field), h("div.row", button), result),
    cancel: requests.cancel,
  };
}

function table(texts, now, then) {
  const changed = texts.filter((_, index) => now[index]?.category !== then[index]?.category).length;
  const cell = (prediction, other) => prediction?.error ? h("td.quiet", prediction.error)
    : h("td", badge(prediction?.category ?? "–", prediction?.category === other?.category ? "" : "accent"), " ", h("span.quiet.small.share", percent(prediction?.confidence ?? 0)));
  return [
    h("p.small.flat", changed ? `${plural(changed, "text changes", "texts change")} category.` : "No category changes."),
    h("div.table", { tabindex: "0", role: "region", "aria-label": "Comparison" }, h("table",
      h("thead", h("tr", ["Text", "Current", "Edited"].map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", texts.map((text, index) => h("tr", h("td.break.text", text), cell(now[index], then[index]), cell(then[index], now[index])))))),
  ];
}

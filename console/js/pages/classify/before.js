// Trying a changed taxonomy before it is saved: what texts are now, beside what they would be.

import { h, fill } from "../../dom.js";
import { call } from "../../mcp.js";
import { badge, problem } from "../../components/parts.js";
import { percent, plural } from "../../format.js";
import { newest } from "./asking.js";

/** As many texts as the server takes at once. */
const MOST_TEXTS = 20;

/** What was written stays while other parts are looked at. */
let written = "";

/** `text` gives the taxonomy as it is written now; `refused` is told of problems it has. */
export function tryBefore({ text, refused }) {
  const asking = newest();
  const field = h("textarea", { rows: 3, value: written, placeholder: "I was charged twice\nWhere is my parcel?", oninput: () => (written = field.value), onkeydown: (event) => event.key === "Enter" && (event.ctrlKey || event.metaKey) && run() });
  const button = h("button", { type: "button", onclick: run }, "Try these");
  const result = h("div.tried", { "aria-live": "polite" }, h("p.quiet.small", "What each text is now appears here, beside what it would be."));

  async function run() {
    const texts = written.split("\n").map((line) => line.trim()).filter(Boolean);
    if (!texts.length) return fill(result, h("p.quiet.small", "Write a text into the field first, one on each line."));
    if (texts.length > MOST_TEXTS) return fill(result, h("p.quiet.small", `These are ${texts.length} texts; try ${MOST_TEXTS} at most at a time.`));
    const signal = asking.signal();
    button.disabled = true;
    result.setAttribute("aria-busy", "true");
    fill(result, h("p.quiet.small", "Learning the changed taxonomy beside the one in use…"));
    try {
      const [now, then] = await Promise.all([call("batch_categorize", { texts }, { signal }), call("check_taxonomy", { text: text(), trial_texts: texts }, { signal })]);
      if (!then.valid) {
        refused(then);
        fill(result, h("p.quiet.small", "The text has mistakes; mend them first."));
      } else fill(result, table(texts, now.results, then.trial_results));
    } catch (error) {
      if (error.kind !== "cancelled") fill(result, problem(error, run));
    } finally {
      if (!signal.aborted) button.disabled = false;
      result.removeAttribute("aria-busy");
    }
  }

  return {
    element: h("section.card.stack", { "aria-label": "Try before saving" },
      h("label", "Try before saving", h("span.hint", `One text on each line, ${MOST_TEXTS} at most`), field), h("div.row", button), result),
    end: asking.end,
  };
}

function table(texts, now, then) {
  const changed = texts.filter((_, at) => now[at]?.category !== then[at]?.category).length;
  const cell = (said, other) => said?.error ? h("td.quiet", said.error)
    : h("td", badge(said?.category ?? "–", said?.category === other?.category ? "" : "accent"), " ", h("span.quiet.small.share", percent(said?.confidence ?? 0)));
  return [
    h("p.small.flat", changed ? `${plural(changed, "text gets", "texts get")} another category.` : "Every text keeps its category."),
    h("div.table", { tabindex: "0", role: "region", "aria-label": "Tried texts" }, h("table",
      h("thead", h("tr", ["Text", "Now", "Edited"].map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", texts.map((text, at) => h("tr", h("td.break.text", text), cell(now[at], then[at]), cell(then[at], now[at])))))),
  ];
}

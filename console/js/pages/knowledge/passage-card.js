// The card of a passage: document, location, relevance and excerpt.

import { h, findQueryTerms, highlight } from "../../dom.js";
import { sanitizeName } from "./formats.js";

/** The URL of a passage in its document. */
export const passageUrl = (found) =>
  `#/knowledge/document/${[found.document_id, found.metadata?.page_num ?? 1, found.chunk_id].map(encodeURIComponent).join("/")}`;

/** "Holidays › Carrying days over, page 3" */
export function passageLocation(found) {
  const { headings = [], page_num: page } = found.metadata ?? {};
  const path = (Array.isArray(headings) ? headings : []).join(" › ");
  return [path, page ? `page ${page}` : ""].filter(Boolean).join(", ");
}

/** Maximum length of an excerpt in characters. */
const MAX_EXCERPT = 560;

/** Stop words, which are not highlighted. */
const STOP_WORDS = new Set("the and for are was were with what when where which who how why does did has have had that this from not you can may our your their they into out all any but".split(" "));
export const removeStopWords = (query) => query.split(/\s+/).filter((word) => !STOP_WORDS.has(word.toLowerCase())).join(" ") || query;

/** The passage that was opened last and its query, for highlighting in the document. */
export const openedPassage = { chunk: undefined, query: "" };

/** The part of a text with the most different words of the query. */
function excerpt(text, query) {
  const words = findQueryTerms(text, query);
  if (text.length <= MAX_EXCERPT) return highlight(text, words);
  let best = 0;
  let most = 0;
  words.forEach(([from], at) => {
    const near = words.slice(at).filter(([, to]) => to < from + MAX_EXCERPT / 2);
    const kinds = new Set(near.map(([start, end]) => text.slice(start, end).toLowerCase())).size;
    if (kinds > most) [most, best] = [kinds, from];
  });
  // Starts at the beginning of a sentence or line if one is near.
  const before = text.slice(Math.max(0, best - MAX_EXCERPT / 3), best);
  const breaks = [...before.matchAll(/[.!?\n]\s+/g)];
  const from = best < MAX_EXCERPT / 3 ? 0 : best - before.length + (breaks.length ? breaks[0].index + breaks[0][0].length : before.indexOf(" ") + 1);
  const part = text.slice(from, from + MAX_EXCERPT);
  return [from ? "… " : "", highlight(part, findQueryTerms(part, query))];
}

/** Passages below this relevance rarely answer the question; they are folded away. */
export const WEAK_RELEVANCE = 0.1;
export const isWeakMatch = (found) => (found.relevance_score ?? 0) < WEAK_RELEVANCE;
/** Smallest value with two decimals. */
const MIN_SHOWN_SCORE = 0.01;

export function score(value) {
  const fill = h("span.fill");
  fill.style.transform = `scaleX(${Math.max(0, Math.min(1, value))})`;
  return h("span.score", { title: "Relevance: probability that this passage answers the question" },
    h("span.track", { "aria-hidden": "true" }, fill), h("span.visually-hidden", "Relevance "), value < MIN_SHOWN_SCORE ? `< ${MIN_SHOWN_SCORE}` : value.toFixed(2));
}

/** Weak matches behind a disclosure. `cards` are elements. */
export const weakMatches = (cards) => h("details.weak", h("summary", `${cards.length === 1 ? "1 weak match" : `${cards.length} weak matches`} (relevance below ${WEAK_RELEVANCE})`), h("div.results", cards));

/** Options: number (citation number), onopen. */
export function passage(found, query, { number, onopen } = {}) {
  const open = () => {
    Object.assign(openedPassage, { chunk: found.chunk_id, query: removeStopWords(query) });
    onopen?.();
  };
  const text = (found.chunk_text ?? "").replace(/\n\s*\n/g, "\n");
  // Omitted if the passage starts with its heading.
  const where = text.split("\n")[0] === passageLocation(found) ? "" : passageLocation(found);
  return h("article.passage.card", { dataset: { chunk: found.chunk_id } },
    h("header", number ? h("span.cite", { "aria-hidden": "true" }, number) : null,
      h("h2", h("a", { href: passageUrl(found), dir: "auto", class: "break", onclick: open }, sanitizeName(found.filename))),
      h("span.badge", (found.metadata?.format ?? "").toUpperCase()), isWeakMatch(found) ? h("span.badge.warn", "Weak match") : null, score(found.relevance_score ?? 0)),
    where ? h("p.quiet.small.where.break", { dir: "auto" }, where) : null,
    h("p.passage-text.break", { dir: "auto" }, excerpt(text, removeStopWords(query))));
}

// A passage that was found: where it stands, how relevant it is, and what it says.

import { h, findWords, marked } from "../../dom.js";

/** Where in the document a passage is shown. */
export const passageAddress = (found) =>
  `#/knowledge/document/${[found.document_id, found.metadata?.page_num ?? 1, found.chunk_id].map(encodeURIComponent).join("/")}`;

/** "Holidays › Carrying days over, page 3" */
export function whereabouts(found) {
  const { headings = [], page_num: page } = found.metadata ?? {};
  const path = (Array.isArray(headings) ? headings : []).join(" › ");
  return [path, page ? `page ${page}` : ""].filter(Boolean).join(", ");
}

export function score(value) {
  const fill = h("span.fill");
  fill.style.transform = `scaleX(${Math.max(0, Math.min(1, value))})`;
  return h("span.score", { title: "How probable it is that this passage answers the question, from 0 to 1" },
    h("span.track", { "aria-hidden": "true" }, fill), h("span.visually-hidden", "Relevance "), value.toFixed(2));
}

/** One result. { number: as answers cite it, onopen } */
export function passage(found, query, { number, onopen } = {}) {
  const text = (found.chunk_text ?? "").replace(/\n\s*\n/g, "\n");
  // A passage that begins with its heading needs no line for it.
  const where = text.split("\n")[0] === whereabouts(found) ? "" : whereabouts(found);
  return h("article.passage.card", { dataset: { chunk: found.chunk_id } },
    h("header", number ? h("span.cite", { "aria-hidden": "true" }, number) : null,
      h("h2", h("a", { href: passageAddress(found), dir: "auto", class: "break", onclick: onopen }, found.filename)),
      h("span.badge", (found.metadata?.format ?? "").toUpperCase()), score(found.relevance_score ?? 0)),
    where ? h("p.quiet.small.where.break", { dir: "auto" }, where) : null,
    h("p.passage-text.break", { dir: "auto" }, marked(text, findWords(text, query))));
}

// Searching: a question, what narrows it, and the passages that answer it.

import { h, fill, icon, debounce } from "../../dom.js";
import { call } from "../../mcp.js";
import { onTokenChange } from "../../connection.js";
import { empty, problem } from "../../components/widgets.js";
import { milliseconds, plural } from "../../format.js";
import { FORMATS } from "./formats.js";
import { isWeakMatch, passage, weakMatches } from "./passage-card.js";

/** How long the reader must pause before what is typed is searched for, in milliseconds, and how long it must be. */
const PAUSE = 350;
const SHORTEST = 3;
const MOST = 20;

/** What was searched for last, and which passage was opened: whoever comes back finds both. */
const kept = { query: "", format: "", least: "0", tags: "", from: "", to: "", top: 10, reply: undefined, opened: undefined };

// Another token may see other documents.
onTokenChange(() => (kept.reply = undefined));

export function showSearch(place, [query]) {
  if (query !== undefined && query !== kept.query) Object.assign(kept, { query, reply: undefined });
  const field = h("input", { type: "search", value: kept.query, maxlength: "500", placeholder: "Search by keywords or a question", "aria-label": "Search documents", enterkeyhint: "search", dataset: { search: "" } });
  const results = h("div.results");
  const count = h("p.quiet.small.found-count", { role: "status" });
  const bind = (name, element) => {
    element.value = kept[name];
    element.addEventListener("change", () => {
      kept[name] = element.value;
      find();
    });
    return element;
  };
  const filters = h("div.filters",
    h("label", "Format", bind("format", h("select", h("option", { value: "" }, "All"), FORMATS.map((name) => h("option", { value: name }, name.toUpperCase()))))),
    h("label", "Relevance", bind("least", h("select", [["0", "Any"], ["0.1", "≥ 0.1"], ["0.5", "≥ 0.5"], ["0.8", "≥ 0.8"]].map(([value, text]) => h("option", { value }, text))))),
    h("label", "Tags (any)", bind("tags", h("input", { placeholder: "work, 2026" }))),
    h("label", "Added from", bind("from", h("input", { type: "date" }))),
    h("label", "Added to", bind("to", h("input", { type: "date" }))));
  const form = h("form.question", { role: "search", onsubmit: (event) => (event.preventDefault(), find()) }, h("div.asked", icon("search"), field), h("button.main", { type: "submit" }, "Search"));
  fill(place, form, filters, count, results);

  let stop;
  async function find() {
    kept.query = field.value.trim();
    // The address names what is shown, so that going back leads to it; it is no new step of the history.
    history.replaceState(null, "", kept.query ? `#/knowledge/search/${encodeURIComponent(kept.query)}` : "#/knowledge/search");
    stop?.abort();
    kept.reply = undefined;
    if (!kept.query) return draw();
    stop = new AbortController();
    results.setAttribute("aria-busy", "true");
    try {
      kept.reply = await call("knowledge-search", { query: kept.query, top_k: MOST, min_relevance: Number(kept.least), filters: narrowing() }, { signal: stop.signal });
      draw();
    } catch (error) {
      if (error.kind === "cancelled") return;
      fill(count);
      fill(results, error.structured?.error === "empty_knowledge_base" ? noDocuments() : problem(error, find, { autoRetry: true }));
    }
    results.removeAttribute("aria-busy");
  }

  function narrowing() {
    const tags = kept.tags.split(",").map((tag) => tag.trim()).filter(Boolean);
    const dates = { ...(kept.from ? { start: kept.from } : {}), ...(kept.to ? { end: kept.to } : {}) };
    return { ...(kept.format ? { format: kept.format } : {}), ...(tags.length ? { tags } : {}), ...(kept.from || kept.to ? { date_range: dates } : {}) };
  }

  function draw() {
    const { reply } = kept;
    if (!reply) {
      fill(count);
      fill(results, kept.query ? null : empty("Search your documents", "Passages are found by meaning and by keywords, for example “how many days of holiday do I get?”",
        h("p.small", h("kbd", "/"), " focuses the search field, ", h("kbd", "Enter"), " searches.")));
      return;
    }
    const card = (found) => passage(found, kept.query, { onopen: () => (kept.opened = found.chunk_id) });
    const weak = reply.results.filter(isWeakMatch);
    const relevant = reply.results.filter((found) => !isWeakMatch(found));
    fill(count, reply.results.length ? `${plural(relevant.length, "passage")} in ${milliseconds(Math.max(1, reply.search_time_ms))}, by relevance (0 to 1)` : "");
    fill(results, reply.results.length
      ? [relevant.length ? relevant.map(card) : empty("No relevant passage", "Only weak matches were found. Try other words."), weak.length ? weakMatches(weak.map(card)) : null]
      : empty("No results", "No passage matches. Try other or fewer words.",
        Object.keys(narrowing()).length || Number(kept.least) ? h("button", { onclick: widen }, "Clear filters") : h("p", h("a", { href: "#/knowledge/documents" }, "All documents"))));
  }

  function widen() {
    Object.assign(kept, { format: "", least: "0", tags: "", from: "", to: "" });
    for (const element of filters.querySelectorAll("input, select")) element.value = element.matches("select") ? element.options[0].value : "";
    find();
  }

  field.addEventListener("input", debounce(() => field.isConnected && (field.value.trim().length >= SHORTEST || !field.value) && field.value.trim() !== kept.query && find(), PAUSE));
  if (kept.query && !kept.reply) find();
  else draw();
  const opened = kept.opened && results.querySelector(`[data-chunk="${CSS.escape(kept.opened)}"] a`);
  kept.opened = undefined;
  if (opened) {
    opened.closest("details")?.setAttribute("open", "");
    setTimeout(() => opened.focus());
  } else field.focus();
  return () => stop?.abort();
}

export const noDocuments = () => empty("No documents yet", "Add files to search them.", h("a.button", { href: "#/knowledge/documents" }, "Add documents"));

// Search: query, filters and results.

import { h, fill, icon, debounce } from "../../dom.js";
import { call } from "../../mcp.js";
import { onTokenChange } from "../../connection.js";
import { empty, problem } from "../../components/widgets.js";
import { milliseconds, plural } from "../../format.js";
import { FORMATS } from "./formats.js";
import { isWeakMatch, passage, weakMatches } from "./passage-card.js";

/** Debounce before a typed query is searched, in milliseconds, and its minimum length. */
const SEARCH_DEBOUNCE = 350;
const MIN_QUERY_LENGTH = 3;
const MAX_RESULTS = 20;

/** The last search and the opened passage, restored when the user comes back from a document. */
const saved = { query: "", format: "", least: "0", tags: "", from: "", to: "", top: 10, reply: undefined, opened: undefined };

// Another token can have access to other documents.
onTokenChange(() => (saved.reply = undefined));

export function showSearch(place, [query]) {
  if (query !== undefined && query !== saved.query) Object.assign(saved, { query, reply: undefined });
  const field = h("input", { type: "search", value: saved.query, maxlength: "500", placeholder: "Search by keywords or a question", "aria-label": "Search documents", enterkeyhint: "search", dataset: { search: "" } });
  const results = h("div.results");
  const count = h("p.quiet.small.found-count", { role: "status" });
  const bind = (name, element) => {
    element.value = saved[name];
    element.addEventListener("change", () => {
      saved[name] = element.value;
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
    saved.query = field.value.trim();
    // The URL contains the query, so that the back button restores it; it is not a new history entry.
    history.replaceState(null, "", saved.query ? `#/knowledge/search/${encodeURIComponent(saved.query)}` : "#/knowledge/search");
    stop?.abort();
    saved.reply = undefined;
    if (!saved.query) return draw();
    stop = new AbortController();
    results.setAttribute("aria-busy", "true");
    try {
      saved.reply = await call("knowledge-search", { query: saved.query, top_k: MAX_RESULTS, min_relevance: Number(saved.least), filters: activeFilters() }, { signal: stop.signal });
      draw();
    } catch (error) {
      if (error.kind === "cancelled") return;
      fill(count);
      fill(results, error.structured?.error === "empty_knowledge_base" ? noDocuments() : problem(error, find, { autoRetry: true }));
    }
    results.removeAttribute("aria-busy");
  }

  function activeFilters() {
    const tags = saved.tags.split(",").map((tag) => tag.trim()).filter(Boolean);
    const dates = { ...(saved.from ? { start: saved.from } : {}), ...(saved.to ? { end: saved.to } : {}) };
    return { ...(saved.format ? { format: saved.format } : {}), ...(tags.length ? { tags } : {}), ...(saved.from || saved.to ? { date_range: dates } : {}) };
  }

  function draw() {
    const { reply } = saved;
    if (!reply) {
      fill(count);
      fill(results, saved.query ? null : empty("Search your documents", "Passages are found by meaning and by keywords, for example “how many days of holiday do I get?”",
        h("p.small", h("kbd", "/"), " focuses the search field, ", h("kbd", "Enter"), " searches.")));
      return;
    }
    const card = (found) => passage(found, saved.query, { onopen: () => (saved.opened = found.chunk_id) });
    const weak = reply.results.filter(isWeakMatch);
    const relevant = reply.results.filter((found) => !isWeakMatch(found));
    fill(count, reply.results.length ? `${plural(relevant.length, "passage")} in ${milliseconds(Math.max(1, reply.search_time_ms))}, by relevance (0 to 1)` : "");
    fill(results, reply.results.length
      ? [relevant.length ? relevant.map(card) : empty("No relevant passage", "Only weak matches were found. Try other words."), weak.length ? weakMatches(weak.map(card)) : null]
      : empty("No results", "No passage matches. Try other or fewer words.",
        Object.keys(activeFilters()).length || Number(saved.least) ? h("button", { onclick: clearFilters }, "Clear filters") : h("p", h("a", { href: "#/knowledge/documents" }, "All documents"))));
  }

  function clearFilters() {
    Object.assign(saved, { format: "", least: "0", tags: "", from: "", to: "" });
    for (const element of filters.querySelectorAll("input, select")) element.value = element.matches("select") ? element.options[0].value : "";
    find();
  }

  field.addEventListener("input", debounce(() => field.isConnected && (field.value.trim().length >= MIN_QUERY_LENGTH || !field.value) && field.value.trim() !== saved.query && find(), SEARCH_DEBOUNCE));
  if (saved.query && !saved.reply) find();
  else draw();
  const opened = saved.opened && results.querySelector(`[data-chunk="${CSS.escape(saved.opened)}"] a`);
  saved.opened = undefined;
  if (opened) {
    opened.closest("details")?.setAttribute("open", "");
    setTimeout(() => opened.focus());
  } else field.focus();
  return () => stop?.abort();
}

export const noDocuments = () => empty("No documents yet", "Add files to search them.", h("a.button", { href: "#/knowledge/documents" }, "Add documents"));

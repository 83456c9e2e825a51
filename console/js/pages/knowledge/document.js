// A document: its pages with the start of each passage, and the passage that was opened.

import { h, fill, findQueryTerms, icon, highlight, set } from "../../dom.js";
import { call, request } from "../../mcp.js";
import { badge, problem } from "../../components/widgets.js";
import { inlineCode } from "../../components/inline-code.js";
import { bytes, number, plural, relativeTime } from "../../format.js";
import { loadCapabilities } from "./capabilities.js";
import { confirmRemoval } from "./documents.js";
import { sanitizeName } from "./formats.js";
import { openedPassage } from "./passage-card.js";
import { locate, utf16Offsets } from "./text-positions.js";

/** Limits of one request. */
const PAGES_PER_REQUEST = 10;
const CHARACTERS_PER_REQUEST = 60_000;
/** Maximum number of requests per click on "Earlier pages"; a button loads the rest. */
const MAX_REQUESTS_PER_CLICK = 8;
/** Maximum distance of highlighted words that count as one place, in pixels. */
const MAX_WORD_DISTANCE = 120;
const BACK_LINKS = { documents: "All documents", search: "Back to search", ask: "Back to answer" };

export function showDocument(place, [id = "", page = "1", wanted], from = "documents") {
  const head = h("div.document-head");
  const pages = h("div.pages");
  const before = h("button", { hidden: true, onclick: earlier }, "Earlier pages");
  const after = h("button", { hidden: true, onclick: later }, "Later pages");
  const back = h("a.back", { href: `#/knowledge/${from}` }, `← ${BACK_LINKS[from]}`);
  fill(place, back, head, before, pages, after);

  let first = Math.max(1, Number(page) || 1);
  let next;
  let ended = false;
  /** Number of the current view: replies for an earlier one are dropped. */
  let opened = 0;
  let passageText;

  const get = async (args) => call("knowledge-get", { document_id: id, pages: PAGES_PER_REQUEST, max_characters: CHARACTERS_PER_REQUEST, ...((await loadCapabilities()).chunks ? { chunks: true } : {}), ...args });

  async function open() {
    const turn = ++opened;
    const stale = () => ended || turn !== opened;
    fill(pages, h("div.page.card.waiting", { "aria-busy": "true" }));
    try {
      const reply = await get({ page: first });
      // Older servers have no passage positions; the passage is located by its text.
      if (wanted && !reply.chunks?.some((chunk) => chunk.chunk_id === wanted && chunk.start !== undefined)) passageText = await fetchPassageText(wanted);
      const removalDenied = (await loadCapabilities()).denialReason("knowledge-remove", "Removing a document");
      if (stale()) return;
      drawHeader(reply, removalDenied);
      fill(pages, reply.pages.map((shown) => drawPage(shown, reply.chunks, 0)));
      updateLaterButton(reply);
      before.hidden = first <= 1;
      scrollToPassage();
    } catch (error) {
      if (stale()) return;
      fill(pages, error.structured?.error === "document_not_found" || error.structured?.error === "invalid_document_id"
        ? h("div.problem", { role: "alert" }, "Document not found. It was removed or is still being processed. ", h("a", { href: "#/knowledge/documents" }, "All documents"))
        : problem(error, open, { autoRetry: true }));
    }
  }

  async function earlier() {
    const start = Math.max(1, first - PAGES_PER_REQUEST);
    const drawn = await guarded(() => loadPages({ page: start, offset: 0 }, first));
    if (!drawn) return;
    pages.prepend(...drawn);
    first = start;
    before.hidden = first <= 1;
  }

  /** Loads the pages from a position up to page `end`. If the request limit is reached, a button loads the rest. */
  async function loadPages(at, end) {
    const turn = opened;
    const found = [];
    for (let asked = 0; at && at.page < end && !ended && turn === opened; asked++) {
      if (asked === MAX_REQUESTS_PER_CLICK) return [...found, gap(at, end)];
      const { page: from, offset } = at;
      const reply = await get({ page: from, offset, pages: end - from });
      found.push(...reply.pages.map((shown, place) => drawPage(shown, reply.chunks, place ? 0 : offset)));
      at = following(reply);
    }
    return found;
  }

  function gap(at, end) {
    const button = h("button.gap", { onclick: close }, `Load up to page ${number(end - 1)}`);
    async function close() {
      const drawn = await guarded(() => loadPages(at, end));
      if (!drawn) return;
      button.replaceWith(...drawn);
      // The button had the focus and is removed; the first loaded page gets it.
      if (drawn[0]) set(drawn[0], { tabindex: "-1" }).focus({ preventScroll: true });
    }
    return button;
  }

  async function later() {
    const { page: at, offset } = next;
    const reply = await guarded(() => get({ page: at, offset }));
    if (!reply) return;
    pages.append(...reply.pages.map((shown, place) => drawPage(shown, reply.chunks, place ? 0 : offset)));
    updateLaterButton(reply);
  }

  /** Runs one request at a time: a second click would load the same pages twice. */
  async function guarded(work) {
    const turn = opened;
    const stale = () => ended || turn !== opened;
    const pressed = document.activeElement;
    const buttons = [before, after, ...pages.querySelectorAll(".gap")];
    for (const button of buttons) button.disabled = true;
    pages.querySelector(".problem")?.remove();
    try {
      const found = await work();
      return stale() ? undefined : found;
    } catch (error) {
      if (!stale()) pages.append(problem(error));
      return undefined;
    } finally {
      for (const button of buttons) button.disabled = false;
      // Disabling a button removes its focus.
      if (!stale() && [pressed, document.body].includes(document.activeElement)) pressed.focus({ preventScroll: true });
    }
  }

  const following = (reply) => (reply.next_page ? { page: reply.next_page, offset: reply.next_offset ?? 0 } : undefined);

  function updateLaterButton(reply) {
    next = following(reply);
    after.hidden = !next;
  }

  function drawHeader({ document: told, page_count: count }, removalDenied) {
    const about = { ...told, filename: sanitizeName(told.filename) };
    const { tags, ...rest } = about.metadata ?? {};
    const jump = h("input", { type: "number", min: "1", max: String(count), value: String(first), "aria-label": "Page" });
    const go = (event) => {
      event.preventDefault();
      first = Math.max(1, Math.min(count, Number(jump.value) || 1));
      wanted = passageText = undefined;
      open();
    };
    const remove = async () => (await confirmRemoval(about)) && (location.hash = "#/knowledge/documents");
    const fact = ([name, value]) => [h("dt.break", name), h("dd.break", { dir: "auto" }, typeof value === "string" ? value : JSON.stringify(value))];
    fill(head,
      h("div.row", h("h2.break", { dir: "auto" }, about.filename), removalDenied ? null : h("button.danger.push", { onclick: remove }, icon("trash"), "Remove")),
      h("div.row.document-facts.quiet.small", badge((about.format ?? "").toUpperCase(), "accent"),
        h("span", bytes(about.size_bytes ?? 0)), h("span", plural(count, "page")), h("span", `added ${relativeTime(about.date_added)}`),
        (Array.isArray(tags) ? tags : tags ? [tags] : []).map((tag) => badge(String(tag))),
        count > 1 ? h("form.jump.push", { onsubmit: go }, "Page", jump, `of ${number(count)}`, h("button", { type: "submit" }, "Go")) : null),
      removalDenied ? h("p.quiet.small", inlineCode(removalDenied)) : null,
      Object.keys(rest).length ? h("details", h("summary", "Metadata"), h("dl.known", Object.entries(rest).flatMap(fact))) : null);
  }

  /** Renders a page, or the rest of one from `offset` on. */
  function drawPage({ page: at, text, label }, chunks = [], offset) {
    const here = chunks.filter((chunk) => chunk.page === at && chunk.start !== undefined && chunk.end > offset);
    const place = utf16Offsets(text, here.flatMap((chunk) => [Math.max(0, chunk.start - offset), chunk.end - offset]));
    const spots = here.filter((chunk) => chunk.start >= offset).map((chunk) => ({ at: place(chunk.start - offset), chunk }));
    const mine = here.find((chunk) => chunk.chunk_id === wanted);
    const range = mine ? [place(Math.max(0, mine.start - offset)), place(mine.end - offset)] : passageText ? locate(text, passageText) : undefined;
    return h("section.page.card", { "aria-label": label ?? `Page ${at}`, dataset: { page: at } },
      h("h3.quiet", label ?? `Page ${at}`, offset ? " (continued)" : ""),
      text.trim() ? h("div.page-text.break", { dir: "auto" }, renderText(text, spots, range, openedPassage.chunk === wanted ? openedPassage.query : "")) : h("p.quiet", "No text on this page."));
  }

  function scrollToPassage() {
    const found = pages.querySelector("mark.found");
    if (!found) return;
    found.focus({ preventScroll: true });
    (densest([...pages.querySelectorAll("mark.found mark")]) ?? found).scrollIntoView({ block: "center" });
  }

  open();
  return () => (ended = true);
}

/** The highlighted word with the most different highlighted words shortly below it. */
function densest(words) {
  const tops = words.map((word) => word.getBoundingClientRect().top);
  const kinds = words.map((_, at) => new Set(words.filter((_, other) => tops[other] >= tops[at] && tops[other] - tops[at] < MAX_WORD_DISTANCE).map((word) => word.textContent.toLowerCase())).size);
  return words[kinds.indexOf(Math.max(...kinds))];
}

/** The text with markers at the start of passages, and with the opened passage highlighted. */
function renderText(text, spots, range, query) {
  const cuts = [...new Set([0, text.length, ...spots.map((spot) => spot.at), ...(range ?? [])])].sort((a, b) => a - b);
  const nodes = [];
  const found = range ? h("mark.found", { tabindex: "-1" }) : undefined;
  cuts.forEach((from, at) => {
    const inside = range && from >= range[0] && from < range[1];
    if (inside && from === range[0]) nodes.push(found);
    const add = (node) => (inside ? found.append(node) : nodes.push(node));
    for (const spot of spots) if (spot.at === from) add(h("span.begins", { title: `Start of passage ${spot.chunk.chunk_index + 1}`, "aria-hidden": "true" }, spot.chunk.chunk_index + 1));
    if (at + 1 === cuts.length) return;
    const piece = text.slice(from, cuts[at + 1]);
    if (inside) found.append(...highlight(piece, findQueryTerms(piece, query)));
    else nodes.push(piece);
  });
  return nodes;
}

async function fetchPassageText(chunk) {
  try {
    const reply = await request("resources/read", { uri: `knowledge://chunks/${chunk}` });
    return reply.contents?.[0]?.text;
  } catch {
    return undefined;
  }
}

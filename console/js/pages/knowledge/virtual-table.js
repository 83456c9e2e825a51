// A virtualized table: only visible rows are rendered, and only their data is loaded.

import { h, fill } from "../../dom.js";

/** Rows per request, maximum number of cached pages, and rows rendered beyond the visible ones. */
const PAGE_SIZE = 100;
const MAX_CACHED_PAGES = 30;
const OVERSCAN = 6;
/** Maximum number of rows: browsers limit the height of elements to about 17 million pixels. */
const MAX_ROWS = 250_000;
/** Debounce before data is loaded while scrolling, in milliseconds. */
const SCROLL_DEBOUNCE = 70;

/**
 * { label, columns: [{ name, text, sort? }], cells: (item) => one child per column, load: ({ offset, limit, sort, order }) => { items, total },
 *   sort, order, onview: ({ first, last, total }) => void, onfailure: (error) => void }
 * Returns { element, refresh(), reset(), end() }: `refresh` reloads the visible rows, `reset` starts from the top.
 */
export function virtualTable({ label, columns, cells, load, sort, order, onview, onfailure }) {
  const heads = columns.map((column) => h("span.cell", { role: "columnheader", class: column.name },
    column.sort ? h("button", { onclick: () => sortBy(column.sort), dataset: { sort: column.sort } }, column.text, h("span.arrow", { "aria-hidden": "true" })) : h(column.hidden ? "span.visually-hidden" : "span", column.text)));
  const body = h("div.rows", { role: "rowgroup" });
  const head = h("div", { role: "rowgroup", class: "heads" }, h("div.vrow", { role: "row", "aria-rowindex": "1" }, heads));
  const element = h("div.vtable", { role: "table", "aria-label": label, "aria-busy": "true", tabindex: "0", onscroll: scrolled, onkeydown: keys }, head, body);

  const pages = new Map(); // Page number to items, least recently used first.
  const asked = new Map(); // Page number to its latest request; replies to older ones are dropped.
  const rows = new Map();
  let total;
  let requests = 0;
  let height = 44;
  let timer;
  let frame;

  const item = (index) => pages.get(Math.floor(index / PAGE_SIZE))?.[index % PAGE_SIZE];
  const count = () => Math.min(total ?? 0, MAX_ROWS);

  function measure() {
    height = parseFloat(getComputedStyle(element).getPropertyValue("--row")) || 44;
    body.style.height = `${count() * height}px`;
    draw();
  }

  /** The first and last visible row. */
  function visibleRange() {
    const first = Math.floor(element.scrollTop / height);
    const space = Math.max(0, element.clientHeight - head.offsetHeight);
    return [first, Math.min(count() - 1, Math.ceil((element.scrollTop + space) / height) - 1)];
  }

  function draw() {
    if (total === undefined) return;
    const [first, last] = visibleRange();
    const wanted = [];
    for (let index = Math.max(0, first - OVERSCAN); index <= Math.min(count() - 1, last + OVERSCAN); index++) wanted.push(index);
    // The focused row is kept, so that the focus stays in the table.
    const held = rowOf(document.activeElement);
    if (held !== undefined && held < count() && !wanted.includes(held)) held < first ? wanted.unshift(held) : wanted.push(held);
    const keep = new Set(wanted);
    for (const [index, row] of rows) if (!keep.has(index)) (row.element.remove(), rows.delete(index));
    let at = body.firstChild;
    for (const index of wanted) {
      let row = rows.get(index);
      if (!row) {
        row = { element: h("div.vrow", { role: "row", "aria-rowindex": index + 2, dataset: { index } }) };
        rows.set(index, row);
      }
      row.element.style.transform = `translateY(${index * height}px)`;
      fillRow(row, item(index));
      if (row.element === at) at = at.nextSibling;
      else body.insertBefore(row.element, at);
    }
    onview({ first: Math.min(first + 1, count()), last: last + 1, total });
  }

  function fillRow(row, data) {
    const text = JSON.stringify(data ?? null);
    if (row.text === text) return;
    row.text = text;
    const focused = row.element.contains(document.activeElement);
    const children = data ? cells(data) : columns.map((column, at) => (at ? "" : h("span.blank")));
    fill(row.element, columns.map((column, at) => h("span.cell", { role: "cell", class: column.name }, children[at])));
    if (focused) firstIn(row.element)?.focus();
  }

  function scrolled() {
    frame ??= requestAnimationFrame(() => {
      frame = undefined;
      draw();
    });
    clearTimeout(timer);
    timer = setTimeout(() => fetchVisible(false), SCROLL_DEBOUNCE);
  }

  async function fetchVisible(reload) {
    const [first, last] = total === undefined ? [0, 0] : visibleRange();
    const numbers = [...new Set([Math.floor(Math.max(0, first - OVERSCAN) / PAGE_SIZE), Math.floor(Math.max(0, last + OVERSCAN) / PAGE_SIZE)])]
      .filter((number) => number === 0 || number * PAGE_SIZE < count());
    await Promise.all(numbers.map(async (number) => {
      if (!reload && (asked.has(number) || pages.has(number))) return;
      const mine = ++requests;
      asked.set(number, mine);
      const isLatest = () => asked.get(number) === mine;
      try {
        const reply = await load({ offset: number * PAGE_SIZE, limit: PAGE_SIZE, sort, order });
        if (!isLatest()) return;
        pages.delete(number);
        pages.set(number, reply.items);
        while (pages.size > MAX_CACHED_PAGES) pages.delete(pages.keys().next().value);
        setTotal(reply.total);
      } catch (error) {
        if (isLatest()) onfailure(error);
      } finally {
        if (isLatest()) asked.delete(number);
      }
    }));
  }

  function setTotal(now) {
    element.setAttribute("aria-busy", "false");
    if (now !== total) {
      // Rows have moved, so other cached pages are outdated.
      if (total !== undefined) for (const number of pages.keys()) if (!asked.has(number)) pages.delete(number);
      total = now;
      element.setAttribute("aria-rowcount", now + 1);
      body.style.height = `${count() * height}px`;
      setTimeout(() => fetchVisible(false));
    }
    draw();
  }

  function sortBy(by) {
    order = by === sort ? (order === "asc" ? "desc" : "asc") : by === "filename" ? "asc" : "desc";
    sort = by;
    reset();
  }

  function markSort() {
    columns.forEach((column, at) => column.sort && heads[at].setAttribute("aria-sort", column.sort !== sort ? "none" : order === "asc" ? "ascending" : "descending"));
  }

  function refresh() {
    return fetchVisible(true);
  }

  function reset() {
    pages.clear();
    asked.clear();
    element.scrollTop = 0;
    element.setAttribute("aria-busy", "true");
    markSort();
    return fetchVisible(true);
  }

  const firstIn = (row) => row?.querySelector("a, button");
  const rowOf = (target) => (body.contains(target) ? Number(target.closest(".vrow")?.dataset.index) : undefined);

  /** Arrow keys move by one row, PageUp and PageDown by one screen, Home and End to the ends. */
  function keys(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || !total) return;
    const [first, last] = visibleRange();
    const from = rowOf(event.target);
    const step = Math.max(1, last - first - 1);
    const moves = { ArrowDown: from === undefined ? first : from + 1, ArrowUp: (from ?? first) - 1, PageDown: (from ?? first) + step, PageUp: (from ?? first) - step, Home: 0, End: count() - 1 };
    if (!(event.key in moves) || event.target.closest(".heads")) return;
    event.preventDefault();
    goTo(Math.max(0, Math.min(count() - 1, moves[event.key])));
  }

  async function goTo(index) {
    const space = element.clientHeight - head.offsetHeight;
    if (index * height < element.scrollTop) element.scrollTop = index * height;
    else if ((index + 1) * height > element.scrollTop + space) element.scrollTop = (index + 1) * height - space;
    draw();
    if (!item(index)) {
      // The table has the focus until the row is loaded.
      element.focus({ preventScroll: true });
      await fetchVisible(false);
    }
    (firstIn(rows.get(index)?.element) ?? element).focus({ preventScroll: true });
  }

  const sizes = new ResizeObserver(measure);
  sizes.observe(element);
  markSort();
  fetchVisible(false);
  return { element, refresh, reset, end: () => (asked.clear(), sizes.disconnect(), clearTimeout(timer)) };
}

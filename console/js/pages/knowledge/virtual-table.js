// A table of any length: only the rows in sight are in the page, and only their data is asked for.

import { h, fill } from "../../dom.js";

/** How many rows are asked for at once, how many such pages are kept, and how many rows are drawn beyond what is seen. */
const PAGE = 100;
const KEPT = 30;
const BEYOND = 6;
/** Browsers draw nothing beyond some seventeen million pixels; further rows are found by narrowing the list. */
const MOST = 250_000;
/** While the reader scrolls, nothing is asked for until it has slowed down, in milliseconds. */
const SLOW = 70;

/**
 * { label, columns: [{ name, text, sort? }], cells: (item) => one child per column, load: ({ offset, limit, sort, order }) => { items, total },
 *   sort, order, onview: ({ first, last, total }) => void, onfailure: (error) => void }
 * Gives { element, refresh(), reset(), end() }: `refresh` asks anew for what is seen, `reset` begins at the top.
 */
export function virtualTable({ label, columns, cells, load, sort, order, onview, onfailure }) {
  const heads = columns.map((column) => h("span.cell", { role: "columnheader", class: column.name },
    column.sort ? h("button", { onclick: () => sortBy(column.sort), dataset: { sort: column.sort } }, column.text, h("span.arrow", { "aria-hidden": "true" })) : h(column.hidden ? "span.visually-hidden" : "span", column.text)));
  const body = h("div.rows", { role: "rowgroup" });
  const head = h("div", { role: "rowgroup", class: "heads" }, h("div.vrow", { role: "row", "aria-rowindex": "1" }, heads));
  const element = h("div.vtable", { role: "table", "aria-label": label, "aria-busy": "true", tabindex: "0", onscroll: scrolled, onkeydown: keys }, head, body);

  const pages = new Map(); // The number of a page to its items, the most recently used last.
  const asked = new Map(); // The number of a page to the latest request for it; what older ones bring is not used.
  const rows = new Map();
  let total;
  let requests = 0;
  let height = 44;
  let timer;
  let frame;

  const item = (index) => pages.get(Math.floor(index / PAGE))?.[index % PAGE];
  const count = () => Math.min(total ?? 0, MOST);

  function measure() {
    height = parseFloat(getComputedStyle(element).getPropertyValue("--row")) || 44;
    body.style.height = `${count() * height}px`;
    draw();
  }

  /** The first and last row that are seen at least in part. */
  function seen() {
    const first = Math.floor(element.scrollTop / height);
    const space = Math.max(0, element.clientHeight - head.offsetHeight);
    return [first, Math.min(count() - 1, Math.ceil((element.scrollTop + space) / height) - 1)];
  }

  function draw() {
    if (total === undefined) return;
    const [first, last] = seen();
    const wanted = [];
    for (let index = Math.max(0, first - BEYOND); index <= Math.min(count() - 1, last + BEYOND); index++) wanted.push(index);
    // The row with the keyboard stays, so that the keyboard is not thrown out of the table.
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
    timer = setTimeout(() => fetchSeen(false), SLOW);
  }

  async function fetchSeen(anew) {
    const [first, last] = total === undefined ? [0, 0] : seen();
    const numbers = [...new Set([Math.floor(Math.max(0, first - BEYOND) / PAGE), Math.floor(Math.max(0, last + BEYOND) / PAGE)])]
      .filter((number) => number === 0 || number * PAGE < count());
    await Promise.all(numbers.map(async (number) => {
      if (!anew && (asked.has(number) || pages.has(number))) return;
      const mine = ++requests;
      asked.set(number, mine);
      const isLatest = () => asked.get(number) === mine;
      try {
        const reply = await load({ offset: number * PAGE, limit: PAGE, sort, order });
        if (!isLatest()) return;
        pages.delete(number);
        pages.set(number, reply.items);
        while (pages.size > KEPT) pages.delete(pages.keys().next().value);
        counted(reply.total);
      } catch (error) {
        if (isLatest()) onfailure(error);
      } finally {
        if (isLatest()) asked.delete(number);
      }
    }));
  }

  function counted(now) {
    element.setAttribute("aria-busy", "false");
    if (now !== total) {
      // Rows have moved: what was kept elsewhere is of no use any more.
      if (total !== undefined) for (const number of pages.keys()) if (!asked.has(number)) pages.delete(number);
      total = now;
      element.setAttribute("aria-rowcount", now + 1);
      body.style.height = `${count() * height}px`;
      setTimeout(() => fetchSeen(false));
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
    return fetchSeen(true);
  }

  function reset() {
    pages.clear();
    asked.clear();
    element.scrollTop = 0;
    element.setAttribute("aria-busy", "true");
    markSort();
    return fetchSeen(true);
  }

  const firstIn = (row) => row?.querySelector("a, button");
  const rowOf = (target) => (body.contains(target) ? Number(target.closest(".vrow")?.dataset.index) : undefined);

  /** Arrows go from row to row; the rest moves by what is seen at once, or to the ends. */
  function keys(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || !total) return;
    const [first, last] = seen();
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
      // The keyboard waits at the table until the row is there.
      element.focus({ preventScroll: true });
      await fetchSeen(false);
    }
    (firstIn(rows.get(index)?.element) ?? element).focus({ preventScroll: true });
  }

  const sizes = new ResizeObserver(measure);
  sizes.observe(element);
  markSort();
  fetchSeen(false);
  return { element, refresh, reset, end: () => (asked.clear(), sizes.disconnect(), clearTimeout(timer)) };
}

// Small parts that several pages show.

import { h, icon } from "../dom.js";
import { percent } from "../format.js";
import { mayPass } from "../mcp.js";
import { ticked } from "./said.js";

/** Shares as bars, largest first if `sort`. items: [{ name, value (0..1), text?, colour? }] */
export function bars(items, { sort = false } = {}) {
  const shown = sort ? [...items].sort((a, b) => b.value - a.value) : items;
  const best = Math.max(...shown.map((item) => item.value), 0);
  const list = h("div.bars", { role: "list" });
  for (const item of shown) {
    const fill = h("div.fill");
    if (item.colour) fill.style.background = item.colour;
    list.append(
      h(item.value === best && best > 0 ? "div.bar.first" : "div.bar", { role: "listitem" },
        h("span.break", item.name), h("span.track", { "aria-hidden": "true" }, fill), h("span.value", item.text ?? percent(item.value))),
    );
    requestAnimationFrame(() => (fill.style.transform = `scaleX(${Math.max(0, Math.min(1, item.value))})`));
  }
  return list;
}

/** Changes bars that are shown already, so that they move instead of jumping. Falls back to drawing anew. */
export function moveBars(list, items) {
  const rows = [...list.children];
  if (rows.length !== items.length || rows.some((row, at) => row.firstElementChild.textContent !== items[at].name)) {
    list.replaceChildren(...bars(items).children);
    return;
  }
  const best = Math.max(...items.map((item) => item.value), 0);
  items.forEach((item, at) => {
    rows[at].classList.toggle("first", item.value === best && best > 0);
    rows[at].querySelector(".fill").style.transform = `scaleX(${item.value})`;
    rows[at].querySelector(".value").textContent = item.text ?? percent(item.value);
  });
}

/** A line over time. values: numbers or null where nothing happened. */
export function sparkline(values, { label, bad = false } = {}) {
  const width = 100;
  const height = 30;
  const known = values.filter((value) => value !== null);
  const most = Math.max(...known, 0) || 1;
  const step = width / Math.max(values.length - 1, 1);
  const points = values.map((value, at) => [at * step, height - 1 - ((value ?? 0) / most) * (height - 3)]);
  const line = points.map(([x, y], at) => `${at ? "L" : "M"}${x.toFixed(2)} ${y.toFixed(2)}`).join("");
  // Without a word for it, it says nothing to whoever does not see it.
  const told = label ? { role: "img", "aria-label": label } : { "aria-hidden": "true" };
  const drawing = h(bad ? "svg.sparkline.bad" : "svg.sparkline", { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", ...told });
  if (points.length > 1) drawing.append(h("path.area", { d: `${line}L${width} ${height}L0 ${height}Z` }), h("path.line", { d: line }));
  return drawing;
}

/** Nothing there yet: what would be, and how to get it. */
export const empty = (title, ...rest) => h("div.empty", h("h2", title), rest.map((part) => (typeof part === "string" ? h("p", part) : part)));

/**
 * A failure where the content would be, with what to do; another try is offered where it may help. With `alone`, it is
 * tried again by itself when a lost server returns: only for what reads, since what costs money or changes something is
 * for the reader to send again.
 */
export const problem = (error, again, { alone = false } = {}) =>
  h("div.problem", { role: "alert" }, ticked(error.message ?? String(error)), again && mayPass(error) ? [" ", h("button.plain", { onclick: again, dataset: alone ? { again: "" } : {} }, "Try again")] : null);

export const badge = (text, kind = "") => h(kind ? `span.badge.${kind}` : "span.badge", text);

/** Text to copy, such as a command. */
export function copyable(text) {
  const button = h("button.plain", { "aria-label": "Copy", onclick: copy }, icon("copy"));
  async function copy() {
    try {
      await navigator.clipboard.writeText(text);
      button.replaceChildren(icon("check"));
    } catch {
      getSelection().selectAllChildren(button.previousElementSibling);
    }
  }
  return h("div.row.copyable", h("pre", { tabindex: "0" }, text), button);
}

/** JSON as people read it. */
export const json = (value) => h("pre", { tabindex: "0" }, JSON.stringify(value, null, 2));

/** Links between the parts of a page: [["search", "Search"], …] */
export function tabs(page, current, items) {
  return h("nav.tabs", { "aria-label": "Parts of this page" },
    items.map(([name, text]) => h("a", { href: `#/${page}/${name}`, "aria-current": name === current ? "page" : null }, text)));
}

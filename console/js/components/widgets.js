// Widgets shared by several pages: bars, badges, empty states, error messages, tabs.

import { h, icon } from "../dom.js";
import { percent } from "../format.js";
import { isRetryable } from "../mcp.js";
import { inlineCode } from "./inline-code.js";

/** A bar chart of shares, largest first if `sort`. items: [{ name, value (0..1), text?, colour? }] */
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

/** Updates bars in place, so that changes are animated. Redraws them if the items have changed. */
export function updateBars(list, items) {
  const rows = [...list.children];
  if (rows.length !== items.length || rows.some((row, index) => row.firstElementChild.textContent !== items[index].name)) {
    list.replaceChildren(...bars(items).children);
    return;
  }
  const best = Math.max(...items.map((item) => item.value), 0);
  items.forEach((item, index) => {
    rows[index].classList.toggle("first", item.value === best && best > 0);
    rows[index].querySelector(".fill").style.transform = `scaleX(${item.value})`;
    rows[index].querySelector(".value").textContent = item.text ?? percent(item.value);
  });
}

/** An empty state: what is missing, and how to add it. */
export const empty = (title, ...rest) => h("div.empty", h("h2", title), rest.map((part) => (typeof part === "string" ? h("p", part) : part)));

/**
 * An error message in place of the content, with a retry button for transient errors. With `autoRetry`, the request is
 * retried after a reconnect: only for read requests, since the user decides whether to repeat one that costs money or
 * changes something.
 */
export const problem = (error, retry, { autoRetry = false } = {}) =>
  h("div.problem", { role: "alert" }, inlineCode(error.message ?? String(error)), retry && isRetryable(error) ? [" ", h("button.plain", { onclick: retry, dataset: autoRetry ? { autoRetry: "" } : {} }, "Try again")] : null);

export const badge = (text, kind = "") => h(kind ? `span.badge.${kind}` : "span.badge", text);

/** Text with a copy button, such as a command. */
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

/** Indented JSON. */
export const json = (value) => h("pre", { tabindex: "0" }, JSON.stringify(value, null, 2));

/** Tabs of a page: [["search", "Search"], …] */
export function tabs(page, current, items) {
  return h("nav.tabs", { "aria-label": "Sections" },
    items.map(([name, text]) => h("a", { href: `#/${page}/${name}`, "aria-current": name === current ? "page" : null }, text)));
}

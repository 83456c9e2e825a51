// What the keyboard does everywhere. Nothing here is the only way to do it.

import { h } from "./dom.js";
import { tell } from "./components/dialog.js";

const PAGES = { o: "overview", k: "knowledge", c: "classify", r: "routing", t: "tools" };
/** How long the second key of two may take, in milliseconds. */
const SECOND = 1_200;

let first;

export function listen() {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    if (event.target.closest("input, textarea, select, [contenteditable]")) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    const after = first && performance.now() - first < SECOND;
    first = undefined;
    if (after && PAGES[event.key]) {
      event.preventDefault();
      location.hash = `#/${PAGES[event.key]}`;
    } else if (event.key === "g") {
      first = performance.now();
    } else if (event.key === "/") {
      const field = document.querySelector("[data-search]");
      if (field) {
        event.preventDefault();
        field.focus();
        field.select?.();
      }
    } else if (event.key === "?") {
      event.preventDefault();
      help();
    }
  });
}

function help() {
  const rows = [
    ["g then o", "Overview"], ["g then k", "Knowledge"], ["g then c", "Classify"], ["g then r", "Routing"], ["g then t", "Tools"],
    ["/", "To the field that searches or asks"], ["Escape", "Out of a field or a dialog"], ["?", "This list"],
  ];
  tell("Keys", h("table", h("tbody", rows.map(([key, what]) => h("tr", h("td", h("kbd", key)), h("td", what))))));
}

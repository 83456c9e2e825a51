// Global keyboard shortcuts. Every action is also available without them.

import { h } from "./dom.js";
import { messageDialog } from "./components/dialog.js";

const PAGES = { o: "overview", k: "knowledge", c: "classify", r: "routing", t: "tools" };
/** Maximum time between the two keys of a sequence, in milliseconds. */
const SEQUENCE_TIMEOUT = 1_200;

let prefixPressedAt;

export function installShortcuts() {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    if (event.target.closest("input, textarea, select, [contenteditable]")) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    const hasPrefix = prefixPressedAt && performance.now() - prefixPressedAt < SEQUENCE_TIMEOUT;
    prefixPressedAt = undefined;
    if (hasPrefix && PAGES[event.key]) {
      event.preventDefault();
      location.hash = `#/${PAGES[event.key]}`;
    } else if (event.key === "g") {
      prefixPressedAt = performance.now();
    } else if (event.key === "/") {
      const field = document.querySelector("[data-search]");
      if (field) {
        event.preventDefault();
        field.focus();
        field.select?.();
      }
    } else if (event.key === "?") {
      event.preventDefault();
      showHelp();
    }
  });
}

function showHelp() {
  const rows = [
    ["g then o", "Overview"], ["g then k", "Knowledge"], ["g then c", "Classify"], ["g then r", "Routing"], ["g then t", "Tools"],
    ["/", "Focus the search or question field"], ["Escape", "Leave a field or close a dialog"], ["?", "Show keyboard shortcuts"],
  ];
  messageDialog("Keyboard shortcuts", h("table", h("tbody", rows.map(([key, what]) => h("tr", h("td", h("kbd", key)), h("td", what))))));
}

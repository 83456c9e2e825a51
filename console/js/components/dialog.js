// A question in front of the page. The browser's own dialog keeps the keyboard inside of it and gives it back.

import { h, fill } from "../dom.js";

/**
 * Shows a dialog and gives what was decided: `value()` when confirmed, undefined when dismissed.
 * { title, body, confirm, cancel, danger, dismissible = true, value = () => true }
 * It belongs to the page it was asked on: one that may be dismissed goes with that page.
 */
export function dialog({ title, body, confirm = "OK", cancel = "Cancel", danger = false, dismissible = true, value = () => true }) {
  return new Promise((resolve) => {
    const yes = h(danger ? "button.danger" : "button.main", { type: "submit" }, confirm);
    const no = dismissible ? h("button", { type: "button", onclick: () => box.close() }, cancel) : null;
    const form = h("form", { method: "dialog" }, h("h2", { id: "dialog-title" }, title), h("div.stack", body), h("div.actions", no, yes));
    const box = h("dialog", { "aria-labelledby": "dialog-title" }, form);
    let decided;
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      decided = { value: value() };
      box.close();
    });
    box.addEventListener("cancel", (event) => dismissible || event.preventDefault());
    const forget = dismissible ? closeWithPage(box) : undefined;
    const goOn = place();
    box.addEventListener("close", () => {
      if (!decided && !dismissible) return box.showModal();
      forget?.();
      box.remove();
      goOn();
      resolve(decided?.value);
    });
    document.body.append(box);
    box.showModal();
    (form.querySelector("input, textarea, select") ?? yes).focus();
  });
}

/**
 * Remembers where somebody was writing, and gives a function that goes back there. The browser gives the keyboard back to
 * the field without its place in the text, and then what is typed goes nowhere.
 */
function place() {
  const field = document.activeElement;
  if (!field?.matches("textarea")) return () => {};
  const { selectionStart, selectionEnd } = field;
  return () => {
    if (document.activeElement !== field) return;
    field.blur();
    field.focus({ preventScroll: true });
    field.setSelectionRange(selectionStart, selectionEnd);
  };
}

/** Closes a dialog when another page is gone to; gives a function that ends that. */
function closeWithPage(box) {
  const close = () => box.close();
  addEventListener("hashchange", close);
  return () => removeEventListener("hashchange", close);
}

/** Shows something to read, with one way out. */
export const tell = (title, ...body) => {
  const close = h("button.main", { onclick: () => box.close() }, "Close");
  const box = h("dialog", { "aria-labelledby": "dialog-title" }, h("h2", { id: "dialog-title" }, title), h("div.stack"), h("div.actions", close));
  fill(box.querySelector(".stack"), ...body);
  const forget = closeWithPage(box);
  box.addEventListener("close", () => {
    forget();
    box.remove();
  });
  document.body.append(box);
  box.showModal();
  close.focus();
};

// Modal dialogs, based on the dialog element, which traps and restores the focus.

import { h, fill } from "../dom.js";

/**
 * Shows a dialog and resolves to `value()` when confirmed, undefined when dismissed.
 * { title, body, confirm, cancel, danger, dismissible = true, value = () => true }
 * A dismissible dialog closes on navigation.
 */
export function dialog({ title, body, confirm = "OK", cancel = "Cancel", danger = false, dismissible = true, value = () => true }) {
  return new Promise((resolve) => {
    const confirmButton = h(danger ? "button.danger" : "button.main", { type: "submit" }, confirm);
    const cancelButton = dismissible ? h("button", { type: "button", onclick: () => box.close() }, cancel) : null;
    const form = h("form", { method: "dialog" }, h("h2", { id: "dialog-title" }, title), h("div.stack", body), h("div.actions", cancelButton, confirmButton));
    const box = h("dialog", { "aria-labelledby": "dialog-title" }, form);
    let decision;
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      decision = { value: value() };
      box.close();
    });
    box.addEventListener("cancel", (event) => dismissible || event.preventDefault());
    const removeListener = dismissible ? closeOnNavigation(box) : undefined;
    const restoreSelection = saveSelection();
    box.addEventListener("close", () => {
      if (!decision && !dismissible) return box.showModal();
      removeListener?.();
      box.remove();
      restoreSelection();
      resolve(decision?.value);
    });
    document.body.append(box);
    box.showModal();
    (form.querySelector("input, textarea, select") ?? confirmButton).focus();
  });
}

/**
 * Saves the selection of the focused text field and returns a function that restores it. The browser restores the focus
 * without the selection, and typed characters are then lost.
 */
function saveSelection() {
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

/** Closes a dialog on navigation; returns a function that removes the listener. */
function closeOnNavigation(box) {
  const close = () => box.close();
  addEventListener("hashchange", close);
  return () => removeEventListener("hashchange", close);
}

/** Shows a message with a close button. */
export const messageDialog = (title, ...body) => {
  const close = h("button.main", { onclick: () => box.close() }, "Close");
  const box = h("dialog", { "aria-labelledby": "dialog-title" }, h("h2", { id: "dialog-title" }, title), h("div.stack"), h("div.actions", close));
  fill(box.querySelector(".stack"), ...body);
  const removeListener = closeOnNavigation(box);
  box.addEventListener("close", () => {
    removeListener();
    box.remove();
  });
  document.body.append(box);
  box.showModal();
  close.focus();
};

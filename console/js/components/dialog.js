// A question in front of the page. The browser's own dialog keeps the keyboard inside of it and gives it back.

import { h, fill } from "../dom.js";

/**
 * Shows a dialog and gives what was decided: `value()` when confirmed, undefined when dismissed.
 * { title, body, confirm, cancel, danger, dismissible = true, value = () => true, wide }
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
    box.addEventListener("close", () => {
      if (!decided && !dismissible) return box.showModal();
      box.remove();
      resolve(decided?.value);
    });
    document.body.append(box);
    box.showModal();
    (form.querySelector("input, textarea, select") ?? yes).focus();
  });
}

/** Shows something to read, with one way out. */
export const tell = (title, ...body) => {
  const close = h("button.main", { onclick: () => box.close() }, "Close");
  const box = h("dialog", { "aria-labelledby": "dialog-title" }, h("h2", { id: "dialog-title" }, title), h("div.stack"), h("div.actions", close));
  fill(box.querySelector(".stack"), ...body);
  box.addEventListener("close", () => box.remove());
  document.body.append(box);
  box.showModal();
  close.focus();
};

// Toast notifications. They disappear after a timeout; error toasts stay until dismissed.

import { h, icon } from "../dom.js";

/** In milliseconds. */
const DISPLAY_DURATION = 4_000;
const MAX_TOASTS = 4;

export function toast(text, { bad = false } = {}) {
  const container = document.getElementById("toasts");
  const close = h("button", { "aria-label": "Dismiss", onclick: () => box.remove() }, icon("close"));
  const box = h(bad ? "div.toast.bad" : "div.toast", h("span.break", text), close);
  container.append(box);
  while (container.childElementCount > MAX_TOASTS) container.firstElementChild.remove();
  if (!bad) setTimeout(() => box.remove(), DISPLAY_DURATION);
}

/** Shows an error, except for lost connections, which the connection notice reports, and cancellations by the user. */
export function toastError(error) {
  if (error.kind === "offline" || error.kind === "cancelled") return;
  toast(error.message, { bad: true });
}

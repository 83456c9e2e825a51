// A sentence at the edge that goes by itself; one about a failure stays until it is read.

import { h, icon } from "../dom.js";

const SHOWN = 4_000;
const MOST = 4;

export function toast(text, { bad = false } = {}) {
  const place = document.getElementById("toasts");
  const close = h("button", { "aria-label": "Dismiss", onclick: () => box.remove() }, icon("close"));
  const box = h(bad ? "div.toast.bad" : "div.toast", h("span.break", text), close);
  place.append(box);
  while (place.childElementCount > MOST) place.firstElementChild.remove();
  if (!bad) setTimeout(() => box.remove(), SHOWN);
}

/** Tells of a failure, unless the bar above tells of it already or the reader wanted it so. */
export function tellFailure(error) {
  if (error.kind === "offline" || error.kind === "cancelled") return;
  toast(error.message, { bad: true });
}

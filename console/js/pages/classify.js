// Classify

import { h } from "../dom.js";

export const title = "Classify";

export function show(place) {
  place.append(h("h1", title));
}

// Knowledge

import { h } from "../dom.js";

export const title = "Knowledge";

export function show(place) {
  place.append(h("h1", title));
}

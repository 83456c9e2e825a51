// Routing

import { h } from "../dom.js";

export const title = "Routing";

export function show(place) {
  place.append(h("h1", title));
}

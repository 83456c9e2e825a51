// Tools

import { h } from "../dom.js";

export const title = "Tools";

export function show(place) {
  place.append(h("h1", title));
}

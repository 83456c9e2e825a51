// Overview

import { h } from "../dom.js";

export const title = "Overview";

export function show(place) {
  place.append(h("h1", title));
}

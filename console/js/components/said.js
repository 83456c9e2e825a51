// What the server says, as people read it.

import { h } from "../dom.js";

/** Reasons come without a capital and without a dot. */
export const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1) + (/[.!?…]$/.test(text) ? "" : ".");

/** What stands between backticks, as something to type. */
export const ticked = (text) => text.split("`").map((part, at) => (at % 2 ? h("code", part) : part));

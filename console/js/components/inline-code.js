// Formats messages of the server for display.

import { h } from "../dom.js";

/** Adds the capital letter and the period that error reasons lack. */
export const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1) + (/[.!?…]$/.test(text) ? "" : ".");

/** Renders text between backticks as code elements. */
export const inlineCode = (text) => text.split("`").map((part, index) => (index % 2 ? h("code", part) : part));

// How the parts of this page ask the server: the newest question counts, and what cannot be asked for is said.

import { h } from "../../dom.js";
import { empty } from "../../components/parts.js";
import { ticked } from "../../components/said.js";

/** Signals for one request after the other: a new one ends the one before. */
export function newest() {
  let current;
  return {
    signal() {
      current?.abort();
      current = new AbortController();
      return current.signal;
    },
    end: () => current?.abort(),
  };
}

/** Said where a tool is missing. `what` ends the sentence. */
export const missing = (what) =>
  empty("This server does not offer that", `It has no tool to ${what}. It may be older than this page, or its settings keep the tool from you: a newer corbie, or a token with more trust, has it.`);

/** Said where a tool is there and this page may not use it: `why`, as `allowed` gives it. */
export const hindered = (why) => empty("This cannot be done from here", h("p", ticked(why)));

/** The last part of a path; the whole of it is long and stands in a title. */
export const fileName = (path) => path.split(/[\\/]/).pop();

// How the parts of this page ask the server: the newest question counts, and only tools that are there are asked for.

import { all } from "../../mcp.js";
import { empty } from "../../components/parts.js";

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

/** The first of these tools that the server offers, or undefined. */
export async function offered(...names) {
  const there = new Set((await all("tools/list", "tools")).map((tool) => tool.name));
  return names.find((name) => there.has(name));
}

/** Said where a tool is missing. `what` ends the sentence. */
export const missing = (what) =>
  empty("This server does not offer that", `It has no tool to ${what}. It may be older than this page, or its settings keep the tool from you: a newer corbie, or a token with more trust, has it.`);

/** The last part of a path; the whole of it is long and stands in a title. */
export const fileName = (path) => path.split(/[\\/]/).pop();

// What this page may use. The server says of every tool what it does and how far its callers must be trusted, and of this
// page how far it is: so what would be refused is not offered, and what is missing is said in its place.

import { all, token } from "./mcp.js";
import { server } from "./connection.js";

/** From the least to the most. */
const LEVELS = ["UNTRUSTED", "VERIFIED", "TRUSTED"];

/** How far the callers of a tool must be trusted: what its effect asks for, or more where it says so itself. */
function needed({ annotations = {}, metadata = {} }) {
  const effect = annotations.destructiveHint === true ? 2 : annotations.readOnlyHint === false ? 1 : 0;
  return Math.max(effect, LEVELS.indexOf(String(metadata.trust).toUpperCase()));
}

/** What is missing to use a tool, in a sentence that `what` begins; undefined where nothing is. */
export function lacking(tool, what) {
  if (!tool) return `${what} is not offered to this page: the server has no tool for it, or the token of this page does not allow it.`;
  const has = LEVELS.indexOf(server()?.trust);
  const level = LEVELS[needed(tool)].toLowerCase();
  if (has < 0 || has >= needed(tool)) return undefined;
  // Who came without a token may be where none is asked for; there the settings alone decide.
  const other = token.get() ? `, or make a token that has it: \`corbie tokens create console --trust ${level}\`` : "";
  return `${what} needs trust \`${level}\`, and this page is \`${LEVELS[has].toLowerCase()}\`. Whoever runs the server can raise it with \`trust\` in the settings${other}.`;
}

/** Asks for the tools. `has(name)` then says whether one is there, `lacks(name, what)` what is missing to use it. */
export async function allowed() {
  const tools = await all("tools/list", "tools");
  const find = (name) => tools.find((tool) => tool.name === name);
  return { tools, has: (name) => Boolean(find(name)), lacks: (name, what) => lacking(find(name), what) };
}

// Permissions of the console's client. Each tool has a required trust level, and the server reports the level of this client:
// calls that would be denied are not offered, and the page explains which level is missing.

import { listAll, token } from "./mcp.js";
import { server } from "./connection.js";

/** In ascending order. */
const TRUST_LEVELS = ["UNTRUSTED", "VERIFIED", "TRUSTED"];

/** The required trust level of a tool, as an index: derived from its annotations, or a higher one from its metadata. */
function requiredLevel({ annotations = {}, metadata = {} }) {
  const effect = annotations.destructiveHint === true ? 2 : annotations.readOnlyHint === false ? 1 : 0;
  return Math.max(effect, TRUST_LEVELS.indexOf(String(metadata.trust).toUpperCase()));
}

/** Why a tool cannot be used, as a sentence with the subject `what`; undefined if it can. */
export function denialReason(tool, what) {
  if (!tool) return `${what} is not available: the server has no such tool, or your token does not permit it.`;
  const actual = TRUST_LEVELS.indexOf(server()?.trust);
  const level = TRUST_LEVELS[requiredLevel(tool)].toLowerCase();
  if (actual < 0 || actual >= requiredLevel(tool)) return undefined;
  // Without a token, authentication may be off; then only the settings determine the level.
  const tokenHint = token.get() ? `, or create a token: \`corbie tokens create console --trust ${level}\`` : "";
  return `${what} requires trust level \`${level}\`; this page has \`${TRUST_LEVELS[actual].toLowerCase()}\`. The operator can raise it with \`trust\` in the settings${tokenHint}.`;
}

/** Loads the tools. `has(name)` is whether one exists, `denialReason(name, what)` why it cannot be used, if so. */
export async function loadPermissions() {
  const tools = await listAll("tools/list", "tools");
  const find = (name) => tools.find((tool) => tool.name === name);
  return { tools, has: (name) => Boolean(find(name)), denialReason: (name, what) => denialReason(find(name), what) };
}

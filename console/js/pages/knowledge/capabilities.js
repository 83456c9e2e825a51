// What the server at hand can do. Servers differ in age and in what they let this page use, so it is asked once.

import { loadPermissions } from "../../permissions.js";
import { onReconnect, onTokenChange } from "../../connection.js";

let known;
// A server that was away may be another one now, and another token may do other things.
for (const changed of [onReconnect, onTokenChange]) changed(() => (known = undefined));

/** { knowledge, tasks, show: names of its arguments, sorts: what it sorts by, chunks, lacks: as `allowed` gives it } */
export function loadCapabilities() {
  known ??= loadPermissions().then(({ tools, denialReason }) => {
    const find = (name) => tools.find((tool) => tool.name === name);
    const takes = (name) => find(name)?.inputSchema?.properties ?? {};
    return {
      denialReason,
      knowledge: Boolean(find("knowledge-show")),
      tasks: Boolean(find("knowledge-tasks")),
      show: new Set(Object.keys(takes("knowledge-show"))),
      sorts: new Set(takes("knowledge-show").sort_by?.enum ?? []),
      chunks: "chunks" in takes("knowledge-get"),
    };
  }).catch((error) => {
    known = undefined;
    throw error;
  });
  return known;
}

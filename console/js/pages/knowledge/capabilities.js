// Capabilities of the server: they depend on its version and on the permissions of this client. Loaded once.

import { loadPermissions } from "../../permissions.js";
import { onReconnect, onTokenChange } from "../../connection.js";

let known;
// After a reconnect the server can have another version, and another token can have other permissions.
for (const changed of [onReconnect, onTokenChange]) changed(() => (known = undefined));

/** { denialReason, knowledge, tasks, show: argument names of `knowledge-show`, sorts: its sort keys, chunks } */
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

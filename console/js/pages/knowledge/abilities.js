// What the server at hand can do. Servers differ in age and in what they let this page use, so it is asked once.

import { all } from "../../mcp.js";

let known;

/** { knowledge, tasks, remove, show: names of its arguments, sorts: what it sorts by, chunks } */
export function abilities() {
  known ??= all("tools/list", "tools").then((tools) => {
    const find = (name) => tools.find((tool) => tool.name === name);
    const takes = (name) => find(name)?.inputSchema?.properties ?? {};
    return {
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

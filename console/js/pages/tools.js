// Tools: a form per tool with the raw exchange, the trust of this client, and the audit log.

import { h, fill } from "../dom.js";
import { tabs } from "../components/widgets.js";
import { list } from "./tools/list.js";
import { audit } from "./tools/audit.js";

export const title = "Tools";

export function show(container, [view = "call", name]) {
  const body = h("div.stack");
  const tab = view === "audit" ? "audit" : "call";
  fill(container, h("header.head", h("h1", title), h("p", "Call any MCP tool of this server.")),
    tabs("tools", tab, [["call", "Call a tool"], ["audit", "Audit"]]), body);
  return tab === "audit" ? audit(body) : list(body, name);
}

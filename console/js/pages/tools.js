// Every tool as a form, what was said on the wire, how far this page is trusted, and who called what.

import { h, fill } from "../dom.js";
import { tabs } from "../components/parts.js";
import { list } from "./tools/list.js";
import { audit } from "./tools/audit.js";

export const title = "Tools";

export function show(place, [part = "call", name]) {
  const body = h("div.stack");
  const chosen = part === "audit" ? "audit" : "call";
  fill(place, h("header.head", h("h1", title), h("p", "What MCP clients can call here. This page calls them the same way.")),
    tabs("tools", chosen, [["call", "Call a tool"], ["audit", "Trust and audit"]]), body);
  return chosen === "audit" ? audit(body) : list(body, name);
}

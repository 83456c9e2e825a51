// Trust and permissions of this client, and the audit log.

import { h, fill } from "../../dom.js";
import { call } from "../../mcp.js";
import { poll, server } from "../../connection.js";
import { badge, empty, problem } from "../../components/widgets.js";
import { milliseconds, plural, relativeTime } from "../../format.js";

/** In milliseconds. */
const POLL_INTERVAL = 3_000;
const MAX_ENTRIES = 100;

const TRUST_DESCRIPTIONS = {
  TRUSTED: "All tools, including destructive ones, and the audit log.",
  VERIFIED: "Tools that read or add data, but no destructive ones.",
  UNTRUSTED: "Read-only tools.",
};

/** Tools that the console polls; hidden by default, since they outnumber all other calls. */
const POLLED_TOOLS = new Set(["inspect_server", "check_setup", "list_providers", "list_categories", "knowledge-status", "knowledge-tasks", "knowledge-show"]);

export function audit(container) {
  const permissions = h("section.card");
  const calls = h("section.card", h("h2", "Recent calls"));
  fill(container, permissions, calls);
  const showPolled = h("input", { type: "checkbox", onchange: () => lastAudit && drawCalls(calls, lastAudit, canReadAudit, showPolled) });
  let lastAudit;
  // Only trusted clients may read the audit log.
  let canReadAudit = server()?.trust === "TRUSTED";
  return poll(async () => {
    let info;
    try {
      info = await call("inspect_server", canReadAudit ? { audit: MAX_ENTRIES } : {}, { quiet: true });
    } catch (error) {
      if (!canReadAudit || error.kind !== "failed") throw error;
      canReadAudit = false;
      info = await call("inspect_server", {}, { quiet: true });
    }
    drawPermissions(permissions, info);
    lastAudit = info.audit;
    drawCalls(calls, lastAudit, canReadAudit, showPolled);
  }, POLL_INTERVAL, (error) => fill(calls, h("h2", "Recent calls"), problem(error)));
}

function drawPermissions(container, info) {
  const listOf = (names) => (names === "all" ? "all" : (names ?? []).join(", ") || "none");
  fill(container, h("header", h("h2", "Permissions of this page"), badge(info.trust?.toLowerCase(), info.trust === "TRUSTED" ? "good" : "")),
    h("dl.facts",
      fact("Caller", info.caller), fact("Trust", TRUST_DESCRIPTIONS[info.trust]), fact("Tools", listOf(info.permissions?.tools)), fact("Knowledge bases", listOf(info.permissions?.collections)),
      fact("Audit log", `${plural(info.audit.recorded, "call")} recorded${info.audit.has_sink ? ", written to a file" : ", in memory only (set audit.file to write a file)"}${info.audit.sink_failing ? "; writing currently fails" : ""}`)));
}

function drawCalls(container, audit, canReadAudit, showPolled) {
  if (!canReadAudit) return void fill(container, h("h2", "Recent calls"), h("p.quiet", "Only callers with trust level trusted can read the audit log."));
  const list = (audit.latest ?? []).filter(({ tool }) => showPolled.checked || !POLLED_TOOLS.has(tool));
  fill(container, h("header", h("h2", "Recent calls"), h("label.inline.push", showPolled, "Show status polling")), list.length
    ? h("div.table", { tabindex: "0", role: "region", "aria-label": "Recent calls" }, h("table", h("thead", h("tr", ["When", "Tool", "Outcome", "Caller", "Duration"].map((name) => h(name === "Duration" ? "th.n" : "th", { scope: "col" }, name)))),
      h("tbody", list.map((entry) => h("tr", h("td.once", { title: entry.time }, relativeTime(entry.time)), h("td.whole", entry.tool), h("td", badge(entry.outcome, { success: "good", blocked: "warn", error: "bad" }[entry.outcome] ?? "")),
        h("td.whole", `${entry.caller} (${entry.via}, ${entry.trust?.toLowerCase()})`), h("td.n", milliseconds(entry.duration_us / 1000)))))))
    : empty("No calls yet", "Tool calls of all clients are listed here with caller, result and duration. Arguments and results are not recorded."),
    audit.events?.length ? [h("h3.apart", "Events"), h("ul.plain", audit.events.map((event) => h("li.small", h("span.quiet", relativeTime(event.time)), ` ${event.event} `, h("span.quiet.break", event.detail ?? ""))))] : null);
}

const fact = (name, value) => (value === undefined ? null : [h("dt", name), h("dd.break", value)]);

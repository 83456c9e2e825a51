// How far this page is trusted, what it may use, and the last calls of everybody.

import { h, fill } from "../../dom.js";
import { call } from "../../mcp.js";
import { poll, server } from "../../connection.js";
import { badge, empty, problem } from "../../components/parts.js";
import { milliseconds, plural, when } from "../../format.js";

const EVERY = 3_000;
const SHOWN = 100;

const MEANS = {
  TRUSTED: "It may call every tool, also those that remove things, and see what others do.",
  VERIFIED: "It may call what reads and adds; nothing that removes.",
  UNTRUSTED: "It may call what only reads.",
};

/** What pages like this one ask all the time; a call somebody made is lost among them. */
const LOOKING = new Set(["inspect_server", "check_setup", "list_providers", "list_categories", "knowledge-status", "knowledge-tasks", "knowledge-show"]);

export function audit(place) {
  const standing = h("section.card");
  const calls = h("section.card", h("h2", "Last calls"));
  fill(place, standing, calls);
  const every = h("input", { type: "checkbox", onchange: () => last && drawCalls(calls, last, audited, every) });
  let last;
  // Others are refused what everybody called, so it is not asked for.
  let audited = server()?.trust === "TRUSTED";
  return poll(async () => {
    let seen;
    try {
      seen = await call("inspect_server", audited ? { audit: SHOWN } : {}, { quiet: true });
    } catch (error) {
      if (!audited || error.kind !== "failed") throw error;
      audited = false;
      seen = await call("inspect_server", {}, { quiet: true });
    }
    drawStanding(standing, seen);
    last = seen.audit;
    drawCalls(calls, last, audited, every);
  }, EVERY, (error) => fill(calls, h("h2", "Last calls"), problem(error)));
}

function drawStanding(place, seen) {
  const only = (what) => (what === "all" ? "all" : (what ?? []).join(", ") || "none");
  fill(place, h("header", h("h2", "This page"), badge(seen.trust?.toLowerCase(), seen.trust === "TRUSTED" ? "good" : "")),
    h("dl.facts",
      fact("Name", seen.caller), fact("Trust", MEANS[seen.trust]), fact("Tools", only(seen.permissions?.tools)), fact("Knowledge bases", only(seen.permissions?.collections)),
      fact("Audit log", `${plural(seen.audit.recorded, "call")} recorded${seen.audit.has_sink ? ", kept in a file" : ", in memory only (audit.file keeps them)"}${seen.audit.sink_failing ? "; it cannot be written at the moment" : ""}`)));
}

function drawCalls(place, told, audited, every) {
  if (!audited) return void fill(place, h("h2", "Last calls"), h("p.quiet", "Only trusted callers see what others call."));
  const list = (told.latest ?? []).filter(({ tool }) => every.checked || !LOOKING.has(tool));
  fill(place, h("header", h("h2", "Last calls"), h("label.inline.push", every, "also what only looks at the server")), list.length
    ? h("div.table", { tabindex: "0", role: "region", "aria-label": "Last calls" }, h("table", h("thead", h("tr", ["When", "Tool", "Outcome", "Caller", "Took"].map((name) => h(name === "Took" ? "th.n" : "th", { scope: "col" }, name)))),
      h("tbody", list.map((entry) => h("tr", h("td.once", { title: entry.time }, when(entry.time)), h("td.whole", entry.tool), h("td", badge(entry.outcome, { success: "good", blocked: "warn", error: "bad" }[entry.outcome] ?? "")),
        h("td.whole", `${entry.caller} (${entry.via}, ${entry.trust?.toLowerCase()})`), h("td.n", milliseconds(entry.duration_us / 1000)))))))
    : empty("Nothing was called yet", "Every call of every client shows here: who, what, how long; never what was said."),
    told.events?.length ? [h("h3.apart", "Events"), h("ul.plain", told.events.map((event) => h("li.small", h("span.quiet", when(event.time)), ` ${event.event} `, h("span.quiet.break", event.detail ?? ""))))] : null);
}

const fact = (name, value) => (value === undefined ? null : [h("dt", name), h("dd.break", value)]);

// Overview: request statistics, state of the components, and setup advice.

import { h, fill, icon } from "../dom.js";
import { withBearerToken, call, RequestError } from "../mcp.js";
import { poll, server } from "../connection.js";
import { loadPermissions } from "../permissions.js";
import { badge, problem, sparkline, copyable } from "../components/widgets.js";
import { sentence, inlineCode } from "../components/inline-code.js";
import { bytes, milliseconds, number, percent, plural, seconds, relativeTime } from "../format.js";

export const title = "Overview";

/** Poll intervals, in milliseconds. */
const STATISTICS_INTERVAL = 5_000;
const COMPONENTS_INTERVAL = 15_000;
/** The setup check is expensive (it runs OCR on an image and starts a process), and its result rarely changes. */
const SETUP_INTERVAL = 300_000;
/** Ten minutes, in samples of the server. */
const MAX_SAMPLES = 120;
/** Minimum number of samples in a sparkline. */
const MIN_SAMPLES = 12;

export function show(place) {
  const lead = h("p", "\u00a0");
  const numbers = h("section.grid.numbers", { "aria-label": "The last ten minutes" }, ["Requests", "Latency", "Errors"].map((name) => statCard(name)));
  const parts = h("section.grid.two.parts", { "aria-label": "Parts" });
  const failed = h("div");
  const setup = h("section.card.setup", h("h2", "What to do next"), h("div.stack", h("p.quiet", "Looking…")));
  place.append(h("header.head", h("h1", title), lead), failed, h("div.stack", numbers, parts, setup));

  const state = {};
  const stops = [
    poll(async () => {
      const info = await call("inspect_server", { history: MAX_SAMPLES }, { quiet: true });
      fill(failed);
      fill(lead, `Up for ${seconds(info.uptime_seconds)} · ${plural(info.tools_count, "tool")} · ${plural(info.queues?.connections ?? 0, "connection")} · this page is ${info.trust?.toLowerCase()}`);
      drawStatistics(numbers, info);
    }, STATISTICS_INTERVAL, (error) => fill(failed, problem(error))),
    poll(async () => {
      Object.assign(state, await loadComponents());
      drawComponents(parts, state);
    }, COMPONENTS_INTERVAL, (error) => fill(failed, problem(error))),
    poll(async () => {
      state.setupDenied = (await loadPermissions()).denialReason("check_setup", "A look at the whole setup");
      state.setup = state.setupDenied ? undefined : await callIfAvailable("check_setup");
      drawSetup(setup, state);
      if (parts.childElementCount) drawComponents(parts, state);
    }, SETUP_INTERVAL, (error) => fill(failed, problem(error))),
  ];
  return () => stops.forEach((stop) => stop());
}

// Statistics

const statCard = (name) => h("div.card.stat", { dataset: { stat: name } }, h("h2.quiet.small", name), h("p.number", "–"), h("p.quiet.small.of", "\u00a0"), sparkline([]));

function drawStatistics(container, info) {
  const interval = info.history?.seconds ?? 5;
  // Only samples since the start of the server, but at least one minute.
  const count = Math.max(Math.ceil(info.uptime_seconds / interval) + 1, MIN_SAMPLES);
  const samples = (info.history?.samples ?? []).slice(-count);
  const requests = samples.map((sample) => sample.requests);
  const errors = samples.map((sample) => sample.errors);
  const sum = (values) => values.reduce((total, value) => total + value, 0);
  const samplesPerMinute = Math.round(60 / interval);
  const total = sum(requests);
  const measured = samples.filter((sample) => sample.p95_ms !== null && sample.p95_ms !== undefined);
  const latest = measured.at(-1);
  drawStat(container, "Requests", `${number(sum(requests.slice(-samplesPerMinute)))} / min`, `${number(total)} in ten minutes`, requests);
  drawStat(container, "Latency", latest ? milliseconds(latest.p95_ms) : "–", latest ? `95 of 100 were faster; half took ${milliseconds(latest.p50_ms)} at most` : "nothing was asked lately", samples.map((sample) => sample.p95_ms ?? null));
  drawStat(container, "Errors", number(sum(errors)), total ? `${percent(sum(errors) / total)} of what was asked` : "nothing was asked lately", errors, sum(errors) > 0);
}

function drawStat(container, name, value, caption, values, bad = false) {
  const card = container.querySelector(`[data-stat="${name}"]`);
  card.querySelector(".number").textContent = value;
  card.querySelector(".of").textContent = caption;
  card.querySelector("svg").replaceWith(sparkline(values, { bad, label: `${name} over the last ten minutes: ${value}` }));
}

// Components

/** Calls a tool. Returns undefined if the server does not have it, and its error if it fails, for its card to show. */
async function callIfAvailable(tool) {
  if (!server()?.tools?.[tool]) return undefined;
  try {
    return await call(tool, {}, { quiet: true });
  } catch (error) {
    if (["offline", "token", "cancelled"].includes(error.kind)) throw error;
    return error instanceof RequestError ? error : new RequestError("failed", String(error));
  }
}

async function loadComponents() {
  const [knowledge, providers, categories, health] = await Promise.all([callIfAvailable("knowledge-status"), callIfAvailable("list_providers"), callIfAvailable("list_categories"), fetchHealth()]);
  return { knowledge, providers, categories, health };
}

/** The health endpoint names the classifier; without authentication it only has the status. */
async function fetchHealth() {
  try {
    return await (await fetch("/health", { cache: "no-store", credentials: "omit", headers: withBearerToken() })).json();
  } catch {
    return {};
  }
}

function drawComponents(container, state) {
  fill(container,
    componentCard("Classifier", "#/classify", state.categories, () => {
      const names = state.categories.categories ?? [];
      return ["good", "ready", h("p", plural(names.length, "category", "categories"), ": ", h("span.quiet", names.slice(0, 8).join(", "), names.length > 8 ? "…" : "")),
        state.health.model ? h("p.quiet.small.break", `decided by ${state.health.model}`) : null];
    }),
    componentCard("Knowledge", "#/knowledge", state.knowledge, () => {
      const { knowledge_base: base, health, tasks, last_updated: last } = state.knowledge;
      const busy = (tasks?.running ?? 0) + (tasks?.queued ?? 0);
      return [health.status === "healthy" ? "good" : "bad", health.status,
        base.document_count
          ? h("p", `${plural(base.document_count, "document")}, ${plural(base.total_chunks, "passage")}, ${bytes(base.total_size_bytes)}`)
          : h("p", "No documents yet. ", server()?.trust === "UNTRUSTED" ? null : [h("a", { href: "#/knowledge" }, "Add some files"), "."]),
        h("p.quiet.small", busy ? `${plural(busy, "task")} at work` : last ? `changed ${relativeTime(last)}` : `model ${state.knowledge.configuration?.embedding_model ?? ""}`)];
    }),
    componentCard("Providers", "#/routing/providers", state.providers, () => {
      const list = state.providers.providers ?? [];
      if (!list.length) return ["warn", "none yet", h("p", "Sorting and searching work without one. To have prompts answered, set a key and start again:"), copyable("export OPENAI_API_KEY=…"), h("p.quiet.small", "or start Ollama, vLLM, llama.cpp or LM Studio on this machine: they are found by themselves.")];
      const down = list.filter((provider) => ["failing", "circuit_open"].includes(provider.status)).length;
      return [down ? "warn" : "good", down ? `${down} of ${list.length} failing` : `${list.length} set up`,
        h("ul.plain", list.map((provider) => h("li.row", h(`span.dot.${{ up: "good", failing: "bad", circuit_open: "warn" }[provider.status] ?? "none"}`, { "aria-hidden": "true" }), h("span.break", provider.name), h("span.quiet.small", provider.status, provider.default_model ? ` · ${provider.default_model}` : "")))),
        state.providers.default_model ? h("p.quiet.small.break", `by default ${state.providers.default_model}`) : null];
    }),
    componentCard("Models inside", null, state.health, () => {
      const modelChecks = (state.setup?.checks ?? []).filter(({ name }) => name === "models" || name === "ocr");
      const bad = modelChecks.some(({ state }) => state === "problem");
      return [bad ? "bad" : "good", bad ? "not whole" : "work offline",
        modelChecks.length ? h("ul.plain", modelChecks.map(({ message }) => h("li.break", inlineCode(sentence(message))))) : h("p", "Sorting, meaning and reading pictures need no network: their models are inside the program."),
        h("p.quiet.small", state.health.device ? `running on ${state.health.device}` : "", state.health.index_size ? `, ${number(state.health.index_size)} examples learned` : "")];
    }),
  );
}

/** The card of a component: its name, its state as a badge, and details. */
function componentCard(name, link, reply, describe) {
  if (reply === undefined) return null;
  const heading = h("h2", link ? h("a", { href: link }, name) : name);
  if (reply instanceof RequestError) return h("article.card.part", h("header", heading, badge("not told", "warn")), h("p.quiet.break", reply.message));
  const [kind, state, ...details] = describe();
  return h("article.card.part", h("header", heading, badge(state, kind)), details);
}

// Setup advice

function drawSetup(container, state) {
  const checks = state.setup?.checks ?? [];
  const findings = checks.filter((check) => check.state !== "ok");
  const list = container.querySelector(".stack");
  if (state.setup instanceof RequestError) return void fill(list, h("p.quiet", state.setup.message));
  if (state.setupDenied) return void fill(list, h("p.quiet", inlineCode(state.setupDenied)), h("p.quiet", inlineCode("On the machine of the server, `corbie doctor` shows the same.")));
  if (!checks.length) return void fill(list, h("p.quiet", inlineCode("`corbie doctor` looks at the whole setup and says what to do.")));
  fill(list,
    findings.length ? h("ul.plain.checks", findings.map(checkItem)) : h("p.row", icon("check"), "Everything that was looked at is in order."),
    h("details", h("summary", `All ${checks.length} checks`), h("ul.plain.checks", checks.map(checkItem))));
}

const checkItem = (check) => h("li", h("div.row", badge(check.state, { ok: "good", problem: "bad", warning: "accent" }[check.state] ?? "warn"), h("strong", check.name)), h("p.break", inlineCode(sentence(check.message))), check.advice ? h("p.quiet.break", inlineCode(sentence(check.advice))) : null);

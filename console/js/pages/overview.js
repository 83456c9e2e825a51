// Overview: request statistics, state of the components, and setup advice.

import { h, fill, icon } from "../dom.js";
import { withBearerToken, call, RequestError, token } from "../mcp.js";
import { poll, server } from "../connection.js";
import { loadPermissions } from "../permissions.js";
import { badge, problem, copyable } from "../components/widgets.js";
import { timeChart } from "../components/time-chart.js";
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
/** Minimum number of samples in a chart. */
const MIN_SAMPLES = 12;

export function show(place) {
  const lead = h("p", "\u00a0");
  const cards = { requests: statCard("Requests", { format: (value) => plural(value, "request"), axisFormat: number }), latency: statCard("Latency", { format: milliseconds, emptyText: "No requests" }), errors: statCard("Errors", { format: (value) => plural(value, "error"), axisFormat: number }) };
  const numbers = h("section.grid.numbers", { "aria-label": "Last 10 minutes" }, Object.values(cards).map(({ element }) => element));
  const parts = h("section.grid.two.parts", { "aria-label": "Components" });
  const failed = h("div");
  const setup = h("section.card.setup", h("h2", "Setup checks"), h("div.stack", h("p.quiet", "Running checks…")));
  place.append(h("header.head", h("h1", title), lead), failed, h("div.stack", numbers, parts, setup), metricsLinks());

  const state = {};
  const stops = [
    poll(async () => {
      const info = await call("inspect_server", { history: MAX_SAMPLES }, { quiet: true });
      fill(failed);
      fill(lead, `Up for ${seconds(info.uptime_seconds)} · ${plural(info.tools_count, "tool")} · ${plural(info.queues?.connections ?? 0, "connection")} · trust level: ${info.trust?.toLowerCase()}`);
      drawStatistics(cards, info);
    }, STATISTICS_INTERVAL, (error) => fill(failed, problem(error))),
    poll(async () => {
      Object.assign(state, await loadComponents());
      drawComponents(parts, state);
    }, COMPONENTS_INTERVAL, (error) => fill(failed, problem(error))),
    poll(async () => {
      state.setupDenied = (await loadPermissions()).denialReason("check_setup", "Checking the setup");
      state.setup = state.setupDenied ? undefined : await callIfAvailable("check_setup");
      drawSetup(setup, state);
      if (parts.childElementCount) drawComponents(parts, state);
    }, SETUP_INTERVAL, (error) => fill(failed, problem(error))),
  ];
  return () => stops.forEach((stop) => stop());
}

// Statistics

function statCard(name, formats) {
  const [value, caption] = [h("p.number", "–"), h("p.quiet.small.of", "\u00a0")];
  const chart = timeChart({ name: `${name}, last 10 minutes`, ...formats });
  const element = h("div.card.stat", { dataset: { stat: name } }, h("h2.quiet.small", name), value, caption, chart.element);
  const update = (text, captionText, samples, options) => {
    value.textContent = text;
    caption.textContent = captionText;
    chart.update(samples, { ...options, summary: `${text}, ${captionText}` });
  };
  return { element, update };
}

/** Metrics for other programs. A link cannot send a token, so the address is shown as text where one is needed. */
const metricsLinks = () => h("p.quiet.small.metrics", "Request figures cover the last 10 minutes without requests from this console. Long-term monitoring: ",
  token.get() ? ["Prometheus metrics at ", h("code", "/metrics")] : h("a", { href: "/metrics" }, "Prometheus metrics"), ", ",
  h("a", { href: "/console/grafana-dashboard.json", download: "corbie-grafana-dashboard.json" }, "Grafana dashboard"), ".");

function drawStatistics(cards, info) {
  const interval = info.history?.seconds ?? 5;
  // Only samples since the start of the server, but at least one minute.
  const count = Math.max(Math.ceil(info.uptime_seconds / interval) + 1, MIN_SAMPLES);
  const samples = (info.history?.samples ?? []).slice(-count);
  const sum = (name, list = samples) => list.reduce((total, sample) => total + sample[name], 0);
  const series = (name) => samples.map((sample) => ({ at: sample.at, value: sample[name] ?? null }));
  const lastMinute = samples.slice(-Math.round(60 / interval));
  const [total, errors] = [sum("requests"), sum("errors")];
  const latest = samples.findLast((sample) => typeof sample.p95_ms === "number");
  cards.requests.update(`${number(sum("requests", lastMinute))} / min`, `${number(total)} in 10 minutes`, series("requests"));
  cards.latency.update(latest ? milliseconds(latest.p95_ms) : "–", latest ? `p95 ${milliseconds(latest.p95_ms)} · p50 ${milliseconds(latest.p50_ms)}` : "No requests", series("p95_ms"));
  cards.errors.update(number(errors), total ? `${percent(errors / total)} of requests` : "No requests", series("errors"), { bad: errors > 0 });
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
        state.health.model ? h("p.quiet.small.break", `Method: ${state.health.model}`) : null];
    }),
    componentCard("Knowledge", "#/knowledge", state.knowledge, () => {
      const { knowledge_base: base, health, tasks, last_updated: last } = state.knowledge;
      const busy = (tasks?.running ?? 0) + (tasks?.queued ?? 0);
      return [health.status === "healthy" ? "good" : "bad", health.status,
        base.document_count
          ? h("p", `${plural(base.document_count, "document")}, ${plural(base.total_chunks, "passage")}, ${bytes(base.total_size_bytes)}`)
          : h("p", "No documents yet. ", server()?.trust === "UNTRUSTED" ? null : [h("a", { href: "#/knowledge" }, "Add files"), "."]),
        h("p.quiet.small", busy ? `${plural(busy, "task")} running` : last ? `Updated ${relativeTime(last)}` : `Embedding model: ${state.knowledge.configuration?.embedding_model ?? ""}`)];
    }),
    componentCard("Providers", "#/routing/providers", state.providers, () => {
      const list = state.providers.providers ?? [];
      if (!list.length) return ["warn", "none configured", h("p", "Classification and search work without a provider. To answer prompts, set an API key and restart:"), copyable("export OPENAI_API_KEY=…"), h("p.quiet.small", "Ollama, vLLM, llama.cpp and LM Studio on this machine are detected automatically.")];
      const down = list.filter((provider) => ["failing", "circuit_open"].includes(provider.status)).length;
      return [down ? "warn" : "good", down ? `${down} of ${list.length} failing` : `${list.length} configured`,
        h("ul.plain", list.map((provider) => h("li.row", h(`span.dot.${{ up: "good", failing: "bad", circuit_open: "warn" }[provider.status] ?? "none"}`, { "aria-hidden": "true" }), h("span.break", provider.name), h("span.quiet.small", provider.status, provider.default_model ? ` · ${provider.default_model}` : "")))),
        state.providers.default_model ? h("p.quiet.small.break", `Default model: ${state.providers.default_model}`) : null];
    }),
    componentCard("Built-in models", null, state.health, () => {
      const modelChecks = (state.setup?.checks ?? []).filter(({ name }) => name === "models" || name === "ocr");
      const bad = modelChecks.some(({ state }) => state === "problem");
      return [bad ? "bad" : "good", bad ? "damaged" : "ok",
        modelChecks.length ? h("ul.plain", modelChecks.map(modelItem)) : h("p", "Classification, search and OCR work offline: their models are included."),
        h("p.quiet.small", [state.health.device ? `Device: ${state.health.device}` : "", state.health.index_size ? `${number(state.health.index_size)} training examples` : ""].filter(Boolean).join(" · "))];
    }),
  );
}

const MODEL_NAMES = { models: "Embedding and classification", ocr: "OCR" };
/** A setup check of a built-in model: its state, and the message if there is a problem. */
const modelItem = ({ name, state, message }) => h("li.row", h(`span.dot.${{ ok: "good", problem: "bad" }[state] ?? "warn"}`, { "aria-hidden": "true" }), h("span.break", MODEL_NAMES[name] ?? name),
  h("span.quiet.small.break", state === "ok" ? "ok" : inlineCode(sentence(message))));

/** The card of a component: its name, its state as a badge, and details. */
function componentCard(name, link, reply, describe) {
  if (reply === undefined) return null;
  const heading = h("h2", link ? h("a", { href: link }, name) : name);
  if (reply instanceof RequestError) return h("article.card.part", h("header", heading, badge("unavailable", "warn")), h("p.quiet.break", reply.message));
  const [kind, state, ...details] = describe();
  return h("article.card.part", h("header", heading, badge(state, kind)), details);
}

// Setup advice

function drawSetup(container, state) {
  const checks = state.setup?.checks ?? [];
  const findings = checks.filter((check) => check.state !== "ok");
  const list = container.querySelector(".stack");
  if (state.setup instanceof RequestError) return void fill(list, h("p.quiet", state.setup.message));
  if (state.setupDenied) return void fill(list, h("p.quiet", inlineCode(state.setupDenied)), h("p.quiet", inlineCode("Or run `corbie doctor` on the server.")));
  if (!checks.length) return void fill(list, h("p.quiet", inlineCode("Run `corbie doctor` to check the setup.")));
  fill(list,
    findings.length ? h("ul.plain.checks", findings.map(checkItem)) : h("p.row", icon("check"), "All checks passed."),
    h("details", h("summary", `All ${checks.length} checks`), h("ul.plain.checks", checks.map(checkItem))));
}

const checkItem = (check) => h("li", h("div.row", badge(check.state, { ok: "good", problem: "bad", warning: "accent" }[check.state] ?? "warn"), h("strong", check.name)), h("p.break", inlineCode(sentence(check.message))), check.advice ? h("p.quiet.break", inlineCode(sentence(check.advice))) : null);

// How everything is doing, what there is, and what is missing.

import { h, fill, icon } from "../dom.js";
import { bearer, call, Failure } from "../mcp.js";
import { poll, server } from "../connection.js";
import { allowed } from "../allowed.js";
import { badge, problem, sparkline, copyable } from "../components/parts.js";
import { sentence, ticked } from "../components/said.js";
import { bytes, milliseconds, number, percent, plural, seconds, when } from "../format.js";

export const title = "Overview";

/** How often numbers and parts are asked for, in milliseconds. */
const NUMBERS = 5_000;
const PARTS = 15_000;
/** A look at the whole setup reads a picture and starts a process, and little changes. */
const SETUP = 300_000;
/** Ten minutes, in the samples that the server keeps. */
const SAMPLES = 120;
/** How many of them are drawn at least. */
const LEAST = 12;

export function show(place) {
  const lead = h("p", "\u00a0");
  const numbers = h("section.grid.numbers", { "aria-label": "The last ten minutes" }, ["Requests", "Latency", "Errors"].map((name) => stat(name)));
  const parts = h("section.grid.two.parts", { "aria-label": "Parts" });
  const failed = h("div");
  const setup = h("section.card.setup", h("h2", "What to do next"), h("div.stack", h("p.quiet", "Looking…")));
  place.append(h("header.head", h("h1", title), lead), failed, h("div.stack", numbers, parts, setup));

  const known = {};
  const ends = [
    poll(async () => {
      const seen = await call("inspect_server", { history: SAMPLES }, { quiet: true });
      fill(failed);
      fill(lead, `Up for ${seconds(seen.uptime_seconds)} · ${plural(seen.tools_count, "tool")} · ${plural(seen.queues?.connections ?? 0, "connection")} · this page is ${seen.trust?.toLowerCase()}`);
      drawNumbers(numbers, seen);
    }, NUMBERS, (error) => fill(failed, problem(error))),
    poll(async () => {
      Object.assign(known, await look());
      drawParts(parts, known);
    }, PARTS, (error) => fill(failed, problem(error))),
    poll(async () => {
      known.unseen = (await allowed()).lacks("check_setup", "A look at the whole setup");
      known.setup = known.unseen ? undefined : await ask("check_setup");
      drawSetup(setup, known);
      if (parts.childElementCount) drawParts(parts, known);
    }, SETUP, (error) => fill(failed, problem(error))),
  ];
  return () => ends.forEach((end) => end());
}

// What happens

const stat = (name) => h("div.card.stat", { dataset: { stat: name } }, h("h2.quiet.small", name), h("p.number", "–"), h("p.quiet.small.of", "\u00a0"), sparkline([]));

function drawNumbers(place, seen) {
  const span = seen.history?.seconds ?? 5;
  // Before it was started there is nothing to draw; a minute at least, so that a line is one.
  const since = Math.max(Math.ceil(seen.uptime_seconds / span) + 1, LEAST);
  const samples = (seen.history?.samples ?? []).slice(-since);
  const requests = samples.map((sample) => sample.requests);
  const errors = samples.map((sample) => sample.errors);
  const sum = (values) => values.reduce((total, value) => total + value, 0);
  const minute = Math.round(60 / span);
  const total = sum(requests);
  const slow = samples.filter((sample) => sample.p95_ms !== null && sample.p95_ms !== undefined);
  const latest = slow.at(-1);
  draw(place, "Requests", `${number(sum(requests.slice(-minute)))} / min`, `${number(total)} in ten minutes`, requests);
  draw(place, "Latency", latest ? milliseconds(latest.p95_ms) : "–", latest ? `95 of 100 were faster; half took ${milliseconds(latest.p50_ms)} at most` : "nothing was asked lately", samples.map((sample) => sample.p95_ms ?? null));
  draw(place, "Errors", number(sum(errors)), total ? `${percent(sum(errors) / total)} of what was asked` : "nothing was asked lately", errors, sum(errors) > 0);
}

function draw(place, name, value, of, values, bad = false) {
  const card = place.querySelector(`[data-stat="${name}"]`);
  card.querySelector(".number").textContent = value;
  card.querySelector(".of").textContent = of;
  card.querySelector("svg").replaceWith(sparkline(values, { bad, label: `${name} over the last ten minutes: ${value}` }));
}

// What there is

/** Asks a part. One that is not there is undefined, one that fails gives its failure, for its card to tell. */
async function ask(tool) {
  if (!server()?.tools?.[tool]) return undefined;
  try {
    return await call(tool, {}, { quiet: true });
  } catch (error) {
    if (["offline", "token", "cancelled"].includes(error.kind)) throw error;
    return error instanceof Failure ? error : new Failure("failed", String(error));
  }
}

async function look() {
  const [knowledge, providers, categories, health] = await Promise.all([ask("knowledge-status"), ask("list_providers"), ask("list_categories"), healthPage()]);
  return { knowledge, providers, categories, health };
}

/** The page for operators tells of the classifier in use; strangers get one word of it. */
async function healthPage() {
  try {
    return await (await fetch("/health", { cache: "no-store", credentials: "omit", headers: bearer() })).json();
  } catch {
    return {};
  }
}

function drawParts(place, seen) {
  fill(place,
    part("Classifier", "#/classify", seen.categories, () => {
      const names = seen.categories.categories ?? [];
      return ["good", "ready", h("p", plural(names.length, "category", "categories"), ": ", h("span.quiet", names.slice(0, 8).join(", "), names.length > 8 ? "…" : "")),
        seen.health.model ? h("p.quiet.small.break", `decided by ${seen.health.model}`) : null];
    }),
    part("Knowledge", "#/knowledge", seen.knowledge, () => {
      const { knowledge_base: base, health, tasks, last_updated: last } = seen.knowledge;
      const busy = (tasks?.running ?? 0) + (tasks?.queued ?? 0);
      return [health.status === "healthy" ? "good" : "bad", health.status,
        base.document_count
          ? h("p", `${plural(base.document_count, "document")}, ${plural(base.total_chunks, "passage")}, ${bytes(base.total_size_bytes)}`)
          : h("p", "No documents yet. ", server()?.trust === "UNTRUSTED" ? null : [h("a", { href: "#/knowledge" }, "Add some files"), "."]),
        h("p.quiet.small", busy ? `${plural(busy, "task")} at work` : last ? `changed ${when(last)}` : `model ${seen.knowledge.configuration?.embedding_model ?? ""}`)];
    }),
    part("Providers", "#/routing/providers", seen.providers, () => {
      const list = seen.providers.providers ?? [];
      if (!list.length) return ["warn", "none yet", h("p", "Sorting and searching work without one. To have prompts answered, set a key and start again:"), copyable("export OPENAI_API_KEY=…"), h("p.quiet.small", "or start Ollama, vLLM, llama.cpp or LM Studio on this machine: they are found by themselves.")];
      const down = list.filter((provider) => ["failing", "circuit_open"].includes(provider.status)).length;
      return [down ? "warn" : "good", down ? `${down} of ${list.length} failing` : `${list.length} set up`,
        h("ul.plain", list.map((provider) => h("li.row", h(`span.dot.${{ up: "good", failing: "bad", circuit_open: "warn" }[provider.status] ?? "none"}`, { "aria-hidden": "true" }), h("span.break", provider.name), h("span.quiet.small", provider.status, provider.default_model ? ` · ${provider.default_model}` : "")))),
        seen.providers.default_model ? h("p.quiet.small.break", `by default ${seen.providers.default_model}`) : null];
    }),
    part("Models inside", null, seen.health, () => {
      const looked = (seen.setup?.checks ?? []).filter(({ name }) => name === "models" || name === "ocr");
      const bad = looked.some(({ state }) => state === "problem");
      return [bad ? "bad" : "good", bad ? "not whole" : "work offline",
        looked.length ? h("ul.plain", looked.map(({ found }) => h("li.break", ticked(sentence(found))))) : h("p", "Sorting, meaning and reading pictures need no network: their models are inside the program."),
        h("p.quiet.small", seen.health.device ? `running on ${seen.health.device}` : "", seen.health.index_size ? `, ${number(seen.health.index_size)} examples learned` : "")];
    }),
  );
}

/** One part: its name, its state in a word, and what is said of it. */
function part(name, link, answer, tell) {
  if (answer === undefined) return null;
  const heading = h("h2", link ? h("a", { href: link }, name) : name);
  if (answer instanceof Failure) return h("article.card.part", h("header", heading, badge("not told", "warn")), h("p.quiet.break", answer.message));
  const [kind, state, ...said] = tell();
  return h("article.card.part", h("header", heading, badge(state, kind)), said);
}

// What is missing

function drawSetup(place, seen) {
  const checks = seen.setup?.checks ?? [];
  const open = checks.filter((check) => check.state !== "ok");
  const list = place.querySelector(".stack");
  if (seen.setup instanceof Failure) return void fill(list, h("p.quiet", seen.setup.message));
  if (seen.unseen) return void fill(list, h("p.quiet", ticked(seen.unseen)), h("p.quiet", ticked("On the machine of the server, `corbie doctor` shows the same.")));
  if (!checks.length) return void fill(list, h("p.quiet", ticked("`corbie doctor` looks at the whole setup and says what to do.")));
  fill(list,
    open.length ? h("ul.plain.checks", open.map(checked)) : h("p.row", icon("check"), "Everything that was looked at is in order."),
    h("details", h("summary", `All ${checks.length} checks`), h("ul.plain.checks", checks.map(checked))));
}

const checked = (check) => h("li", h("div.row", badge(check.state, { ok: "good", problem: "bad", warning: "accent" }[check.state] ?? "warn"), h("strong", check.name)), h("p.break", ticked(sentence(check.message))), check.advice ? h("p.quiet.break", ticked(sentence(check.advice))) : null);

// Questions: a model answers from the passages, and the citations in its answer link to them.

import { h, fill, submitOnEnter } from "../../dom.js";
import { call } from "../../mcp.js";
import { copyable, empty, problem } from "../../components/widgets.js";
import { milliseconds } from "../../format.js";
import { inlineCode } from "../../components/inline-code.js";
import { loadCapabilities } from "./capabilities.js";
import { sanitizeName } from "./formats.js";
import { isWeakMatch, weakMatches, passage, passageUrl, openedPassage, removeStopWords } from "./passage-card.js";
import { noDocuments } from "./search.js";

/** The last question and its reply, shown again after the user has followed a citation. */
const saved = { question: "", reply: undefined, took: 0 };

export async function showAsk(place) {
  const can = await loadCapabilities();
  if (!can.knowledge) return undefined;
  const denied = can.denialReason("knowledge-ask", "Asking questions");
  if (denied) {
    fill(place, empty("Permission denied", h("p", inlineCode(denied)), h("p", "You can still ", h("a", { href: "#/knowledge/search" }, "search the documents"), ".")));
    return undefined;
  }
  const field = h("textarea", { rows: "2", maxlength: "500", placeholder: "Ask a question about your documents", "aria-label": "Question", dataset: { search: "" } }, saved.question);
  const go = h("button.main", { type: "submit" }, "Ask");
  const output = h("div.answering");
  const announcement = h("p.visually-hidden", { role: "status" });
  const form = h("form.question", { onsubmit: (event) => (event.preventDefault(), ask()) }, h("div.asked", field), go);
  fill(place, form, h("p.quiet.small", "A model answers from the best passages. ", h("kbd", "Enter"), " sends, ", h("kbd", "Shift+Enter"), " starts a new line."), announcement, output);

  submitOnEnter(field, ask);

  let stop;
  async function ask() {
    const question = field.value.trim();
    if (!question) return field.focus();
    stop?.abort();
    stop = new AbortController();
    Object.assign(saved, { question, reply: undefined });
    const started = performance.now();
    fill(announcement, "Generating an answer.");
    fill(output, h("div.card.thinking", h("p.quiet", "Generating an answer… ", h("button.plain", { onclick: () => stop.abort() }, "Stop"))));
    try {
      saved.reply = await call("knowledge-ask", { question }, { signal: stop.signal });
      saved.took = performance.now() - started;
      draw();
      fill(announcement, saved.reply.answer === null ? "No answer." : `Answer: ${saved.reply.answer}`);
    } catch (error) {
      if (error.kind === "cancelled") draw();
      else fill(output, error.structured?.error === "empty_knowledge_base" ? noDocuments() : problem(error, ask));
    }
  }

  function draw() {
    const { reply } = saved;
    if (!reply) {
      return fill(output, empty("Answers with sources", "A model answers from the most relevant passages and cites them by number."));
    }
    if (!reply.passages.length) {
      return fill(output, empty("No results", "No passage matches the question. Rephrase it, or add documents."));
    }
    const cited = new Set(reply.citations.map((found) => found.number));
    const isFolded = (found) => isWeakMatch(found) && !cited.has(found.number);
    const folded = reply.passages.filter(isFolded);
    const card = (found) => h("div", { class: cited.has(found.number) ? "cited" : "", id: `source-${found.number}` }, passage(found, saved.question, { number: found.number }));
    fill(output, h("div.answered",
      reply.answer === null ? renderUnanswered(reply) : h("section.card.answer", { "aria-label": "Answer" },
        h("div.answer-text.break", { dir: "auto" }, renderAnswer(reply.answer, reply.passages)),
        h("p.quiet.small.by", "Model: ", h("strong", [reply.provider, reply.model].filter(Boolean).join("/") || "a model"), ` · ${milliseconds(saved.took)}`,
          cited.size ? "" : ". The answer cites no passage; verify it.")),
      h("section", { "aria-label": "Passages" }, h("h2.sources", reply.answer === null ? "Best passages" : "Sources"),
        h("div.results", reply.passages.filter((found) => !isFolded(found)).map(card), folded.length ? weakMatches(folded.map(card)) : null))));
  }

  draw();
  if (!saved.reply) field.focus();
  return () => stop?.abort();
}

/** Renders an answer with its citations as links to the passages. */
function renderAnswer(answer, passages) {
  const nodes = [];
  let at = 0;
  for (const found of answer.matchAll(/\[(\d+(?:\s*,\s*\d+)*)\]/g)) {
    const numbers = found[1].split(",").map(Number);
    if (!numbers.some((number) => passages[number - 1])) continue;
    nodes.push(answer.slice(at, found.index));
    for (const number of numbers) {
      const source = passages[number - 1];
      nodes.push(source ? citation(number, source) : `[${number}]`);
    }
    at = found.index + found[0].length;
  }
  nodes.push(answer.slice(at));
  return nodes;
}

function citation(number, source) {
  const title = sanitizeName(source.filename);
  const remember = () => Object.assign(openedPassage, { chunk: source.chunk_id, query: removeStopWords(saved.question) });
  return h("a.cite", { href: passageUrl(source), "aria-label": `Source ${number}: ${title}`, title, onclick: remember }, number);
}

/** The message if no model has answered: the reason, and what to do. */
function renderUnanswered(reply) {
  const none = /no provider is configured/i.test(reply.message ?? "");
  return h("section.card.answer", { "aria-label": "Answer" },
    h("p.problem.warn", reply.message ?? "No model answered. These are the best passages."),
    none ? [
      h("p", "Start a local model server such as Ollama; it is detected within 30 seconds. For a hosted model, set an API key and restart the server:"),
      copyable("OPENAI_API_KEY=… corbie serve"),
      h("p.quiet.small", "Or ANTHROPIC_API_KEY, GOOGLE_API_KEY. ", h("code", "corbie providers"), " lists the configured providers."),
    ] : h("p", "Provider status: ", h("a", { href: "#/routing/providers" }, "Routing › Providers"), "."));
}

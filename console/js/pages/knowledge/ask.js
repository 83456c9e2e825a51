// Asking: a model answers from the passages, and every number in its answer leads to what it stands on.

import { h, fill } from "../../dom.js";
import { call } from "../../mcp.js";
import { copyable, empty, problem } from "../../components/widgets.js";
import { milliseconds } from "../../format.js";
import { inlineCode } from "../../components/inline-code.js";
import { loadCapabilities } from "./capabilities.js";
import { sanitizeName } from "./formats.js";
import { passage, passageUrl, openedPassage, removeStopWords } from "./passage-card.js";
import { noDocuments } from "./search.js";

/** What was asked last: whoever has followed a citation comes back to it. */
const kept = { question: "", reply: undefined, took: 0 };

export async function showAsk(place) {
  const can = await loadCapabilities();
  if (!can.knowledge) return undefined;
  const unasked = can.denialReason("knowledge-ask", "Having a model answer");
  if (unasked) {
    fill(place, empty("Questions cannot be asked from here", h("p", inlineCode(unasked)), h("p", "What the documents say can be found all the same: ", h("a", { href: "#/knowledge/search" }, "search them"), ".")));
    return undefined;
  }
  const field = h("textarea", { rows: "2", maxlength: "500", placeholder: "Ask something that the documents answer", "aria-label": "Question", dataset: { search: "" }, onkeydown: send }, kept.question);
  const go = h("button.main", { type: "submit" }, "Ask");
  const stage = h("div.answering");
  const heard = h("p.visually-hidden", { role: "status" });
  const form = h("form.question", { onsubmit: (event) => (event.preventDefault(), ask()) }, h("div.asked", field), go);
  fill(place, form, h("p.quiet.small", "The best passages go to the model that suits the question. ", h("kbd", "Enter"), " asks, ", h("kbd", "Shift Enter"), " is a new line."), heard, stage);

  function send(event) {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    ask();
  }

  let stop;
  async function ask() {
    const question = field.value.trim();
    if (!question) return field.focus();
    stop?.abort();
    stop = new AbortController();
    Object.assign(kept, { question, reply: undefined });
    const started = performance.now();
    fill(heard, "Asking a model.");
    fill(stage, h("div.card.thinking", h("p.quiet", "Reading the passages and asking a model… ", h("button.plain", { onclick: () => stop.abort() }, "Stop"))));
    try {
      kept.reply = await call("knowledge-ask", { question }, { signal: stop.signal });
      kept.took = performance.now() - started;
      draw();
      fill(heard, kept.reply.answer === null ? "No model answered." : `The answer is there: ${kept.reply.answer}`);
    } catch (error) {
      if (error.kind === "cancelled") draw();
      else fill(stage, error.structured?.error === "empty_knowledge_base" ? noDocuments() : problem(error, ask));
    }
  }

  function draw() {
    const { reply } = kept;
    if (!reply) {
      return fill(stage, empty("Answers with their sources", "A model reads the passages that fit your question and answers from them alone. The numbers in its answer lead to the passage each statement stands on."));
    }
    if (!reply.passages.length) {
      return fill(stage, empty("Nothing found", "No document is about that, so no model was asked. Use other words, or add the document that knows."));
    }
    const cited = new Set(reply.citations.map((found) => found.number));
    fill(stage, h("div.answered",
      reply.answer === null ? unanswered(reply) : h("section.card.answer", { "aria-label": "Answer" },
        h("div.answer-text.break", { dir: "auto" }, linked(reply.answer, reply.passages)),
        h("p.quiet.small.by", "Answered by ", h("strong", [reply.provider, reply.model].filter(Boolean).join("/") || "a model"), ` in ${milliseconds(kept.took)}`,
          cited.size ? "" : ". It cites no passage, so check what it says.")),
      h("section", { "aria-label": "Passages" }, h("h2.sources", reply.answer === null ? "The best passages" : "What it was given"),
        h("div.results", reply.passages.map((found) => h("div", { class: cited.has(found.number) ? "cited" : "", id: `source-${found.number}` }, passage(found, kept.question, { number: found.number })))))));
  }

  draw();
  if (!kept.reply) field.focus();
  return () => stop?.abort();
}

/** The answer with its numbers as links to the passages. */
function linked(answer, passages) {
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
  const remember = () => Object.assign(openedPassage, { chunk: source.chunk_id, query: removeStopWords(kept.question) });
  return h("a.cite", { href: passageUrl(source), "aria-label": `Source ${number}: ${title}`, title, onclick: remember }, number);
}

/** No model has answered: why, and what to do. */
function unanswered(reply) {
  const none = /no provider is configured/i.test(reply.message ?? "");
  return h("section.card.answer", { "aria-label": "Answer" },
    h("p.problem.warn", reply.message ?? "No model answered; these are the best passages."),
    none ? [
      h("p", "Start a local model server such as Ollama and it is found within half a minute. For a hosted model, give the server a key and start it again:"),
      copyable("OPENAI_API_KEY=… corbie serve"),
      h("p.quiet.small", "ANTHROPIC_API_KEY and GOOGLE_API_KEY work in the same way; ", h("code", "corbie providers"), " shows who is there."),
    ] : h("p", "See who is there and how they are doing: ", h("a", { href: "#/routing" }, "Routing"), "."));
}

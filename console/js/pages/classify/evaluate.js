// Evaluation of the classifier, on labelled texts of the user or on the examples of the taxonomy by cross-validation.

import { h, fill, icon, submitOnEnter } from "../../dom.js";
import { call } from "../../mcp.js";
import { badge } from "../../components/widgets.js";
import { number, percent, plural } from "../../format.js";
import { loadPermissions } from "../../permissions.js";
import { notPermitted, toolMissing } from "./requests.js";
import { sentence, inlineCode } from "../../components/inline-code.js";
import { parseLabelledExamples } from "./labelled-examples.js";
import { reliabilityDiagram } from "./reliability-diagram.js";
import { confusionMatrix } from "./confusion-matrix.js";

const TOOL = "evaluate_categories";
/** Larger files are rejected: the request limit of the server is 4 MiB. */
const MAX_FILE_BYTES = 3_500_000;

/** Maximum number of categories listed in the message about an unknown one. */
const MAX_LISTED_CATEGORIES = 12;

/**
 * The input, the running evaluation, its message and the last result. They outlive the page: an evaluation continues while other
 * pages are shown. A message that is an Error is shown as one.
 */
const state = { text: "", run: undefined, message: "", reply: undefined };
/** Draws the state while the page is shown. */
let redraw = () => {};

export async function show(container) {
  const { has, denialReason } = await loadPermissions();
  if (!has(TOOL)) return void container.append(toolMissing("evaluate the categories"));
  const evaluationDenied = denialReason(TOOL, "Evaluating the categories");
  if (evaluationDenied) return void container.append(notPermitted(evaluationDenied));
  const field = h("textarea.code", { rows: 6, value: state.text, spellcheck: "false", placeholder: '{"text": "I was charged twice", "category": "billing"}\n{"text": "Where is my parcel?", "category": "delivery"}', oninput: () => (state.text = field.value) });
  const file = h("input", { type: "file", accept: ".jsonl,.json,.csv,.txt", hidden: true, onchange: () => readFile(file.files[0]) });
  const chooseButton = h("button", { type: "button", onclick: () => file.click() }, icon("upload"), "Choose file");
  const evaluateButton = h("button.main", { type: "button", onclick: evaluateTexts }, "Evaluate texts");
  const crossValidateButton = h("button", { type: "button", onclick: () => evaluate({}, "Cross-validating…", denialReason) }, "Cross-validate examples");
  const stopButton = h("button", { type: "button", hidden: true, onclick: () => state.run?.controller.abort() }, "Stop");
  const progress = h("progress", { "aria-label": "Progress", max: 1, value: 0 });
  const message = h("div.said", { role: "status", "aria-live": "polite" });
  const results = h("div.stack");

  submitOnEnter(field, () => evaluateButton.disabled || evaluateTexts(), { multiline: true });

  async function readFile(upload) {
    if (!upload) return;
    if (upload.size > MAX_FILE_BYTES) return setMessage(new Error("The file is too large. Upload a part of it, or use `corbie eval`."));
    field.value = state.text = await upload.text();
    file.value = "";
    evaluateTexts();
  }

  function evaluateTexts() {
    try {
      const { examples, note } = parseLabelledExamples(state.text);
      evaluate({ examples, note }, `Classifying ${plural(examples.length, "text")}…`, denialReason);
    } catch (error) {
      setMessage(error);
      field.focus();
    }
  }

  let drawnReply;
  let drawnMessage;
  function draw() {
    const { run, reply } = state;
    for (const button of [evaluateButton, crossValidateButton, chooseButton]) button.disabled = Boolean(run);
    stopButton.hidden = !run;
    progress.classList.toggle("on", Boolean(run));
    if (run?.progress === undefined) progress.removeAttribute("value");
    else progress.value = run.progress;
    // Unchanged texts are not redrawn: a screen reader would announce them again.
    if (drawnMessage !== state.message) {
      drawnMessage = state.message;
      fill(message, drawnMessage instanceof Error ? h("p.problem", inlineCode(sentence(drawnMessage.message))) : h("p.quiet.small", drawnMessage));
    }
    if (drawnReply !== reply || !results.childElementCount) fill(results, renderResults((drawnReply = reply)));
  }

  const area = h("section.card.stack.labelled", { "aria-label": "Labelled texts" },
    h("label", "Labelled texts", h("span.hint", "JSON Lines or CSV with the columns text and category (or label, class). Use texts that are not examples of the taxonomy. You can also drop a file. Ctrl+Enter evaluates."), field),
    h("div.row", evaluateButton, chooseButton, file, crossValidateButton, stopButton), h("div.slot", progress, message));
  area.addEventListener("dragover", (event) => {
    event.preventDefault();
    area.classList.add("over");
  });
  area.addEventListener("dragleave", () => area.classList.remove("over"));
  area.addEventListener("drop", (event) => {
    event.preventDefault();
    area.classList.remove("over");
    readFile(event.dataTransfer.files[0]);
  });

  container.append(area, results);
  redraw = draw;
  draw();
  return () => {
    if (redraw === draw) redraw = () => {};
  };
}

function setMessage(message) {
  state.message = message;
  redraw();
}

/** Evaluates texts, or by cross-validation without `examples`. A newer evaluation replaces a running one. */
async function evaluate({ examples, note }, message, denialReason) {
  state.run?.controller.abort();
  const run = { controller: new AbortController(), progress: undefined };
  state.run = run;
  setMessage(message);
  const isSuperseded = () => state.run !== run;
  const onprogress = ({ progress: done, total }) => {
    if (!total || isSuperseded()) return;
    run.progress = done / total;
    redraw();
  };
  let outcome;
  try {
    const reply = await call(TOOL, examples ? { examples } : {}, { signal: run.controller.signal, onprogress });
    if (isSuperseded()) return;
    state.reply = reply;
    outcome = `${plural(reply.count, "text")} evaluated.${note ? ` ${note}.` : ""}`;
  } catch (error) {
    outcome = error.kind === "cancelled" ? "Stopped." : new Error(await describeUnknownCategory(error, examples, denialReason));
  }
  if (isSuperseded()) return;
  state.run = undefined;
  setMessage(outcome);
}

/** Replaces the index in the error about an unknown category by its name, and adds what the user can do about it. */
async function describeUnknownCategory(error, examples, denialReason) {
  const index = /`examples\[(\d+)\]\.category`/.exec(error.message)?.[1];
  const name = index === undefined ? undefined : examples?.[index]?.category;
  if (name === undefined) return error.message;
  const explanation = `Unknown category “${name.replaceAll("`", "'")}” in text ${Number(index) + 1}.`;
  // A client that cannot add a category gets the existing ones and the reason.
  const { writable, not_writable_reason: reason } = await call("get_taxonomy", {}, { quiet: true }).catch(() => ({}));
  const hindrance = writable === false && reason ? `Categories cannot be added: ${reason}` : denialReason("save_taxonomy", "Adding a category");
  if (!hindrance) return `${explanation} Fix the name, or add the category on the Edit tab.`;
  const { categories = [] } = await call("list_categories", {}, { quiet: true }).catch(() => ({}));
  const names = categories.length ? ` (${categories.slice(0, MAX_LISTED_CATEGORIES).join(", ")}${categories.length > MAX_LISTED_CATEGORIES ? ", …" : ""})` : "";
  return `${explanation} Use an existing category${names}. ${hindrance}`;
}

function renderResults(reply) {
  if (!reply) {
    return h("div.empty", h("h2", "No evaluation yet"), h("p", "Shows accuracy, calibration, the confusion matrix and misclassified texts."), h("p", "Without labelled texts, cross-validate the examples of the taxonomy."));
  }
  const figure = (name, value, help) => h("div.card", { title: help }, h("div.quiet.small", name), h("div.number", value));
  const share = (value) => (value === null || value === undefined ? "–" : percent(value));
  const head = (...names) => h("thead", h("tr", names.map((name, index) => h(index ? "th.n" : "th", { scope: "col" }, name))));
  const wrong = Math.round(reply.count * (1 - reply.accuracy));
  return [
    h("div.grid.figures",
      figure("Accuracy", percent(reply.accuracy), "Share of texts with the correct category"),
      figure("Calibration error", percent(reply.calibration_error), "Expected calibration error: mean difference between confidence and accuracy"),
      figure("Mean confidence", percent(reply.mean_confidence), "Mean confidence of all predictions"),
      figure("Texts", number(reply.count))),
    reply.held_out ? h("p.quiet.small.flat", `Cross-validated: each example was classified by a model trained without it, so the figures are conservative${reply.examples_available > reply.count ? ` (${number(reply.count)} of ${number(reply.examples_available)} examples sampled)` : ""}.`) : null,
    reply.external_server ? h("p.quiet.small.flat", inlineCode(sentence(reply.external_server))) : null,
    h("div.grid.two",
      h("section.card", h("h2", "Calibration"), reliabilityDiagram(reply.bins, reply.calibration_error)),
      h("section.card", h("h2", "Confusion matrix"), h("p.quiet.small", { id: "matrix-key" }, "Rows: actual category. Columns: predicted category."), confusionMatrix(reply.categories, reply.confusion))),
    h("section.card", h("h2", "Metrics by category"), h("div.table.tall", { tabindex: "0", role: "region", "aria-label": "Metrics by category" }, h("table", head("Category", "Texts", "Precision", "Recall"),
      h("tbody", reply.per_category.map((one) => h("tr", h("th.whole", { scope: "row" }, one.name), h("td.n", number(one.count)), h("td.n", share(one.precision)), h("td.n", share(one.recall)))))))),
    h("section.card", h("header", h("h2", "Misclassified texts"), wrong > reply.wrong_predictions.length ? h("span.quiet.small", `${reply.wrong_predictions.length} of ${number(wrong)}, highest confidence first`) : null), reply.wrong_predictions.length
      ? h("div.table.tall", { tabindex: "0", role: "region", "aria-label": "Misclassified texts" }, h("table",
        h("thead", h("tr", ["Text", "Actual", "Predicted"].map((name) => h("th", { scope: "col" }, name)), h("th.n", { scope: "col" }, "Confidence"))),
        h("tbody", reply.wrong_predictions.map(({ text, expected, got, confidence }) => h("tr", h("td.break", text), h("td", badge(expected, "good")), h("td", badge(got, "bad")), h("td.n", percent(confidence)))))))
      : h("p.quiet.flat", "None. All texts were classified correctly.")),
  ];
}

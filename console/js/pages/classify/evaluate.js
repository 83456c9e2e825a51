// Evaluation of the classifier, on labelled texts of the user or on the examples of the taxonomy by cross-validation.

import { h, fill, icon, submitOnEnter } from "../../dom.js";
import { call } from "../../mcp.js";
import { badge } from "../../components/widgets.js";
import { number, percent, plural } from "../../format.js";
import { loadPermissions } from "../../permissions.js";
import { notPermitted, toolMissing, latestRequest } from "./requests.js";
import { sentence, inlineCode } from "../../components/inline-code.js";
import { parseLabelledExamples } from "./labelled-examples.js";
import { reliabilityDiagram } from "./reliability-diagram.js";
import { confusionMatrix } from "./confusion-matrix.js";

const TOOL = "evaluate_categories";
/** Larger files are rejected: the request limit of the server is 4 MiB. */
const MAX_FILE_BYTES = 3_500_000;

/** Maximum number of categories listed in the message about an unknown one. */
const MAX_LISTED_CATEGORIES = 12;

/** The input and the last result are saved while other tabs are shown. */
const saved = { text: "", reply: undefined };

export async function show(container) {
  const { has, denialReason } = await loadPermissions();
  if (!has(TOOL)) return void container.append(toolMissing("evaluate the categories"));
  const evaluationDenied = denialReason(TOOL, "Evaluating the categories");
  if (evaluationDenied) return void container.append(notPermitted(evaluationDenied));
  const requests = latestRequest();
  const field = h("textarea.code", { rows: 6, value: saved.text, spellcheck: "false", placeholder: '{"text": "I was charged twice", "category": "billing"}\n{"text": "Where is my parcel?", "category": "delivery"}', oninput: () => (saved.text = field.value) });
  const file = h("input", { type: "file", accept: ".jsonl,.json,.csv,.txt", hidden: true, onchange: () => readFile(file.files[0]) });
  const chooseButton = h("button", { type: "button", onclick: () => file.click() }, icon("upload"), "Choose file");
  const evaluateButton = h("button.main", { type: "button", onclick: () => evaluate(false) }, "Evaluate texts");
  const crossValidateButton = h("button", { type: "button", onclick: () => evaluate(true) }, "Cross-validate examples");
  const stopButton = h("button", { type: "button", hidden: true, onclick: requests.cancel }, "Stop");
  const progress = h("progress", { "aria-label": "Progress", max: 1, value: 0 });
  const message = h("div.said", { role: "status", "aria-live": "polite" });
  const results = h("div.stack");

  submitOnEnter(field, () => evaluateButton.disabled || evaluate(false), { multiline: true });

  async function readFile(upload) {
    if (!upload) return;
    if (upload.size > MAX_FILE_BYTES) return showMessage(new Error("The file is too large. Upload a part of it, or use `corbie eval`."));
    field.value = saved.text = await upload.text();
    file.value = "";
    evaluate(false);
  }

  const showMessage = (content) => fill(message, content instanceof Error ? h("p.problem", inlineCode(sentence(content.message))) : h("p.quiet.small", content));
  function setRunning(isRunning) {
    for (const button of [evaluateButton, crossValidateButton, chooseButton]) button.disabled = isRunning;
    stopButton.hidden = !isRunning;
    progress.classList.toggle("on", isRunning);
    if (isRunning) progress.removeAttribute("value");
  }

  let runs = 0;
  async function evaluate(isCrossValidation) {
    let input = { note: "" };
    try {
      if (!isCrossValidation) input = parseLabelledExamples(saved.text);
    } catch (error) {
      showMessage(error);
      field.focus();
      return;
    }
    const signal = requests.signal();
    const run = ++runs;
    // A newer run has cancelled this one and controls the buttons.
    const isSuperseded = () => run !== runs;
    setRunning(true);
    showMessage(isCrossValidation ? "Cross-validating…" : `Classifying ${plural(input.examples.length, "text")}…`);
    try {
      const onprogress = ({ progress: done, total }) => total && !isSuperseded() && (progress.value = done / total);
      const reply = await call(TOOL, isCrossValidation ? {} : { examples: input.examples }, { signal, onprogress });
      if (isSuperseded()) return;
      saved.reply = reply;
      if (!signal.aborted) showMessage(`${plural(saved.reply.count, "text")} evaluated.${input.note ? ` ${input.note}.` : ""}`);
      fill(results, renderResults(saved.reply));
    } catch (error) {
      if (isSuperseded()) return;
      if (error.kind === "cancelled") showMessage("Stopped.");
      else {
        const text = await describeUnknownCategory(error, input.examples, denialReason);
        if (!isSuperseded()) showMessage(new Error(text));
      }
    } finally {
      if (!isSuperseded()) setRunning(false);
    }
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
  fill(results, renderResults(saved.reply));
  return requests.cancel;
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

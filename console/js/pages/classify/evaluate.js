// How good the classifier is: on texts the reader brings, or on the taxonomy's own examples.

import { h, fill, icon } from "../../dom.js";
import { call } from "../../mcp.js";
import { badge } from "../../components/parts.js";
import { number, percent, plural } from "../../format.js";
import { allowed } from "../../allowed.js";
import { hindered, missing, newest } from "./asking.js";
import { sentence, ticked } from "../../components/said.js";
import { readLabelled } from "./labelled.js";
import { reliability } from "./reliability.js";
import { confusion } from "./confusion.js";

const TOOL = "evaluate_categories";
/** A file larger than this is not read into the page: the server takes 4 MiB at most. */
const MOST_BYTES = 3_500_000;

/** How many categories are named where one is unknown. */
const SHOWN = 12;

/** What was pasted and what came of it stay while other parts are looked at. */
const kept = { text: "", reply: undefined };

export async function show(place) {
  const { has, lacks } = await allowed();
  if (!has(TOOL)) return void place.append(missing("measure how good the categories are"));
  const unmeasured = lacks(TOOL, "Measuring how good the categories are");
  if (unmeasured) return void place.append(hindered(unmeasured));
  const asking = newest();
  const field = h("textarea.code", { rows: 6, value: kept.text, spellcheck: "false", placeholder: '{"text": "I was charged twice", "category": "billing"}\n{"text": "Where is my parcel?", "category": "delivery"}', oninput: () => (kept.text = field.value) });
  const file = h("input", { type: "file", accept: ".jsonl,.json,.csv,.txt", hidden: true, onchange: () => take(file.files[0]) });
  const choose = h("button", { type: "button", onclick: () => file.click() }, icon("upload"), "Choose a file");
  const these = h("button.main", { type: "button", onclick: () => measure(false) }, "Evaluate these");
  const own = h("button", { type: "button", onclick: () => measure(true) }, "Evaluate its own examples");
  const stop = h("button", { type: "button", hidden: true, onclick: asking.end }, "Stop");
  const progress = h("progress", { "aria-label": "Progress", max: 1, value: 0 });
  const said = h("div.said", { role: "status", "aria-live": "polite" });
  const results = h("div.stack");

  async function take(dropped) {
    if (!dropped) return;
    if (dropped.size > MOST_BYTES) return say(new Error("This file is too large for one go. Take some thousand lines of it, or measure it with `corbie eval`."));
    field.value = kept.text = await dropped.text();
    file.value = "";
    measure(false);
  }

  const say = (what) => fill(said, what instanceof Error ? h("p.problem", ticked(sentence(what.message))) : h("p.quiet.small", what));
  function working(is) {
    for (const button of [these, own, choose]) button.disabled = is;
    stop.hidden = !is;
    progress.classList.toggle("on", is);
    if (is) progress.removeAttribute("value");
  }

  let begun = 0;
  async function measure(itself) {
    let read = { note: "" };
    try {
      if (!itself) read = readLabelled(kept.text);
    } catch (error) {
      say(error);
      field.focus();
      return;
    }
    const signal = asking.signal();
    const turn = ++begun;
    // A newer one has ended this one and has the buttons now.
    const isOld = () => turn !== begun;
    working(true);
    say(itself ? "Learning it several times, each time without some of the examples…" : `Sorting ${plural(read.examples.length, "text")}…`);
    try {
      const onprogress = ({ progress: done, total }) => total && !isOld() && set(done / total);
      const reply = await call(TOOL, itself ? {} : { examples: read.examples }, { signal, onprogress });
      if (isOld()) return;
      kept.reply = reply;
      if (!signal.aborted) say(`${plural(kept.reply.count, "text")} judged.${read.note ? ` Of the lines, ${read.note}.` : ""}`);
      fill(results, drawn(kept.reply));
    } catch (error) {
      if (isOld()) return;
      if (error.kind === "cancelled") say("It was stopped.");
      else {
        const told = await unknown(error, read.examples, lacks);
        if (!isOld()) say(new Error(told));
      }
    } finally {
      if (!isOld()) working(false);
    }
  }
  const set = (share) => (progress.value = share);

  const area = h("section.card.stack.labelled", { "aria-label": "Texts to judge" },
    h("label", "Texts with their categories", h("span.hint", "JSON on each line, or a table that begins with text,category; the category may be called label or class as well. Best are texts the taxonomy has not seen. You can drop a file here."), field),
    h("div.row", these, choose, file, own, stop), h("div.slot", progress, said));
  area.addEventListener("dragover", (event) => {
    event.preventDefault();
    area.classList.add("over");
  });
  area.addEventListener("dragleave", () => area.classList.remove("over"));
  area.addEventListener("drop", (event) => {
    event.preventDefault();
    area.classList.remove("over");
    take(event.dataTransfer.files[0]);
  });

  place.append(area, results);
  fill(results, drawn(kept.reply));
  return asking.end;
}

/** The server tells the place of an unknown category; the page knows its name, and finds out what can be done about it. */
async function unknown(error, examples, lacks) {
  const at = /`examples\[(\d+)\]\.category`/.exec(error.message)?.[1];
  const name = at === undefined ? undefined : examples?.[at]?.category;
  if (name === undefined) return error.message;
  const told = `“${name.replaceAll("`", "'")}”, the category of text ${Number(at) + 1}, is none of this taxonomy.`;
  // Who may not add a category here is told what there is, and what stands in the way of another one.
  const { writable, not_writable_reason: why } = await call("get_taxonomy", {}, { quiet: true }).catch(() => ({}));
  const hindrance = writable === false && why ? `No category can be added here: ${why}` : lacks("save_taxonomy", "Adding a category");
  if (!hindrance) return `${told} Mend the name, or add the category on the tab Edit.`;
  const { categories = [] } = await call("list_categories", {}, { quiet: true }).catch(() => ({}));
  const names = categories.length ? ` (${categories.slice(0, SHOWN).join(", ")}${categories.length > SHOWN ? ", …" : ""})` : "";
  return `${told} Mend the name so that it is one of those there are${names}. ${hindrance}`;
}

function drawn(reply) {
  if (!reply) {
    return h("div.empty", h("h2", "Nothing measured yet"), h("p", "You will see how often the category is right, whether the confidence can be believed, and what is taken for what."), h("p", "Without texts of your own, begin with the taxonomy's own examples: each is judged by what was learned without it."));
  }
  const figure = (name, value, help) => h("div.card", { title: help }, h("div.quiet.small", name), h("div.number", value));
  const share = (value) => (value === null || value === undefined ? "–" : percent(value));
  const head = (...names) => h("thead", h("tr", names.map((name, at) => h(at ? "th.n" : "th", { scope: "col" }, name))));
  const wrong = Math.round(reply.count * (1 - reply.accuracy));
  return [
    h("div.grid.figures",
      figure("Accuracy", percent(reply.accuracy), "The share of texts that got their category"),
      figure("Calibration error", percent(reply.calibration_error), "The mean distance between how sure it was and how often it was right"),
      figure("Mean confidence", percent(reply.mean_confidence), "How sure it was on the whole"),
      figure("Texts", number(reply.count))),
    reply.held_out ? h("p.quiet.small.flat", `Each example was judged by what was learned without it, so the figures are a low guess${reply.examples_available > reply.count ? `; ${number(reply.count)} of ${number(reply.examples_available)} examples were taken` : ""}.`) : null,
    reply.external_server ? h("p.quiet.small.flat", ticked(sentence(reply.external_server))) : null,
    h("div.grid.two",
      h("section.card", h("h2", "Can the confidence be believed?"), reliability(reply.bins, reply.calibration_error)),
      h("section.card", h("h2", "What is taken for what"), h("p.quiet.small", { id: "matrix-key" }, "Rows: what the texts are. Columns: what they got."), confusion(reply.categories, reply.confusion))),
    h("section.card", h("h2", "Each category"), h("div.table.tall", { tabindex: "0", role: "region", "aria-label": "Each category" }, h("table", head("Category", "Texts", "Precision", "Recall"),
      h("tbody", reply.per_category.map((one) => h("tr", h("th.break", { scope: "row" }, one.name), h("td.n", number(one.count)), h("td.n", share(one.precision)), h("td.n", share(one.recall)))))))),
    h("section.card", h("header", h("h2", "Mistakes"), wrong > reply.wrong_predictions.length ? h("span.quiet.small", `the ${reply.wrong_predictions.length} surest of ${number(wrong)}`) : null), reply.wrong_predictions.length
      ? h("div.table.tall", { tabindex: "0", role: "region", "aria-label": "Mistakes" }, h("table",
        h("thead", h("tr", ["Text", "Is", "Got"].map((name) => h("th", { scope: "col" }, name)), h("th.n", { scope: "col" }, "Sure"))),
        h("tbody", reply.wrong_predictions.map(({ text, expected, got, confidence }) => h("tr", h("td.break", text), h("td", badge(expected, "good")), h("td", badge(got, "bad")), h("td.n", percent(confidence)))))))
      : h("p.quiet.flat", "None: every text got its category.")),
  ];
}

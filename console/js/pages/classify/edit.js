// The taxonomy as text: mistakes are told while it is written, it can be tried before it is saved, and saving says what
// changes.

import { h, append, fill, debounce } from "../../dom.js";
import { call } from "../../mcp.js";
import { empty } from "../../components/parts.js";
import { dialog } from "../../components/dialog.js";
import { toast, tellFailure } from "../../components/toast.js";
import { plural } from "../../format.js";
import { onReturn } from "../../connection.js";
import { allowed } from "../../allowed.js";
import { fileName, missing, newest } from "./asking.js";
import { sentence, ticked } from "../../components/said.js";
import { asInFile, begin, draft, isChanged, write } from "./draft.js";
import { difference } from "./difference.js";
import { editor } from "./editor.js";
import { tryBefore } from "./before.js";

/** How long the typing may pause before the text is checked, in milliseconds. */
const PAUSE = 250;
/** How long until it is checked again where the server had no time, in milliseconds. */
const LATER = 1_500;

export async function show(place) {
  const { has, lacks } = await allowed();
  if (!has("check_taxonomy")) return void place.append(missing("read and change the taxonomy"));
  let server = await call("get_taxonomy");
  if (server.text === null || server.text === undefined) {
    const reasons = [server.problem, server.not_writable_reason].filter(Boolean);
    place.append(empty("The text of the taxonomy is not shown here", reasons.map((why) => h("p", ticked(sentence(why)))), h("p", "The other tabs tell what the categories are and how they do.")));
    return;
  }
  const unchecked = lacks("check_taxonomy", "Changing the categories");
  if (unchecked) {
    const also = lacks("check_taxonomy", "Trying another text without saving it").split(". ")[0];
    return void append(place, [h("p.quiet", ticked(lacks("save_taxonomy", "Changing the categories") ?? unchecked)), h("p.quiet", ticked(sentence(also))), readOnly(server.text)]);
  }
  const unsaved = lacks("save_taxonomy", "Saving");

  const resumed = isChanged();
  if (!resumed) begin(server);

  const asking = newest();
  const state = h("span.badge", { role: "status" });
  const notes = h("div.stack.notes");
  const findings = h("div.findings", { role: "status", "aria-live": "polite", "aria-label": "Problems" });
  const save = h("button.main", { type: "button", title: "Ctrl+S", onclick: keep }, "Save…");
  const again = h("button", { type: "button", onclick: reload }, "Reload");
  const copy = h("button", { type: "button", onclick: download }, "Download");
  const writing = editor(draft.text, { label: "Taxonomy", oninput: (text) => (write(text), standing(), soon()) });
  const trying = tryBefore({ text: () => asInFile(draft.text), refused: tell });
  const soon = debounce(check, PAUSE);
  const later = debounce(check, LATER);
  let ended = false;
  let isSaving = false;

  function standing() {
    state.className = isChanged() ? "badge warn" : "badge";
    fill(state, isChanged() ? "not saved" : server.path ? "as in the file" : "as it came with corbie");
    save.disabled = !isChanged();
  }

  async function check() {
    if (ended) return undefined;
    const signal = asking.signal();
    try {
      const checked = await call("check_taxonomy", { text: asInFile(draft.text) }, { signal });
      if (!signal.aborted) tell(checked);
      return checked;
    } catch (error) {
      if (error.kind === "cancelled" || signal.aborted) return undefined;
      // Others may be at the same work just now.
      if (error.kind === "rate" || /try again/.test(error.message)) later();
      told = undefined;
      fill(findings, h("p.quiet", error.kind === "offline" ? "The server cannot be reached. What you write stays here, and is checked when it is there again." : error.message));
    }
  }

  let told;
  function tell({ valid, problems = [], warnings = [], categories = [] }) {
    // What is told already is left alone: it would be read out again, and lose the keyboard.
    const telling = JSON.stringify([valid, problems, warnings, categories]);
    if (told === telling) return;
    told = telling;
    const found = valid ? warnings : problems;
    writing.mark(valid ? [] : problems.map(({ line }) => line).filter(Boolean));
    const examples = categories.reduce((sum, { examples }) => sum + examples, 0);
    const item = ({ message, line, column, hint }) => h(valid ? "li.warn" : "li.bad", line
      ? h("button.plain", { type: "button", onclick: () => writing.go(line, column) }, h("b", `Line ${line}`), h("span.break", ticked(message)))
      : h("span.break", ticked(message)), hint ? h("span.quiet.small.hint", ticked(hint)) : null);
    fill(findings,
      h(valid ? "p.good" : "p.bad", valid ? `No mistakes: ${plural(categories.length, "category", "categories")}, ${plural(examples, "example")}.` : `${plural(problems.length, "mistake")}. Choose one to go to its line.`),
      found.length ? h("ul", found.map(item)) : null);
  }

  /** One at a time: the keys are pressed faster than the server checks, and each would ask and save. */
  async function keep() {
    if (isSaving) return;
    isSaving = true;
    try {
      await agreeAndSave();
    } finally {
      isSaving = false;
    }
  }

  async function agreeAndSave() {
    if (!isChanged()) return toast("Nothing has changed since it was saved.");
    if (unsaved || !server.writable) return unwritable(unsaved ?? server.not_writable_reason);
    const text = draft.text;
    // A question of its own: the one about what was typed is given up as soon as more is typed.
    let checked;
    try {
      checked = await call("check_taxonomy", { text: asInFile(text) });
    } catch (error) {
      return tellFailure(error);
    }
    if (ended) return;
    tell(checked);
    if (!checked.valid) {
      toast("It has mistakes and cannot be saved yet. Mend them first.");
      findings.querySelector("button")?.focus();
      return;
    }
    const { added, removed, element } = difference(draft.base, text);
    const agreed = await dialog({
      title: "Save the taxonomy?",
      body: [h("p", `${plural(added, "line")} added, ${removed} removed. It is used at once; what the file says now is kept beside it.`),
        draft.mixed === undefined ? null : h("p.quiet.small", "The file has line ends of Windows and others. Lines that you did not change keep theirs."), element],
      confirm: "Save",
    });
    if (!agreed) return writing.field.focus();
    save.disabled = true;
    fill(state, "saving and learning…");
    try {
      const saved = await call("save_taxonomy", { text: asInFile(text), version: draft.version });
      begin({ text: asInFile(text), version: saved.version }, draft.text !== text);
      fill(notes);
      toast(`Saved and in use: ${plural(saved.categories, "category", "categories")}.${saved.backup ? ` The former text is in ${saved.backup}.` : ""}`);
    } catch (error) {
      const reason = error.structured?.reason;
      if (reason === "conflict") changedMeanwhile(error);
      else if (reason === "no_file" || reason === "unwritable") unwritable(error.message);
      else if (error.structured?.problems) tell({ valid: false, problems: error.structured.problems });
      else if (error.kind === "offline") fill(notes, h("p.problem.warn", "It was not saved, or the server went away before it said so. Your text stays here; save it again when the server is there."));
      else tellFailure(error);
    }
    standing();
    writing.field.focus();
  }

  function changedMeanwhile(error) {
    const mine = async () => {
      server = await call("get_taxonomy");
      begin(server, true);
      fill(notes);
      standing();
      keep();
    };
    fill(notes, h("p.problem", { role: "alert" }, error.message), h("div.row",
      h("button", { type: "button", onclick: () => mine().catch(tellFailure) }, "Compare mine with it"),
      h("button", { type: "button", onclick: reload }, "Take what it says now")));
  }

  function unwritable(why) {
    fill(notes, h("p.problem.warn", { role: "alert" }, ticked(sentence(why ?? "The taxonomy cannot be saved here.")), " What you write can be tried, and downloaded."));
  }

  async function reload() {
    const sure = !isChanged() || (await dialog({ title: "Drop your changes?", body: h("p", "What you wrote and did not save is lost, and the text the server has takes its place."), confirm: "Drop them", danger: true }));
    if (!sure) return;
    try {
      server = await call("get_taxonomy");
      begin(server);
      writing.set(draft.text);
      told = undefined;
      fill(notes);
      introduce();
      check();
    } catch (error) {
      tellFailure(error);
    }
  }

  function download() {
    const address = URL.createObjectURL(new Blob([asInFile(draft.text)], { type: "application/yaml" }));
    h("a", { href: address, download: server.path ? fileName(server.path) : "taxonomy.yaml" }).click();
    setTimeout(() => URL.revokeObjectURL(address), 10_000);
  }

  function introduce() {
    if (server.problem) fill(notes, h("p.problem.warn", ticked(`The file is not in use as it is: ${sentence(server.problem)}`)));
    else if (unsaved || !server.writable) unwritable(unsaved ?? server.not_writable_reason);
    standing();
  }

  const press = (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "s") {
      event.preventDefault();
      if (!document.querySelector("dialog[open]")) keep();
    }
  };
  document.addEventListener("keydown", press);
  const forget = onReturn(check);

  append(place, [
    h("div.row.editing", h("code.break", { title: server.path }, server.path ? fileName(server.path) : "the taxonomy inside corbie"), state, h("div.row.push", copy, again, unsaved ? null : save)),
    server.external_server ? h("p.quiet", ticked(sentence(server.external_server))) : null,
    notes,
    h("div.edit", writing.element, h("div.stack", h("section.card", { "aria-label": "Check" }, findings), trying.element))]);
  introduce();
  if (resumed) toast("Your unsaved changes are still here.");
  if (resumed && server.version !== draft.version) changedMeanwhile({ message: "The file was changed since you began to write." });
  check();

  return () => {
    document.removeEventListener("keydown", press);
    forget();
    ended = true;
    for (const timer of [soon, later]) timer.cancel();
    asking.end();
    trying.end();
    if (isChanged()) toast("Your changes to the taxonomy are not saved. They stay in this tab, under Classify, Edit.");
  };
}

/** The text for those who may read it and no more. */
function readOnly(text) {
  const shown = editor(text.replace(/\r\n?/g, "\n"), { label: "Taxonomy", oninput: () => {} });
  shown.field.readOnly = true;
  return shown.element;
}

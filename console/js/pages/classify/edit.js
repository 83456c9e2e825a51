// The taxonomy editor: validates while typing, tries the edited taxonomy on texts, and shows a diff before saving.

import { h, append, fill, debounce } from "../../dom.js";
import { call } from "../../mcp.js";
import { empty } from "../../components/widgets.js";
import { dialog } from "../../components/dialog.js";
import { toast, toastError } from "../../components/toast.js";
import { plural } from "../../format.js";
import { onReconnect } from "../../connection.js";
import { loadPermissions } from "../../permissions.js";
import { fileName, latestRequest, toolMissing } from "./requests.js";
import { sentence, inlineCode } from "../../components/inline-code.js";
import { draft, isChanged, rebase, updateDraft, withFileLineEndings } from "./taxonomy-draft.js";
import { renderDiff } from "./diff.js";
import { editor } from "./editor.js";
import { taxonomyTrial } from "./taxonomy-trial.js";

/** Debounce before the text is validated, in milliseconds. */
const CHECK_DEBOUNCE = 250;
/** Delay before validation is retried if the server is busy, in milliseconds. */
const RETRY_DELAY = 1_500;

export async function show(container) {
  const { has, denialReason } = await loadPermissions();
  if (!has("check_taxonomy")) return void container.append(toolMissing("read and change the taxonomy"));
  let server = await call("get_taxonomy");
  if (server.text === null || server.text === undefined) {
    const reasons = [server.problem, server.not_writable_reason].filter(Boolean);
    container.append(empty("The text of the taxonomy is not shown here", reasons.map((reason) => h("p", inlineCode(sentence(reason)))), h("p", "The other tabs tell what the categories are and how they do.")));
    return;
  }
  const checkDenied = denialReason("check_taxonomy", "Changing the categories");
  if (checkDenied) {
    const trialDenied = denialReason("check_taxonomy", "Trying another text without saving it").split(". ")[0];
    return void append(container, [h("p.quiet", inlineCode(denialReason("save_taxonomy", "Changing the categories") ?? checkDenied)), h("p.quiet", inlineCode(sentence(trialDenied))), readOnly(server.text)]);
  }
  const saveDenied = denialReason("save_taxonomy", "Saving");

  const resumed = isChanged();
  if (!resumed) rebase(server);

  const requests = latestRequest();
  const state = h("span.badge", { role: "status" });
  const notes = h("div.stack.notes");
  const findings = h("div.findings", { role: "status", "aria-live": "polite", "aria-label": "Problems" });
  const saveButton = h("button.main", { type: "button", title: "Ctrl+S", onclick: save }, "Save…");
  const reloadButton = h("button", { type: "button", onclick: reload }, "Reload");
  const downloadButton = h("button", { type: "button", onclick: download }, "Download");
  const sourceEditor = editor(draft.text, { label: "Taxonomy", oninput: (text) => (updateDraft(text), drawState(), checkDebounced()) });
  const trial = taxonomyTrial({ text: () => withFileLineEndings(draft.text), onInvalid: showFindings });
  const checkDebounced = debounce(check, CHECK_DEBOUNCE);
  const checkLater = debounce(check, RETRY_DELAY);
  let stopped = false;
  let isSaving = false;

  function drawState() {
    state.className = isChanged() ? "badge warn" : "badge";
    fill(state, isChanged() ? "not saved" : server.path ? "as in the file" : "as it came with corbie");
    saveButton.disabled = !isChanged();
  }

  async function check() {
    if (stopped) return undefined;
    const signal = requests.signal();
    try {
      const checked = await call("check_taxonomy", { text: withFileLineEndings(draft.text) }, { signal });
      if (!signal.aborted) showFindings(checked);
      return checked;
    } catch (error) {
      if (error.kind === "cancelled" || signal.aborted) return undefined;
      // The server is busy with requests of other clients.
      if (error.kind === "rate" || /try again/.test(error.message)) checkLater();
      shownFindings = undefined;
      fill(findings, h("p.quiet", error.kind === "offline" ? "The server cannot be reached. What you write stays here, and is checked when it is there again." : error.message));
    }
  }

  let shownFindings;
  function showFindings({ valid, problems = [], warnings = [], categories = [] }) {
    // Unchanged findings are not redrawn: a screen reader would announce them again, and the focus would be lost.
    const findingsKey = JSON.stringify([valid, problems, warnings, categories]);
    if (shownFindings === findingsKey) return;
    shownFindings = findingsKey;
    const diagnostics = valid ? warnings : problems;
    sourceEditor.markErrors(valid ? [] : problems.map(({ line }) => line).filter(Boolean));
    const examples = categories.reduce((sum, { examples }) => sum + examples, 0);
    const item = ({ message, line, column, hint }) => h(valid ? "li.warn" : "li.bad", line
      ? h("button.plain", { type: "button", onclick: () => sourceEditor.goTo(line, column) }, h("b", `Line ${line}`), h("span.break", inlineCode(message)))
      : h("span.break", inlineCode(message)), hint ? h("span.quiet.small.hint", inlineCode(hint)) : null);
    fill(findings,
      h(valid ? "p.good" : "p.bad", valid ? `No mistakes: ${plural(categories.length, "category", "categories")}, ${plural(examples, "example")}.` : `${plural(problems.length, "mistake")}. Choose one to go to its line.`),
      diagnostics.length ? h("ul", diagnostics.map(item)) : null);
  }

  /** One at a time: repeated key presses would otherwise each ask for confirmation and save. */
  async function save() {
    if (isSaving) return;
    isSaving = true;
    try {
      await confirmAndSave();
    } finally {
      isSaving = false;
    }
  }

  async function confirmAndSave() {
    if (!isChanged()) return toast("Nothing has changed since it was saved.");
    if (saveDenied || !server.writable) return showUnwritable(saveDenied ?? server.not_writable_reason);
    const text = draft.text;
    // A separate request: the one of `check` is cancelled when the user types on.
    let checked;
    try {
      checked = await call("check_taxonomy", { text: withFileLineEndings(text) });
    } catch (error) {
      return toastError(error);
    }
    if (stopped) return;
    showFindings(checked);
    if (!checked.valid) {
      toast("It has mistakes and cannot be saved yet. Mend them first.");
      findings.querySelector("button")?.focus();
      return;
    }
    const { added, removed, element } = renderDiff(draft.base, text);
    const confirmed = await dialog({
      title: "Save the taxonomy?",
      body: [h("p", `${plural(added, "line")} added, ${removed} removed. It is used at once; what the file says now is kept beside it.`),
        draft.mixed === undefined ? null : h("p.quiet.small", "The file has line ends of Windows and others. Lines that you did not change keep theirs."), element],
      confirm: "Save",
    });
    if (!confirmed) return sourceEditor.field.focus();
    saveButton.disabled = true;
    fill(state, "saving and learning…");
    try {
      const saved = await call("save_taxonomy", { text: withFileLineEndings(text), version: draft.version });
      rebase({ text: withFileLineEndings(text), version: saved.version }, draft.text !== text);
      fill(notes);
      toast(`Saved and in use: ${plural(saved.categories, "category", "categories")}.${saved.backup ? ` The former text is in ${saved.backup}.` : ""}`);
    } catch (error) {
      const reason = error.structured?.reason;
      if (reason === "conflict") showConflict(error);
      else if (reason === "no_file" || reason === "unwritable") showUnwritable(error.message);
      else if (error.structured?.problems) showFindings({ valid: false, problems: error.structured.problems });
      else if (error.kind === "offline") fill(notes, h("p.problem.warn", "It was not saved, or the server went away before it said so. Your text stays here; save it again when the server is there."));
      else toastError(error);
    }
    drawState();
    sourceEditor.field.focus();
  }

  function showConflict(error) {
    const compareWithFile = async () => {
      server = await call("get_taxonomy");
      rebase(server, true);
      fill(notes);
      drawState();
      save();
    };
    fill(notes, h("p.problem", { role: "alert" }, error.message), h("div.row",
      h("button", { type: "button", onclick: () => compareWithFile().catch(toastError) }, "Compare mine with it"),
      h("button", { type: "button", onclick: reload }, "Take what it says now")));
  }

  function showUnwritable(reason) {
    fill(notes, h("p.problem.warn", { role: "alert" }, inlineCode(sentence(reason ?? "The taxonomy cannot be saved here.")), " What you write can be tried, and downloaded."));
  }

  async function reload() {
    const confirmed = !isChanged() || (await dialog({ title: "Drop your changes?", body: h("p", "What you wrote and did not save is lost, and the text the server has takes its place."), confirm: "Drop them", danger: true }));
    if (!confirmed) return;
    try {
      server = await call("get_taxonomy");
      rebase(server);
      sourceEditor.setText(draft.text);
      shownFindings = undefined;
      fill(notes);
      showFileState();
      check();
    } catch (error) {
      toastError(error);
    }
  }

  function download() {
    const url = URL.createObjectURL(new Blob([withFileLineEndings(draft.text)], { type: "application/yaml" }));
    h("a", { href: url, download: server.path ? fileName(server.path) : "taxonomy.yaml" }).click();
    setTimeout(() => URL.revokeObjectURL(url), 10_000);
  }

  function showFileState() {
    if (server.problem) fill(notes, h("p.problem.warn", inlineCode(`The file is not in use as it is: ${sentence(server.problem)}`)));
    else if (saveDenied || !server.writable) showUnwritable(saveDenied ?? server.not_writable_reason);
    drawState();
  }

  const onKeyDown = (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "s") {
      event.preventDefault();
      if (!document.querySelector("dialog[open]")) save();
    }
  };
  document.addEventListener("keydown", onKeyDown);
  const removeListener = onReconnect(check);

  append(container, [
    h("div.row.editing", h("code.break", { title: server.path }, server.path ? fileName(server.path) : "the taxonomy inside corbie"), state, h("div.row.push", downloadButton, reloadButton, saveDenied ? null : saveButton)),
    server.external_server ? h("p.quiet", inlineCode(sentence(server.external_server))) : null,
    notes,
    h("div.edit", sourceEditor.element, h("div.stack", h("section.card", { "aria-label": "Check" }, findings), trial.element))]);
  showFileState();
  if (resumed) toast("Your unsaved changes are still here.");
  if (resumed && server.version !== draft.version) showConflict({ message: "The file was changed since you began to write." });
  check();

  return () => {
    document.removeEventListener("keydown", onKeyDown);
    removeListener();
    stopped = true;
    for (const timer of [checkDebounced, checkLater]) timer.cancel();
    requests.cancel();
    trial.cancel();
    if (isChanged()) toast("Your changes to the taxonomy are not saved. They stay in this tab, under Classify, Edit.");
  };
}

/** A read-only editor, for clients that may not change the taxonomy. */
function readOnly(text) {
  const viewer = editor(text.replace(/\r\n?/g, "\n"), { label: "Taxonomy", oninput: () => {} });
  viewer.field.readOnly = true;
  return viewer.element;
}

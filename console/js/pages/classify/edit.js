// The taxonomy editor: validates while typing, tries the edited taxonomy on texts, and shows a diff before saving.

import { h, append, fill, debounce } from "../../dom.js";
import { call } from "../../mcp.js";
import { copyable, empty } from "../../components/widgets.js";
import { dialog, messageDialog } from "../../components/dialog.js";
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
  if (!has("check_taxonomy")) return void container.append(toolMissing("edit the taxonomy"));
  let server = await call("get_taxonomy");
  if (server.text === null || server.text === undefined) {
    const reasons = [server.problem, server.not_writable_reason].filter(Boolean);
    container.append(empty("Taxonomy text not available", reasons.map((reason) => h("p", inlineCode(sentence(reason)))), h("p", "The other tabs show the categories and evaluate them.")));
    return;
  }
  const checkDenied = denialReason("check_taxonomy", "Editing the taxonomy");
  if (checkDenied) {
    const trialDenied = denialReason("check_taxonomy", "Testing changes without saving").split(". ")[0];
    return void append(container, [h("p.quiet", inlineCode(denialReason("save_taxonomy", "Editing the taxonomy") ?? checkDenied)), h("p.quiet", inlineCode(sentence(trialDenied))), readOnly(server.text)]);
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
  const title = h("span", fileTitle());
  let stopped = false;
  let isSaving = false;

  function fileTitle() {
    return server.path ? h("code.break", { title: server.path }, fileName(server.path)) : "Default taxonomy";
  }

  function drawState() {
    state.className = isChanged() ? "badge warn" : "badge";
    fill(state, isChanged() ? "unsaved changes" : server.path ? "saved" : "unmodified");
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
      fill(findings, h("p.quiet", error.kind === "offline" ? "Server unreachable. Your changes are kept and validated after reconnecting." : error.message));
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
      h(valid ? "p.good" : "p.bad", valid ? `Valid: ${plural(categories.length, "category", "categories")}, ${plural(examples, "example")}.` : `${plural(problems.length, "error")}. Select one to jump to its line.`),
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
    if (!isChanged()) return toast("No changes to save.");
    if (saveDenied) return showUnwritable(saveDenied);
    if (!server.writable) return server.path ? showUnwritable(server.not_writable_reason) : explainOwnFile();
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
      toast("Fix the errors before saving.");
      findings.querySelector("button")?.focus();
      return;
    }
    const { added, removed, element } = renderDiff(draft.base, text);
    const confirmed = await dialog({
      title: "Save the taxonomy?",
      body: [h("p", `${plural(added, "line")} added, ${removed} removed. ${server.path ? "The new version takes effect immediately; the previous one is kept as a backup." : "It is saved as your own taxonomy file and takes effect immediately."}`),
        draft.mixed === undefined ? null : h("p.quiet.small", "The file has mixed line endings. Unchanged lines keep theirs."), element],
      confirm: "Save",
    });
    if (!confirmed) return sourceEditor.field.focus();
    await saveText(text);
  }

  /** Saves a checked text and reports the result. */
  async function saveText(text) {
    saveButton.disabled = true;
    fill(state, "saving and training…");
    try {
      const saved = await call("save_taxonomy", { text: withFileLineEndings(text), version: draft.version });
      rebase({ text: withFileLineEndings(text), version: saved.version }, draft.text !== text);
      if (!server.path) server = await call("get_taxonomy", {}, { quiet: true }).catch(() => ({ ...server, path: saved.path }));
      fill(title, fileTitle());
      fill(notes);
      toast(`Saved: ${plural(saved.categories, "category", "categories")} in use.${saved.backup ? ` Backup: ${saved.backup}` : ""}`);
    } catch (error) {
      const reason = error.structured?.reason;
      if (reason === "conflict") showConflict();
      else if (reason === "no_file" || reason === "unwritable") showUnwritable(error.message);
      else if (error.structured?.problems) showFindings({ valid: false, problems: error.structured.problems });
      else if (error.kind === "offline") fill(notes, h("p.problem.warn", "Connection lost while saving. Your changes are kept; save again after reconnecting."));
      else toastError(error);
    }
    drawState();
    sourceEditor.field.focus();
  }

  /** Saves a copy of the default taxonomy as the user's own file, or explains how to set one up if the server cannot. */
  async function makeOwn() {
    if (!server.writable) return explainOwnFile();
    if (isChanged()) return save();
    const confirmed = await dialog({
      title: "Make it mine?",
      body: h("p", "A copy of the default taxonomy is saved as your own file and used from now on. You can then edit it here."),
      confirm: "Make it mine",
    });
    if (confirmed && !isSaving) {
      isSaving = true;
      await saveText(draft.text).finally(() => (isSaving = false));
    }
  }

  const explainOwnFile = () => messageDialog("Use your own taxonomy",
    h("ol", h("li", h("button", { type: "button", onclick: download }, "Download taxonomy.yaml")),
      h("li", inlineCode("Store it next to `corbie.yaml` on the server, and add this setting:"), copyable("classification:\n  taxonomy: taxonomy.yaml")),
      h("li", "Restart the server. Then you can edit and save the taxonomy here.")));

  function showDefaultNote() {
    fill(notes, h("div.row.own", h("p", "This is the default taxonomy. Make a copy to define your own categories."), h("button", { type: "button", onclick: makeOwn }, "Make it mine")));
  }

  function showConflict() {
    const compareWithFile = async () => {
      server = await call("get_taxonomy");
      rebase(server, true);
      fill(notes);
      drawState();
      save();
    };
    fill(notes, h("p.problem", { role: "alert" }, "The file has changed since you opened it."), h("div.row",
      h("button", { type: "button", onclick: () => compareWithFile().catch(toastError) }, "Compare with my changes"),
      h("button", { type: "button", onclick: reload }, "Reload file")));
  }

  function showUnwritable(reason) {
    fill(notes, h("p.problem.warn", { role: "alert" }, inlineCode(sentence(reason ?? "The taxonomy cannot be saved.")), " You can test and download your changes."));
  }

  async function reload() {
    const confirmed = !isChanged() || (await dialog({ title: "Discard changes?", body: h("p", "Unsaved changes will be lost."), confirm: "Discard", danger: true }));
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
    if (server.problem) fill(notes, h("p.problem.warn", inlineCode(`The file has errors and is not in use: ${sentence(server.problem)}`)));
    else if (saveDenied) showUnwritable(saveDenied);
    else if (!server.path) showDefaultNote();
    else if (!server.writable) showUnwritable(server.not_writable_reason);
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
    h("div.row.editing", title, state, h("div.row.push", downloadButton, reloadButton, saveDenied ? null : saveButton)),
    server.external_server ? h("p.quiet", inlineCode(sentence(server.external_server))) : null,
    notes,
    h("div.edit", sourceEditor.element, h("div.stack", h("section.card", { "aria-label": "Check" }, findings), trial.element))]);
  showFileState();
  if (resumed) toast("Unsaved changes restored.");
  if (resumed && server.version !== draft.version) showConflict();
  check();

  return () => {
    document.removeEventListener("keydown", onKeyDown);
    removeListener();
    stopped = true;
    for (const timer of [checkDebounced, checkLater]) timer.cancel();
    requests.cancel();
    trial.cancel();
    if (isChanged()) toast("Unsaved taxonomy changes are kept in this tab (Classify › Edit).");
  };
}

/** A read-only editor, for clients that may not change the taxonomy. */
function readOnly(text) {
  const viewer = editor(text.replace(/\r\n?/g, "\n"), { label: "Taxonomy", oninput: () => {} });
  viewer.field.readOnly = true;
  return viewer.element;
}

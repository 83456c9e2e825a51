// The draft of an edited taxonomy. It survives navigation and lost connections, is saved for a reload, and closing the tab
// asks for confirmation.

import { debounce } from "../../dom.js";
import { diffLines } from "./diff.js";

const STORAGE_KEY = "corbie.taxonomy.draft";
/** Debounce before the draft is saved, in milliseconds. */
const SAVE_DEBOUNCE = 300;

/** `base` is the text of the server when editing began, `version` its version; `text` is the edited text. Both have the line
 *  endings of a text field: `isWindows` means that the file has CRLF, and `mixed` is its original text if it has mixed line
 *  endings. */
export const draft = { base: undefined, version: undefined, text: undefined, isWindows: false, mixed: undefined };

export const isChanged = () => draft.text !== undefined && draft.text !== draft.base;

/** Restores the line endings of the file: saving one changed line must not change all others. */
export function withFileLineEndings(text) {
  const lineEnding = draft.isWindows ? "\r\n" : "\n";
  return draft.mixed === undefined ? text.replaceAll("\n", lineEnding) : withMixedLineEndings(text, lineEnding);
}

const LINE_ENDINGS = /\r\n|\r|\n/g;

/** Unchanged lines keep their endings, replaced lines inherit them, and added lines get the default. */
function withMixedLineEndings(text, lineEnding) {
  const original = draft.mixed.match(LINE_ENDINGS);
  const endings = [];
  let removed = [];
  let index = 0;
  for (const { sign } of diffLines(draft.base, text)) {
    if (sign === "-") removed.push(original[index++]);
    else if (sign === "+") endings.push(removed.shift() ?? lineEnding);
    else {
      endings.push(original[index++] ?? lineEnding);
      removed = [];
    }
  }
  const lines = text.split("\n");
  // A lone CR before an empty line that ends in LF would merge into one CRLF. Backward, since a replaced ending can affect the
  // line before.
  for (let number = lines.length - 3; number >= 0; number--) {
    if (endings[number] === "\r" && lines[number + 1] === "" && endings[number + 1] === "\n") endings[number] = lineEnding;
  }
  return lines.map((line, number) => (number + 1 < lines.length ? line + endings[number] : line)).join("");
}

/** Sets the base to the text of the server. With `keepText`, the edited text stays. */
export function rebase({ text, version }, keepText = false) {
  const endings = text.match(LINE_ENDINGS) ?? [];
  // The default for added lines is the more frequent line ending.
  draft.isWindows = endings.filter((ending) => ending === "\r\n").length * 2 > endings.length;
  draft.mixed = new Set(endings).size > 1 || endings.includes("\r") ? text : undefined;
  draft.base = text.replace(/\r\n?/g, "\n");
  draft.version = version;
  if (!keepText) draft.text = draft.base;
  store();
}

export function updateDraft(text) {
  draft.text = text;
  updateUnloadWarning();
  storeDebounced();
}

function store() {
  updateUnloadWarning();
  try {
    if (isChanged()) sessionStorage.setItem(STORAGE_KEY, JSON.stringify(draft));
    else sessionStorage.removeItem(STORAGE_KEY);
  } catch { /* Over the storage quota; the unload warning remains. */ }
}

function updateUnloadWarning() {
  if (isChanged()) addEventListener("beforeunload", warn);
  else removeEventListener("beforeunload", warn);
}

const storeDebounced = debounce(store, SAVE_DEBOUNCE);
const warn = (event) => event.preventDefault();

try {
  Object.assign(draft, JSON.parse(sessionStorage.getItem(STORAGE_KEY) ?? "{}"));
} catch { /* An unreadable draft is dropped. */ }
updateUnloadWarning();
addEventListener("pagehide", store);

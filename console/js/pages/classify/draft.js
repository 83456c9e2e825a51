// A taxonomy that is being changed. It outlives the page it is written on: other pages may be looked at meanwhile, the
// server may go away, and closing the tab asks first.

import { debounce } from "../../dom.js";

const KEY = "corbie.taxonomy.draft";
/** How long the typing may pause before it is kept for a reload, in milliseconds: long texts take a moment. */
const PAUSE = 300;

/** `base` is what the server had when the writing began, `version` its name for that; `text` is what is written now.
 *  Both have the line ends of a field for text; `isWindows` remembers that the file has those of Windows. */
export const draft = { base: undefined, version: undefined, text: undefined, isWindows: false };

export const isChanged = () => draft.text !== undefined && draft.text !== draft.base;

/** A text as the file has it: saving one changed line must not change the end of every other. */
export const asInFile = (text) => (draft.isWindows ? text.replaceAll("\n", "\r\n") : text);

/** Takes over what the server has. With `keep`, what is written stays and is compared with that from now on. */
export function begin({ text, version }, keep = false) {
  const count = (pattern) => text.match(pattern)?.length ?? 0;
  // Where both kinds of line ends are mixed, the more frequent one is kept.
  draft.isWindows = count(/\r\n/g) * 2 > count(/\n/g);
  draft.base = text.replace(/\r\n?/g, "\n");
  draft.version = version;
  if (!keep) draft.text = draft.base;
  store();
}

export function write(text) {
  draft.text = text;
  guard();
  soon();
}

function store() {
  guard();
  try {
    if (isChanged()) sessionStorage.setItem(KEY, JSON.stringify(draft));
    else sessionStorage.removeItem(KEY);
  } catch { /* Too large to be kept over a reload; the browser asks before one. */ }
}

function guard() {
  if (isChanged()) addEventListener("beforeunload", ask);
  else removeEventListener("beforeunload", ask);
}

const soon = debounce(store, PAUSE);
const ask = (event) => event.preventDefault();

try {
  Object.assign(draft, JSON.parse(sessionStorage.getItem(KEY) ?? "{}"));
} catch { /* What cannot be read is no draft. */ }
guard();
addEventListener("pagehide", store);

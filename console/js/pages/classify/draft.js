// A taxonomy that is being changed. It outlives the page it is written on: other pages may be looked at meanwhile, the
// server may go away, and closing the tab asks first.

import { debounce } from "../../dom.js";
import { compare } from "./difference.js";

const KEY = "corbie.taxonomy.draft";
/** How long the typing may pause before it is kept for a reload, in milliseconds: long texts take a moment. */
const PAUSE = 300;

/** `base` is what the server had when the writing began, `version` its name for that; `text` is what is written now.
 *  Both have the line ends of a field for text; `isWindows` remembers that the file has those of Windows, and `mixed` is
 *  the file as it is where it has several kinds. */
export const draft = { base: undefined, version: undefined, text: undefined, isWindows: false, mixed: undefined };

export const isChanged = () => draft.text !== undefined && draft.text !== draft.base;

/** A text as the file has it: saving one changed line must not change the end of every other. */
export function asInFile(text) {
  const usual = draft.isWindows ? "\r\n" : "\n";
  return draft.mixed === undefined ? text.replaceAll("\n", usual) : asMixed(text, usual);
}

const ENDS = /\r\n|\r|\n/g;

/** Lines that stayed keep their ends; one in the place of another takes its end over, and new ones have the usual one. */
function asMixed(text, usual) {
  const ends = draft.mixed.match(ENDS);
  const given = [];
  let free = [];
  let at = 0;
  for (const { sign } of compare(draft.base, text)) {
    if (sign === "-") free.push(ends[at++]);
    else if (sign === "+") given.push(free.shift() ?? usual);
    else {
      given.push(ends[at++] ?? usual);
      free = [];
    }
  }
  const lines = text.split("\n");
  // Before an empty line that ends in a line feed, a lone carriage return would become one end with it. From the end on,
  // since one that becomes a line feed is one for the line before.
  for (let number = lines.length - 3; number >= 0; number--) {
    if (given[number] === "\r" && lines[number + 1] === "" && given[number + 1] === "\n") given[number] = usual;
  }
  return lines.map((line, number) => (number + 1 < lines.length ? line + given[number] : line)).join("");
}

/** Takes over what the server has. With `keep`, what is written stays and is compared with that from now on. */
export function begin({ text, version }, keep = false) {
  const ends = text.match(ENDS) ?? [];
  // Where several kinds are mixed, new lines get the more frequent one.
  draft.isWindows = ends.filter((end) => end === "\r\n").length * 2 > ends.length;
  draft.mixed = new Set(ends).size > 1 || ends.includes("\r") ? text : undefined;
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

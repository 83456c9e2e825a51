// Positions of passages in the text of a page.

/** Minimum length of a match between a passage and a page, in characters. */
const MIN_MATCH_LENGTH = 24;

/** Collapses white space; returns the text and the original position of each character. */
function collapseWhitespace(text) {
  let collapsed = "";
  const places = [];
  let space = true;
  for (let at = 0; at < text.length; at++) {
    const isSpace = /\s/.test(text[at]);
    if (isSpace && space) continue;
    collapsed += isSpace ? " " : text[at];
    places.push(at);
    space = isSpace;
  }
  return { collapsed, places };
}

/** The range of a passage in a text, [from, to). Its beginning suffices if it continues on another page. */
export function locate(text, passage) {
  const page = collapseWhitespace(text);
  const wanted = collapseWhitespace(passage).collapsed.trim();
  if (!wanted) return undefined;
  for (let length = wanted.length; length >= Math.min(MIN_MATCH_LENGTH, wanted.length); length = Math.floor(length / 2)) {
    const at = page.collapsed.indexOf(wanted.slice(0, length));
    if (at < 0) continue;
    let end = at + length;
    while (end < page.collapsed.length && end - at < wanted.length && page.collapsed[end] === wanted[end - at]) end++;
    return [page.places[at], page.places[end - 1] + 1];
  }
  return undefined;
}

/** Converts character offsets of the server to UTF-16 offsets. */
export function utf16Offsets(text, characters) {
  const sorted = [...new Set(characters)].sort((a, b) => a - b);
  const found = new Map();
  let count = 0;
  let next = 0;
  for (let at = 0; next < sorted.length && at <= text.length; count++) {
    while (next < sorted.length && sorted[next] <= count) found.set(sorted[next++], at);
    if (at >= text.length) break;
    at += text.codePointAt(at) > 0xffff ? 2 : 1;
  }
  while (next < sorted.length) found.set(sorted[next++], text.length);
  return (character) => found.get(character);
}

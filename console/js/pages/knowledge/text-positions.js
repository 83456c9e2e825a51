// Where passages stand in the text of a page.

/** The fewest letters that a passage must share with a page to be recognised there. */
const LEAST = 24;

/** The text with every run of spaces as one, and where each of its letters was. */
function collapseWhitespace(text) {
  let said = "";
  const places = [];
  let space = true;
  for (let at = 0; at < text.length; at++) {
    const isSpace = /\s/.test(text[at]);
    if (isSpace && space) continue;
    said += isSpace ? " " : text[at];
    places.push(at);
    space = isSpace;
  }
  return { said, places };
}

/** Where a passage stands in a text, as [from, to); its beginning is enough where it goes on elsewhere. */
export function locate(text, passage) {
  const page = collapseWhitespace(text);
  const wanted = collapseWhitespace(passage).said.trim();
  if (!wanted) return undefined;
  for (let length = wanted.length; length >= Math.min(LEAST, wanted.length); length = Math.floor(length / 2)) {
    const at = page.said.indexOf(wanted.slice(0, length));
    if (at < 0) continue;
    let end = at + length;
    while (end < page.said.length && end - at < wanted.length && page.said[end] === wanted[end - at]) end++;
    return [page.places[at], page.places[end - 1] + 1];
  }
  return undefined;
}

/** Characters as the server counts them, as positions in a string of this language. */
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

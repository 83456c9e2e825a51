// Texts with the categories they belong to, as people have them: JSON on each line, or a table with commas.

/** As many as the server takes at once. */
const MOST = 2_000;
const LABELS = ["category", "label", "class"];

/** Gives { examples: [{ text, category }], note } or throws an Error with the line and what to do. */
export function readLabelled(source) {
  const text = source.replace(/^\uFEFF/, "").trim();
  if (!text) throw new Error("There is nothing to read yet. Paste lines or drop a file.");
  const rows = text.startsWith("{") ? jsonLines(text) : text.startsWith("[") ? jsonList(text) : table(text);
  const strangers = rows.filter(({ category }) => category === null).length;
  const known = rows.filter(({ category }) => category !== null);
  if (!known.length) throw new Error("No line has both a text and a category.");
  const notes = [];
  if (strangers) notes.push(`${strangers} that belong to no category were left out`);
  let examples = known;
  if (known.length > MOST) {
    // Files are often sorted by category, so the first ones alone would tell little.
    examples = Array.from({ length: MOST }, (_, at) => known[Math.floor((at * known.length) / MOST)]);
    notes.push(`${MOST} of ${known.length} are taken, from all over the file`);
  }
  return { examples, note: notes.join("; ") };
}

function jsonLines(text) {
  return text.split("\n").flatMap((line, at) => {
    if (!line.trim()) return [];
    try {
      return [row(JSON.parse(line))];
    } catch (error) {
      throw new Error(`Line ${at + 1}: ${error instanceof SyntaxError ? "this is not JSON" : error.message}. Write {"text": "…", "category": "…"} on each line.`);
    }
  });
}

function jsonList(text) {
  try {
    return JSON.parse(text).map(row);
  } catch (error) {
    throw new Error(`${error instanceof SyntaxError ? "This is not JSON" : error.message}. Write a list of {"text": "…", "category": "…"}.`);
  }
}

function row(value) {
  const label = LABELS.find((name) => value?.[name] !== undefined);
  if (typeof value?.text !== "string") throw new Error("there is no text");
  if (label === undefined) throw new Error("there is no category (or label)");
  return { text: value.text, category: value[label] === null ? null : String(value[label]) };
}

function table(text) {
  const [head, ...rows] = cells(text);
  const names = head.cells.map((name) => name.trim().toLowerCase());
  const [of, to] = [names.indexOf("text"), names.findIndex((name) => LABELS.includes(name))];
  if (of < 0 || to < 0) throw new Error("The first line must be text,category or text,label; or write {\"text\": \"…\", \"category\": \"…\"} on each line.");
  return rows.filter(({ cells }) => cells.some(Boolean)).map(({ cells, line }) => {
    if (!cells[of]) throw new Error(`Line ${line}: there is no text. A text with a comma needs quotes around it.`);
    return { text: cells[of], category: cells[to]?.trim() || null };
  });
}

/** Rows of a table with commas; quotes may hold commas, line ends and doubled quotes. */
function cells(text) {
  const rows = [];
  let row = { cells: [], line: 1 };
  let line = 1;
  for (const [, quoted, plain, end] of text.matchAll(/(?:"((?:[^"]|"")*)"|([^,\r\n]*))(,|\r?\n|$)/g)) {
    row.cells.push(quoted === undefined ? plain : quoted.replaceAll('""', '"'));
    line += quoted?.split("\n").length - 1 || 0;
    if (end === ",") continue;
    rows.push(row);
    if (end === "") break;
    row = { cells: [], line: ++line };
  }
  return rows;
}

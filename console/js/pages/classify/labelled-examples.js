// Parses labelled examples: JSON Lines, a JSON array, or CSV.

/** Limit of the server. */
const MAX_EXAMPLES = 2_000;
const LABEL_COLUMNS = ["category", "label", "class"];

/** Returns { examples: [{ text, category }], note } or throws an Error with the line and advice. */
export function parseLabelledExamples(source) {
  const text = source.replace(/^\uFEFF/, "").trim();
  if (!text) throw new Error("There is nothing to read yet. Paste lines or drop a file.");
  const rows = text.startsWith("{") ? parseJsonLines(text) : text.startsWith("[") ? parseJsonArray(text) : parseCsv(text);
  const unlabelled = rows.filter(({ category }) => category === null).length;
  const labelled = rows.filter(({ category }) => category !== null);
  if (!labelled.length) throw new Error("No line has both a text and a category.");
  const notes = [];
  if (unlabelled) notes.push(`${unlabelled} that belong to no category were left out`);
  let examples = labelled;
  if (labelled.length > MAX_EXAMPLES) {
    // Evenly sampled: files are often sorted by category, so the first lines are not representative.
    examples = Array.from({ length: MAX_EXAMPLES }, (_, index) => labelled[Math.floor((index * labelled.length) / MAX_EXAMPLES)]);
    notes.push(`${MAX_EXAMPLES} of ${labelled.length} are taken, from all over the file`);
  }
  return { examples, note: notes.join("; ") };
}

function parseJsonLines(text) {
  return text.split("\n").flatMap((line, index) => {
    if (!line.trim()) return [];
    try {
      return [toExample(JSON.parse(line))];
    } catch (error) {
      throw new Error(`Line ${index + 1}: ${error instanceof SyntaxError ? "this is not JSON" : error.message}. Write {"text": "…", "category": "…"} on each line.`);
    }
  });
}

function parseJsonArray(text) {
  try {
    return JSON.parse(text).map(toExample);
  } catch (error) {
    throw new Error(`${error instanceof SyntaxError ? "This is not JSON" : error.message}. Write a list of {"text": "…", "category": "…"}.`);
  }
}

function toExample(value) {
  const label = LABEL_COLUMNS.find((name) => value?.[name] !== undefined);
  if (typeof value?.text !== "string") throw new Error("there is no text");
  if (label === undefined) throw new Error("there is no category (or label)");
  return { text: value.text, category: value[label] === null ? null : String(value[label]) };
}

function parseCsv(text) {
  const [head, ...rows] = splitCsv(text);
  const names = head.cells.map((name) => name.trim().toLowerCase());
  const [textColumn, labelColumn] = [names.indexOf("text"), names.findIndex((name) => LABEL_COLUMNS.includes(name))];
  if (textColumn < 0 || labelColumn < 0) throw new Error("The first line must be text,category or text,label; or write {\"text\": \"…\", \"category\": \"…\"} on each line.");
  return rows.filter(({ cells }) => cells.some(Boolean)).map(({ cells, line }) => {
    if (!cells[textColumn]) throw new Error(`Line ${line}: there is no text. A text with a comma needs quotes around it.`);
    return { text: cells[textColumn], category: cells[labelColumn]?.trim() || null };
  });
}

/** Rows of a CSV file; quoted cells can contain commas, line breaks and doubled quotes. */
function splitCsv(text) {
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

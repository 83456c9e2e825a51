// Parses labelled examples: JSON Lines, a JSON array, or CSV.

/** Limit of the server. */
const MAX_EXAMPLES = 2_000;
const LABEL_COLUMNS = ["category", "label", "class"];

/** Returns { examples: [{ text, category }], note } or throws an Error with the line and advice. */
export function parseLabelledExamples(source) {
  const text = source.replace(/^\uFEFF/, "").trim();
  if (!text) throw new Error("No texts. Paste labelled texts or drop a file.");
  const rows = text.startsWith("{") ? parseJsonLines(text) : text.startsWith("[") ? parseJsonArray(text) : parseCsv(text);
  const unlabelled = rows.filter(({ category }) => category === null).length;
  const labelled = rows.filter(({ category }) => category !== null);
  if (!labelled.length) throw new Error("No line has a text and a category.");
  const notes = [];
  if (unlabelled) notes.push(`${unlabelled} without a category skipped`);
  let examples = labelled;
  if (labelled.length > MAX_EXAMPLES) {
    // Evenly sampled: files are often sorted by category, so the first lines are not representative.
    examples = Array.from({ length: MAX_EXAMPLES }, (_, index) => labelled[Math.floor((index * labelled.length) / MAX_EXAMPLES)]);
    notes.push(`${MAX_EXAMPLES} of ${labelled.length} sampled`);
  }
  return { examples, note: notes.join("; ") };
}

function parseJsonLines(text) {
  return text.split("\n").flatMap((line, index) => {
    if (!line.trim()) return [];
    try {
      return [toExample(JSON.parse(line))];
    } catch (error) {
      throw new Error(`Line ${index + 1}: ${error instanceof SyntaxError ? "invalid JSON" : error.message}. Expected {"text": "…", "category": "…"}.`);
    }
  });
}

function parseJsonArray(text) {
  try {
    return JSON.parse(text).map(toExample);
  } catch (error) {
    throw new Error(`${error instanceof SyntaxError ? "Invalid JSON" : error.message}. Expected a list of {"text": "…", "category": "…"}.`);
  }
}

function toExample(value) {
  const label = LABEL_COLUMNS.find((name) => value?.[name] !== undefined);
  if (typeof value?.text !== "string") throw new Error("`text` is missing");
  if (label === undefined) throw new Error("`category` is missing");
  return { text: value.text, category: value[label] === null ? null : String(value[label]) };
}

function parseCsv(text) {
  const [head, ...rows] = splitCsv(text);
  const names = head.cells.map((name) => name.trim().toLowerCase());
  const [textColumn, labelColumn] = [names.indexOf("text"), names.findIndex((name) => LABEL_COLUMNS.includes(name))];
  if (textColumn < 0 || labelColumn < 0) throw new Error("The CSV header must have the columns text and category (or label). For JSON Lines, write {\"text\": \"…\", \"category\": \"…\"} per line.");
  return rows.filter(({ cells }) => cells.some(Boolean)).map(({ cells, line }) => {
    if (!cells[textColumn]) throw new Error(`Line ${line}: text is missing. Quote texts that contain commas.`);
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

// The confusion matrix: rows are actual categories, columns predicted ones, so correct predictions are on the diagonal.

import { h } from "../../dom.js";
import { number } from "../../format.js";

/** Strongest shade of a cell in percent; text on it remains legible. */
const MAX_SHADE = 45;
/** Column names are vertical if there are more columns. */
const MAX_HORIZONTAL_NAMES = 6;

export function confusionMatrix(names, rows) {
  // A last column without a name counts predictions of categories that are not in the table.
  const columns = rows.some((row) => row.length > names.length) ? [...names, "(other)"] : names;
  const cell = (row, actual) => (count, predicted) => {
    const share = count / Math.max(1, row.reduce((sum, each) => sum + each, 0));
    const tone = actual === predicted ? "--good" : "--bad";
    const strength = count ? Math.max(8, Math.round(share * MAX_SHADE)) : 0;
    return h(count ? "td" : "td.none", {
      style: count ? { background: `color-mix(in srgb, var(${tone}) ${strength}%, transparent)` } : {},
      title: `Actual: ${names[actual]} · predicted: ${columns[predicted]} · ${number(count)}`,
    }, number(count));
  };
  return h(columns.length > MAX_HORIZONTAL_NAMES ? "div.table.matrix.upright" : "div.table.matrix", { tabindex: "0", role: "region", "aria-label": "Confusion matrix" }, h("table", { "aria-describedby": "matrix-key" },
    h("thead", h("tr", h("td"), columns.map((name) => h("th", { scope: "col", title: name }, h("span", name))))),
    h("tbody", rows.map((row, actual) => h("tr", h("th", { scope: "row", title: names[actual] }, names[actual]), row.map(cell(row, actual)))))));
}

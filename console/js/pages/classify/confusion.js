// Which category is taken for which. Rows are what texts are, columns what they got; right answers are on the diagonal.

import { h } from "../../dom.js";
import { number } from "../../format.js";

/** The strongest shade, in percent: text on it can still be read. */
const STRONGEST = 45;
/** Names of more columns than this stand upright. */
const UPRIGHT = 6;

export function confusion(names, rows) {
  // A last column without a name counts what got a category that is not in the table.
  const columns = rows.some((row) => row.length > names.length) ? [...names, "others"] : names;
  const cell = (row, at) => (count, to) => {
    const share = count / Math.max(1, row.reduce((sum, each) => sum + each, 0));
    const tone = at === to ? "--good" : "--bad";
    const strength = count ? Math.max(8, Math.round(share * STRONGEST)) : 0;
    return h(count ? "td" : "td.none", {
      style: count ? { background: `color-mix(in srgb, var(${tone}) ${strength}%, transparent)` } : {},
      title: `${number(count)} of ${names[at]} ${at === to ? "recognised" : `taken for ${columns[to]}`}`,
    }, number(count));
  };
  return h(columns.length > UPRIGHT ? "div.table.matrix.upright" : "div.table.matrix", { tabindex: "0", role: "region", "aria-label": "Confusion matrix" }, h("table", { "aria-describedby": "matrix-key" },
    h("thead", h("tr", h("td"), columns.map((name) => h("th", { scope: "col", title: name }, h("span", name))))),
    h("tbody", rows.map((row, at) => h("tr", h("th", { scope: "row", title: names[at] }, names[at]), row.map(cell(row, at)))))));
}

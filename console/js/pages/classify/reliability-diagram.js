// The reliability diagram: accuracy over confidence. On the diagonal the classifier is calibrated.

import { h } from "../../dom.js";
import { percent, number } from "../../format.js";

const WIDTH = 430;
const HEIGHT = 360;
/** Position and size of the plot area, and the height of the histogram of counts below it. */
const [LEFT, TOP, PLOT_WIDTH, PLOT_HEIGHT, HISTOGRAM_HEIGHT] = [46, 12, 360, 240, 42];

const x = (share) => LEFT + share * PLOT_WIDTH;
const y = (share) => TOP + (1 - share) * PLOT_HEIGHT;

export function reliabilityDiagram(bins, error) {
  const filled = bins.filter(({ count }) => count > 0);
  const maxCount = Math.max(...filled.map(({ count }) => count), 1);
  const base = TOP + PLOT_HEIGHT + 30 + HISTOGRAM_HEIGHT;
  const drawing = h("svg.reliability", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `Reliability diagram, calibration error ${percent(error)}. The table below has the values.` });
  for (const share of [0, 0.25, 0.5, 0.75, 1]) {
    drawing.append(
      h("line.rule", { x1: LEFT, x2: x(1), y1: y(share), y2: y(share) }),
      h("text.end", { x: LEFT - 7, y: y(share) + 4 }, `${share * 100} %`),
      h("text.middle", { x: x(share), y: y(0) + 20 }, `${share * 100} %`));
  }
  for (const { from, to, count, mean_confidence: confidence, accuracy } of filled) {
    const [left, width] = [x(from) + 1, Math.max(1, (to - from) * PLOT_WIDTH - 2)];
    const [high, low] = [Math.max(confidence, accuracy), Math.min(confidence, accuracy)];
    drawing.append(h("g",
      h("title", `Confidence ${percent(confidence)} · accuracy ${percent(accuracy)} · ${number(count)} texts`),
      h("rect.right", { x: left, width, y: y(low), height: y(0) - y(low) }),
      h(confidence > accuracy ? "rect.over" : "rect.right.under", { x: left, width, y: y(high), height: y(low) - y(high) }),
      // Square root scale, so that small counts remain visible.
      h("rect.count", { x: left, width, y: base - Math.max(1.5, Math.sqrt(count / maxCount) * HISTOGRAM_HEIGHT), height: Math.max(1.5, Math.sqrt(count / maxCount) * HISTOGRAM_HEIGHT) }),
      width > 20 ? h("text.middle.counted", { x: left + width / 2, y: base + 13 }, number(count)) : null));
  }
  drawing.append(
    h("line.diagonal", { x1: x(0), y1: y(0), x2: x(1), y2: y(1) }),
    h("text.middle", { x: x(0.5), y: HEIGHT - 4 }, "Confidence and number of texts"));
  return h("figure.flat", drawing,
    h("figcaption.row.quiet.small", [["right", "accuracy"], ["over", "overconfident"], ["under", "underconfident"]].map(([kind, text]) => h("span", h(`span.key.${kind}`), text))),
    h("details", h("summary", "Table"), h("div.table", { tabindex: "0", role: "region", "aria-label": "Reliability figures" }, h("table",
      h("thead", h("tr", h("th", { scope: "col" }, "Confidence"), ["Texts", "Mean confidence", "Accuracy"].map((name) => h("th.n", { scope: "col" }, name)))),
      h("tbody", filled.map((bin) => h("tr", h("th", { scope: "row" }, `${Math.round(bin.from * 100)} to ${Math.round(bin.to * 100)} %`), h("td.n", number(bin.count)), h("td.n", percent(bin.mean_confidence)), h("td.n", percent(bin.accuracy)))))))));
}

// A small chart of values over time, with axes, and a tooltip that follows the pointer and the arrow keys.

import { h, fill } from "../dom.js";

const WIDTH = 100;
const HEIGHT = 30;

/**
 * { name, format, axisFormat, emptyText }: the formats turn a value into a text. Returns { element, update(samples, { bad, summary }) }.
 * Samples are { at, value }, oldest first; a value of null means that there was none. The element is updated in place, so that
 * the tooltip stays while new samples arrive.
 */
export function timeChart({ name, format, axisFormat = format, emptyText = "No data" }) {
  const drawing = h("svg.sparkline", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true" });
  const cursor = h("span.cursor", { hidden: true });
  const tooltip = h("span.tooltip", { hidden: true, role: "status" });
  const [max, zero] = [h("span"), h("span", "0")];
  const [start, end] = [h("span", "\u00a0"), h("span", "\u00a0")];
  const plot = h("div.plot", { tabindex: "0", role: "group", "aria-roledescription": "chart", "aria-label": name, onpointermove: follow, onpointerdown: follow, onpointerleave: hide, onblur: hide, onkeydown: step }, drawing, cursor, tooltip);
  const element = h("div.time-chart", h("div.y-axis", { "aria-hidden": "true" }, max, zero), plot, h("div.x-axis", { "aria-hidden": "true" }, start, end));
  let samples = [];
  /** Index of the sample with the tooltip. */
  let current;

  function update(next, { bad = false, summary = "" } = {}) {
    samples = next;
    const top = Math.max(...samples.map(({ value }) => value ?? 0), 0);
    plot.setAttribute("aria-label", `${name}: ${summary}`);
    drawing.classList.toggle("bad", bad);
    const paths = top > 0 || samples.some(({ value }) => value !== null) ? draw(samples, top || 1) : [];
    drawing.replaceChildren(...paths);
    fill(max, top > 0 ? axisFormat(top) : "");
    fill(start, samples.length ? clock(samples[0].at) : "");
    fill(end, samples.length ? "now" : "");
    if (current !== undefined) show(Math.min(current, samples.length - 1));
  }

  function show(index) {
    const sample = samples[index];
    if (!sample) return hide();
    current = index;
    const share = samples.length > 1 ? index / (samples.length - 1) : 0;
    cursor.hidden = tooltip.hidden = false;
    cursor.style.left = `${share * 100}%`;
    fill(tooltip, h("strong", sample.value === null ? emptyText : format(sample.value)), ` ${clock(sample.at, true)}`);
    // Inside of the plot: at the right edge it stands left of the pointer.
    tooltip.style.left = share < 0.5 ? `${share * 100}%` : "auto";
    tooltip.style.right = share < 0.5 ? "auto" : `${(1 - share) * 100}%`;
  }
  function hide() {
    current = undefined;
    cursor.hidden = tooltip.hidden = true;
  }
  function follow(event) {
    const { left, width } = plot.getBoundingClientRect();
    show(Math.max(0, Math.min(samples.length - 1, Math.round(((event.clientX - left) / width) * (samples.length - 1)))));
  }
  function step(event) {
    const moves = { ArrowLeft: -1, ArrowRight: 1 };
    if (event.key === "Escape") return hide();
    if (!(event.key in moves) || !samples.length) return;
    event.preventDefault();
    show(Math.max(0, Math.min(samples.length - 1, (current ?? samples.length) + moves[event.key])));
  }
  return { element, update };
}

/** One area and line per run of samples with values: without requests there is no latency. */
function draw(samples, top) {
  const step = WIDTH / Math.max(samples.length - 1, 1);
  const y = (value) => (HEIGHT - 1 - (value / top) * (HEIGHT - 3)).toFixed(2);
  const runs = [];
  samples.forEach(({ value }, index) => {
    if (value === null) return;
    if (!index || samples[index - 1].value === null) runs.push([]);
    runs.at(-1).push([(index * step).toFixed(2), y(value)]);
  });
  const line = runs.filter((run) => run.length > 1).map((run) => `M${run.map((point) => point.join(" ")).join("L")}`).join("");
  // A single sample is a line of no length, which round caps make a dot.
  const points = runs.filter((run) => run.length === 1).map(([point]) => `M${point.join(" ")}h0.01`).join("");
  const area = runs.map((run) => `M${run[0][0]} ${HEIGHT}${run.map((point) => `L${point.join(" ")}`).join("")}L${run.at(-1)[0]} ${HEIGHT}Z`).join("");
  return runs.length ? [h("path.area", { d: area }), h("path.line", { d: line }), h("path.points", { d: points })] : [];
}

const clock = (at, seconds = false) => new Date(at).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", ...(seconds ? { second: "2-digit" } : {}) });

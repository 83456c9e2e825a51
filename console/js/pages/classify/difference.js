// What changed between two texts, line by line.

import { h } from "../../dom.js";

/** Above this many pairs of lines the changed middle is shown as a whole: comparing all of them would take too long. */
const MOST_PAIRS = 4_000_000;
/** Unchanged lines around a change. */
const AROUND = 2;
/** A longer difference is cut; what matters by then is that it is long. */
const MOST_LINES = 400;

/** [{ sign: " " | "+" | "-", line }] */
export function compare(before, after) {
  const [old, now] = [before.split("\n"), after.split("\n")];
  let start = 0;
  while (start < old.length && start < now.length && old[start] === now[start]) start++;
  let end = 0;
  while (end < old.length - start && end < now.length - start && old[old.length - 1 - end] === now[now.length - 1 - end]) end++;
  const same = (lines) => lines.map((line) => ({ sign: " ", line }));
  return [...same(old.slice(0, start)), ...middle(old.slice(start, old.length - end), now.slice(start, now.length - end)), ...same(old.slice(old.length - end))];
}

/** The longest lines in common stay; everything else goes or comes. */
function middle(old, now) {
  const result = [];
  const width = now.length + 1;
  const few = old.length * now.length <= MOST_PAIRS;
  const lengths = few ? new Uint32Array((old.length + 1) * width) : undefined;
  for (let i = old.length - 1; few && i >= 0; i--) {
    for (let j = now.length - 1; j >= 0; j--) {
      lengths[i * width + j] = old[i] === now[j] ? lengths[(i + 1) * width + j + 1] + 1 : Math.max(lengths[(i + 1) * width + j], lengths[i * width + j + 1]);
    }
  }
  let [i, j] = [0, 0];
  while (i < old.length || j < now.length) {
    if (few && i < old.length && j < now.length && old[i] === now[j]) result.push({ sign: " ", line: old[(j++, i++)] });
    else if (i < old.length && (!few || j >= now.length || lengths[(i + 1) * width + j] >= lengths[i * width + j + 1])) result.push({ sign: "-", line: old[i++] });
    else result.push({ sign: "+", line: now[j++] });
  }
  return result;
}

/** The changed lines with some around them, as something to read. */
export function difference(before, after) {
  const lines = compare(before, after);
  const near = lines.map((_, at) => lines.slice(Math.max(0, at - AROUND), at + AROUND + 1).some(({ sign }) => sign !== " "));
  const shown = [];
  lines.forEach(({ sign, line }, at) => {
    if (near[at]) shown.push(sign === " " ? h("span", `  ${line}`) : h(sign === "+" ? "ins" : "del", `${sign} ${line}`));
    else if (near[at - 1]) shown.push(h("span.quiet", "…"));
  });
  const cut = shown.length > MOST_LINES ? h("span.quiet", `… and ${shown.length - MOST_LINES} more lines`) : null;
  const count = (sign) => lines.filter((line) => line.sign === sign).length;
  return { added: count("+"), removed: count("-"), element: h("pre.difference", { tabindex: "0", "aria-label": "What changed" }, shown.slice(0, MOST_LINES), cut) };
}

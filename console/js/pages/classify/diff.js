// Line diff of two texts.

import { h } from "../../dom.js";

/** Limit of the quadratic comparison. Larger changes are shown as one replacement. */
const MAX_LINE_PAIRS = 4_000_000;
/** Unchanged lines around a change. */
const CONTEXT_LINES = 2;
/** Longer diffs are truncated. */
const MAX_LINES = 400;

/** [{ sign: " " | "+" | "-", line }] */
export function diffLines(before, after) {
  const [old, now] = [before.split("\n"), after.split("\n")];
  let start = 0;
  while (start < old.length && start < now.length && old[start] === now[start]) start++;
  let end = 0;
  while (end < old.length - start && end < now.length - start && old[old.length - 1 - end] === now[now.length - 1 - end]) end++;
  const same = (lines) => lines.map((line) => ({ sign: " ", line }));
  return [...same(old.slice(0, start)), ...diffMiddle(old.slice(start, old.length - end), now.slice(start, now.length - end)), ...same(old.slice(old.length - end))];
}

/** Keeps the longest common subsequence of lines. */
function diffMiddle(old, now) {
  const result = [];
  const width = now.length + 1;
  const isSmall = old.length * now.length <= MAX_LINE_PAIRS;
  const lengths = isSmall ? new Uint32Array((old.length + 1) * width) : undefined;
  for (let i = old.length - 1; isSmall && i >= 0; i--) {
    for (let j = now.length - 1; j >= 0; j--) {
      lengths[i * width + j] = old[i] === now[j] ? lengths[(i + 1) * width + j + 1] + 1 : Math.max(lengths[(i + 1) * width + j], lengths[i * width + j + 1]);
    }
  }
  let [i, j] = [0, 0];
  while (i < old.length || j < now.length) {
    if (isSmall && i < old.length && j < now.length && old[i] === now[j]) result.push({ sign: " ", line: old[(j++, i++)] });
    else if (i < old.length && (!isSmall || j >= now.length || lengths[(i + 1) * width + j] >= lengths[i * width + j + 1])) result.push({ sign: "-", line: old[i++] });
    else result.push({ sign: "+", line: now[j++] });
  }
  return result;
}

/** The diff with context lines as an element, and the numbers of added and removed lines. */
export function renderDiff(before, after) {
  const lines = diffLines(before, after);
  const isShown = lines.map((_, index) => lines.slice(Math.max(0, index - CONTEXT_LINES), index + CONTEXT_LINES + 1).some(({ sign }) => sign !== " "));
  const shown = [];
  lines.forEach(({ sign, line }, index) => {
    if (isShown[index]) shown.push(sign === " " ? h("span", `  ${line}`) : h(sign === "+" ? "ins" : "del", `${sign} ${line}`));
    else if (isShown[index - 1]) shown.push(h("span.quiet", "…"));
  });
  const remainder = shown.length > MAX_LINES ? h("span.quiet", `… and ${shown.length - MAX_LINES} more lines`) : null;
  const count = (sign) => lines.filter((line) => line.sign === sign).length;
  return { added: count("+"), removed: count("-"), element: h("pre.difference", { tabindex: "0", "aria-label": "Changes" }, shown.slice(0, MAX_LINES), remainder) };
}

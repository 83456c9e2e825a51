// A field for text in lines, with their numbers beside it. Tab goes on to the next field, as everywhere.

import { h, fill } from "../../dom.js";

/** { element, field, mark(lines), go(line, column) } */
export function editor(text, { label, oninput }) {
  const gutter = h("div.gutter", { "aria-hidden": "true" });
  const field = h("textarea.code", { "aria-label": label, spellcheck: "false", autocomplete: "off", autocapitalize: "off", wrap: "off", value: text, oninput: () => (number(), oninput(field.value)) });
  let count = 0;
  let wrong = new Set();

  function number() {
    const lines = field.value.split("\n").length;
    if (lines !== count) draw(lines);
  }
  function draw(lines) {
    count = lines;
    // Runs of good lines are one node: a long file has few mistakes.
    const nodes = [];
    let run = "";
    for (let line = 1; line <= lines; line++) {
      if (wrong.has(line)) {
        nodes.push(run, h("b", `${line}\n`));
        run = "";
      } else run += `${line}\n`;
    }
    fill(gutter, nodes, run);
    gutter.scrollTop = field.scrollTop;
  }
  field.addEventListener("scroll", () => (gutter.scrollTop = field.scrollTop), { passive: true });
  number();

  return {
    element: h("div.editor", gutter, field),
    field,
    /** Shows which lines have mistakes. */
    mark(lines) {
      wrong = new Set(lines);
      field.setAttribute("aria-invalid", String(wrong.size > 0));
      draw(count);
    },
    set(value) {
      field.value = value;
      wrong = new Set();
      draw(value.split("\n").length);
    },
    /** Puts the keyboard there and selects the line. */
    go(line, column = 1) {
      const lines = field.value.split("\n");
      const start = lines.slice(0, line - 1).reduce((sum, each) => sum + each.length + 1, 0);
      // Columns count characters; fields count UTF-16 units.
      const at = start + [...(lines[line - 1] ?? "")].slice(0, column - 1).join("").length;
      field.focus();
      field.setSelectionRange(at, start + (lines[line - 1]?.length ?? 0));
      const height = parseFloat(getComputedStyle(field).lineHeight);
      field.scrollTop = Math.max(0, (line - 1) * height - field.clientHeight / 3);
    },
  };
}

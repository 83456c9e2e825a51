// A text editor with line numbers. Tab moves the focus to the next field.

import { h, fill } from "../../dom.js";

/** { element, field, markErrors(lines), setText(text), goTo(line, column) } */
export function editor(text, { label, oninput }) {
  const gutter = h("div.gutter", { "aria-hidden": "true" });
  const field = h("textarea.code", { "aria-label": label, spellcheck: "false", autocomplete: "off", autocapitalize: "off", wrap: "off", value: text, oninput: () => (drawGutterIfChanged(), oninput(field.value)) });
  let lineCount = 0;
  let errorLines = new Set();

  function drawGutterIfChanged() {
    const lines = field.value.split("\n").length;
    if (lines !== lineCount) drawGutter(lines);
  }
  function drawGutter(lines) {
    lineCount = lines;
    // Consecutive lines without errors share one text node.
    const nodes = [];
    let run = "";
    for (let line = 1; line <= lines; line++) {
      if (errorLines.has(line)) {
        nodes.push(run, h("b", `${line}\n`));
        run = "";
      } else run += `${line}\n`;
    }
    fill(gutter, nodes, run);
    gutter.scrollTop = field.scrollTop;
  }
  field.addEventListener("scroll", () => (gutter.scrollTop = field.scrollTop), { passive: true });
  drawGutterIfChanged();

  return {
    element: h("div.editor", gutter, field),
    field,
    /** Marks the lines with errors in the gutter. */
    markErrors(lines) {
      errorLines = new Set(lines);
      field.setAttribute("aria-invalid", String(errorLines.size > 0));
      drawGutter(lineCount);
    },
    setText(value) {
      field.value = value;
      errorLines = new Set();
      drawGutter(value.split("\n").length);
    },
    /** Sets the focus and selects the line from the column on. */
    goTo(line, column = 1) {
      const lines = field.value.split("\n");
      const start = lines.slice(0, line - 1).reduce((sum, text) => sum + text.length + 1, 0);
      // Columns count characters; fields count UTF-16 units.
      const at = start + [...(lines[line - 1] ?? "")].slice(0, column - 1).join("").length;
      field.focus();
      field.setSelectionRange(at, start + (lines[line - 1]?.length ?? 0));
      const height = parseFloat(getComputedStyle(field).lineHeight);
      field.scrollTop = Math.max(0, (line - 1) * height - field.clientHeight / 3);
    },
  };
}

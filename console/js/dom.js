// DOM helpers. Text always becomes a text node, so content of documents and models is never parsed as markup.

const SVG = "http://www.w3.org/2000/svg";
const SVG_NAMES = new Set(["svg", "path", "rect", "line", "circle", "g", "text", "title", "use", "polyline"]);

/**
 * h("p.quiet", { id: "x", onclick: f, hidden: true, dataset: { page: "tools" }, style: { width: "3rem" } }, "text", child, [more])
 * The first argument is a tag name with classes; null, undefined and false children are skipped.
 */
export function h(name, ...rest) {
  const [tag, ...classes] = name.split(".");
  const element = SVG_NAMES.has(tag) ? document.createElementNS(SVG, tag) : document.createElement(tag || "div");
  if (classes.length) element.setAttribute("class", classes.join(" "));
  const first = rest[0];
  if (first && typeof first === "object" && !(first instanceof Node) && !Array.isArray(first)) set(element, rest.shift());
  append(element, rest);
  return element;
}

/** Sets properties on an existing element, in the format of `h`. */
export function set(element, properties) {
  for (const [key, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) {
      if (value === false && key in element && !key.startsWith("aria")) element[key] = false;
      continue;
    }
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key === "dataset") Object.assign(element.dataset, value);
    else if (key === "style") for (const [name, to] of Object.entries(value)) name.startsWith("--") ? element.style.setProperty(name, to) : (element.style[name] = to);
    else if (key === "class") element.classList.add(...String(value).split(/\s+/).filter(Boolean));
    else if (key === "value" || key === "checked" || key === "disabled" || key === "hidden" || key === "indeterminate") element[key] = value;
    else element.setAttribute(key, value === true ? "" : value);
  }
  return element;
}

/** Replaces the children of an element. */
export function fill(element, ...children) {
  element.replaceChildren();
  append(element, children);
  return element;
}

export function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
}

export function icon(name, label) {
  const drawing = h("svg.icon", label ? { role: "img", "aria-label": label } : { "aria-hidden": "true" });
  drawing.append(h("use", { href: `/console/icons.svg#${name}` }));
  return drawing;
}

/** Debounces `callback`: it runs `delay` milliseconds after the last call, with its arguments; `cancel()` drops it. */
export function debounce(callback, delay = 150) {
  let timer;
  const debounced = (...args) => {
    clearTimeout(timer);
    timer = setTimeout(() => callback(...args), delay);
  };
  debounced.cancel = () => clearTimeout(timer);
  return debounced;
}

/**
 * Calls `submit` on Enter; Shift+Enter inserts a line break. With `multiline`, for fields with one item per line, only
 * Ctrl+Enter or Cmd+Enter submits. Returns the field.
 */
export function submitOnEnter(field, submit, { multiline = false } = {}) {
  field.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    if (multiline && !event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    submit(event);
  });
  return field;
}

/** Highlights ranges of a text; returns nodes. `ranges` are [from, to) in UTF-16 units, sorted. */
export function highlight(text, ranges) {
  const nodes = [];
  let position = 0;
  for (const [from, to] of ranges) {
    if (from < position) continue;
    if (from > position) nodes.push(text.slice(position, from));
    nodes.push(h("mark", text.slice(from, to)));
    position = to;
  }
  nodes.push(text.slice(position));
  return nodes;
}

/** The ranges of the terms of a query in a text, [from, to) in UTF-16 units. */
export function findQueryTerms(text, query) {
  const words = [...new Set(query.toLowerCase().match(/[\p{L}\p{N}]{3,}/gu) ?? [])].slice(0, 20);
  if (!words.length) return [];
  const escaped = words.map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  const pattern = new RegExp(`(?<![\\p{L}\\p{N}])(?:${escaped.join("|")})[\\p{L}\\p{N}]{0,3}(?![\\p{L}\\p{N}])`, "giu");
  return [...text.matchAll(pattern)].map((match) => [match.index, match.index + match[0].length]);
}

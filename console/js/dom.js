// Elements out of plain calls. Text is always a text node, so nothing that a document or a model says becomes markup.

const SVG = "http://www.w3.org/2000/svg";
const SVG_NAMES = new Set(["svg", "path", "rect", "line", "circle", "g", "text", "title", "use", "polyline"]);

/**
 * h("p.quiet", { id: "x", onclick: f, hidden: true, dataset: { page: "tools" }, style: { width: "3rem" } }, "text", child, [more])
 * The first argument is a name with classes; null, undefined and false as a child are left out.
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

/** Sets properties as `h` takes them on an element that is there. */
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

/** Puts children in place of those that are there. */
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

/** Calls `work` at most every `wait` milliseconds, the last time with the last arguments; `cancel()` drops that one. */
export function debounce(work, wait = 150) {
  let timer;
  const soon = (...args) => {
    clearTimeout(timer);
    timer = setTimeout(() => work(...args), wait);
  };
  soon.cancel = () => clearTimeout(timer);
  return soon;
}

/** The text with what was searched for marked, as nodes. `ranges` are [from, to) in UTF-16 units, sorted. */
export function marked(text, ranges) {
  const nodes = [];
  let at = 0;
  for (const [from, to] of ranges) {
    if (from < at) continue;
    if (from > at) nodes.push(text.slice(at, from));
    nodes.push(h("mark", text.slice(from, to)));
    at = to;
  }
  nodes.push(text.slice(at));
  return nodes;
}

/** Where words of a query stand in a text. */
export function findWords(text, query) {
  const words = [...new Set(query.toLowerCase().match(/[\p{L}\p{N}]{3,}/gu) ?? [])].slice(0, 20);
  if (!words.length) return [];
  const escaped = words.map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  const pattern = new RegExp(`(?<![\\p{L}\\p{N}])(?:${escaped.join("|")})[\\p{L}\\p{N}]{0,3}(?![\\p{L}\\p{N}])`, "giu");
  return [...text.matchAll(pattern)].map((found) => [found.index, found.index + found[0].length]);
}

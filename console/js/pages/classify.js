// Classify: try the classifier, list and edit the categories, evaluate the taxonomy.

import { h } from "../dom.js";
import { tabs } from "../components/widgets.js";

export const title = "Classify";

const TABS = {
  try: ["Try", () => import("./classify/try.js")],
  categories: ["Categories", () => import("./classify/categories.js")],
  edit: ["Edit", () => import("./classify/edit.js")],
  evaluate: ["Evaluate", () => import("./classify/evaluate.js")],
};

export async function show(container, [requested]) {
  const name = Object.hasOwn(TABS, requested ?? "") ? requested : "try";
  const body = h("div.stack");
  container.append(
    h("div.head", h("h1", title), h("p", "Assign texts to categories. Each category has a system prompt and a recommended model.")),
    tabs("classify", name, Object.entries(TABS).map(([key, [text]]) => [key, text])),
    body);
  const tab = await TABS[name][1]();
  return tab.show(body);
}

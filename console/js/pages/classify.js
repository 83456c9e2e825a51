// Classify: type and see what the server makes of it, read and change the categories, measure how good they are.

import { h } from "../dom.js";
import { tabs } from "../components/parts.js";

export const title = "Classify";

const PARTS = {
  try: ["Try", () => import("./classify/try.js")],
  categories: ["Categories", () => import("./classify/categories.js")],
  edit: ["Edit", () => import("./classify/edit.js")],
  evaluate: ["Evaluate", () => import("./classify/evaluate.js")],
};

export async function show(place, [wanted]) {
  const name = Object.hasOwn(PARTS, wanted ?? "") ? wanted : "try";
  const body = h("div.stack");
  place.append(
    h("div.head", h("h1", title), h("p", "Every text gets a category, and every category a prompt and a model.")),
    tabs("classify", name, Object.entries(PARTS).map(([key, [text]]) => [key, text])),
    body);
  const part = await PARTS[name][1]();
  return part.show(body);
}

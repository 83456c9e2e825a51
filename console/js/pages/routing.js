// Where prompts went and why, where one would go, and how the providers are doing.

import { h, fill } from "../dom.js";
import { tabs } from "../components/parts.js";
import { decisions } from "./routing/decisions.js";
import { explain } from "./routing/explain.js";
import { providers } from "./routing/providers.js";

export const title = "Routing";

const PARTS = { decisions, explain, providers };

export function show(place, [part = "decisions"]) {
  const chosen = PARTS[part] ? part : "decisions";
  const body = h("div.stack");
  fill(place, h("header.head", h("h1", title), h("p", "Every prompt is sorted, then goes to the model that suits it.")),
    tabs("routing", chosen, [["decisions", "Decisions"], ["explain", "Explain a prompt"], ["providers", "Providers"]]), body);
  return PARTS[chosen](body);
}

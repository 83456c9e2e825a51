// Routing: recent decisions, a preview of the route of a prompt, and the state of the providers.

import { h, fill } from "../dom.js";
import { tabs } from "../components/widgets.js";
import { decisions } from "./routing/decisions.js";
import { explain } from "./routing/explain.js";
import { providers } from "./routing/providers.js";

export const title = "Routing";

const VIEWS = { decisions, explain, providers };

export function show(container, [view = "decisions"]) {
  const name = VIEWS[view] ? view : "decisions";
  const body = h("div.stack");
  fill(container, h("header.head", h("h1", title), h("p", "Prompts are classified and sent to the model configured for their category.")),
    tabs("routing", name, [["decisions", "Decisions"], ["explain", "Explain"], ["providers", "Providers"]]), body);
  return VIEWS[name](body);
}

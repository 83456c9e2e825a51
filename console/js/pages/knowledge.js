// Knowledge: list and upload documents, search them, and ask questions.

import { h, fill } from "../dom.js";
import { empty, tabs } from "../components/widgets.js";
import { inlineCode } from "../components/inline-code.js";
import { loadCapabilities } from "./knowledge/capabilities.js";
import { showAsk } from "./knowledge/ask.js";
import { showDocument } from "./knowledge/document.js";
import { showDocuments } from "./knowledge/documents.js";
import { showSearch } from "./knowledge/search.js";

export const title = "Knowledge";

const TABS = [["documents", "Documents"], ["search", "Search"], ["ask", "Ask"]];
const VIEWS = { documents: showDocuments, search: showSearch, ask: showAsk, document: showDocument };
/** The previous view, for the back link of a document. */
let previousView;

export function show(container, [view = "documents", ...rest]) {
  const name = VIEWS[view] ? view : "documents";
  const body = h("div.knowledge");
  container.append(
    h("div.head", h("h1", title), h("p", "Add documents, search them and ask questions.")),
    tabs("knowledge", name === "document" ? "documents" : name, TABS), body);
  // A server without a knowledge base has none of its tools; one message replaces the view.
  loadCapabilities().then((capabilities) => capabilities.knowledge || fill(body, empty("No knowledge base",
    inlineCode("The knowledge base is disabled, or your token does not permit it. Set `knowledge.enabled: true` in the settings, or use another token."))), () => {});
  const cleanUp = VIEWS[name](body, rest, previousView);
  if (name !== "document") previousView = name;
  return cleanUp;
}

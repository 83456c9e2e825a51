// Knowledge: what documents there are, what is being added, and what they say.

import { h, fill } from "../dom.js";
import { empty, tabs } from "../components/parts.js";
import { abilities } from "./knowledge/abilities.js";
import { showAsk } from "./knowledge/ask.js";
import { showDocument } from "./knowledge/document.js";
import { showDocuments } from "./knowledge/documents.js";
import { showSearch } from "./knowledge/search.js";

export const title = "Knowledge";

const PARTS = [["documents", "Documents"], ["search", "Search"], ["ask", "Ask"]];
const SHOWN = { documents: showDocuments, search: showSearch, ask: showAsk, document: showDocument };
/** The part that was shown before: a document leads back to it. */
let before;

export function show(place, [part = "documents", ...rest]) {
  const name = SHOWN[part] ? part : "documents";
  const body = h("div.knowledge");
  place.append(
    h("div.head", h("h1", title), h("p", "Documents go in; passages that answer a question come out, with file and page.")),
    tabs("knowledge", name === "document" ? "documents" : name, PARTS), body);
  // A server without a knowledge base has none of its tools; that is said once instead of by every part.
  abilities().then((can) => can.knowledge || fill(body, empty("There is no knowledge base here",
    "It is switched off, or the token of this page may not use it. Set `knowledge.enabled` to true in the settings of the server, or use another token.")), () => {});
  const end = SHOWN[name](body, rest, before);
  if (name !== "document") before = name;
  return end;
}

// The categories: descriptions, system prompts, recommended models and numbers of examples.

import { h } from "../../dom.js";
import { call } from "../../mcp.js";
import { badge, empty } from "../../components/widgets.js";
import { plural } from "../../format.js";
import { loadPermissions } from "../../permissions.js";
import { fileName } from "./requests.js";
import { parseRecommendedModels } from "./recommended-models.js";

export async function show(container) {
  const listing = await call("list_categories");
  const { categories: names = [], category_descriptions: descriptions = {}, category_system_prompts: prompts = {} } = listing;
  if (!names.length) {
    container.append(empty("No categories yet", "Define categories with examples on the Edit tab."));
    return;
  }
  const details = await loadDetails().catch(() => ({}));
  const own = (record, name) => (Object.hasOwn(record, name) ? record[name] : undefined);
  container.append(
    h("div.row", h("p.quiet.flat", `${plural(names.length, "category", "categories")}${details.path ? " from " : details.isBuiltIn ? " (default taxonomy)" : ""}`, details.path ? h("code.break", { title: details.path }, fileName(details.path)) : null), h("a.push", { href: "#/classify/edit" }, "Edit")),
    h("ol.categories", names.map((name, index) => {
      const prompt = own(prompts, name);
      const counts = details.counts?.get(name);
      const model = own(listing.category_models ?? {}, name) ?? details.models?.get(name);
      return h("li.card",
        h("header", h("span.quiet.small", { title: "Class index" }, index), h("h2.break", name), details.counts && !counts ? badge("retired", "warn") : null, model ? h("code.small.break.push", { title: "Recommended model" }, model) : null),
        h("p.break", own(descriptions, name) ?? ""),
        counts ? h("p.quiet.small", [plural(counts.examples, "example"), counts.patterns ? plural(counts.patterns, "pattern") : null, counts.words ? plural(counts.words, "word") : null].filter(Boolean).join(" · ")) : null,
        prompt ? h("details", h("summary", "System prompt"), h("pre", { tabindex: "0" }, prompt)) : null);
    })));
}

/** Details that only the source of the taxonomy has. Missing if this client may not read it. */
async function loadDetails() {
  const { has, denialReason } = await loadPermissions();
  if (!has("get_taxonomy")) return {};
  const { text, path } = await call("get_taxonomy");
  if (!text) return { path };
  const isBuiltIn = path === undefined || path === null;
  const models = parseRecommendedModels(text);
  const checked = denialReason("check_taxonomy", "") ? undefined : await call("check_taxonomy", { text }).catch(() => undefined);
  return { path, isBuiltIn, models, counts: checked?.valid ? new Map(checked.categories.map((one) => [one.name, one])) : undefined };
}

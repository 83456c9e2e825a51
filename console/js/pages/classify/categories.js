// The categories: what they are for, what a model is told, and how much they were taught.

import { h } from "../../dom.js";
import { call } from "../../mcp.js";
import { badge, empty } from "../../components/parts.js";
import { plural } from "../../format.js";
import { allowed } from "../../allowed.js";
import { fileName } from "./asking.js";
import { modelsOf } from "./models.js";

export async function show(place) {
  const listing = await call("list_categories");
  const { categories: names = [], category_descriptions: descriptions = {}, category_system_prompts: prompts = {} } = listing;
  if (!names.length) {
    place.append(empty("No categories yet", "A taxonomy names them, with examples of each. Write one on the tab Edit."));
    return;
  }
  const more = await details().catch(() => ({}));
  const own = (record, name) => (Object.hasOwn(record, name) ? record[name] : undefined);
  place.append(
    h("div.row", h("p.quiet.flat", `${plural(names.length, "category", "categories")}${more.path ? " from " : more.inside ? ", which came with corbie" : ""}`, more.path ? h("code.break", { title: more.path }, fileName(more.path)) : null), h("a.push", { href: "#/classify/edit" }, "Edit them")),
    h("ol.categories", names.map((name, at) => {
      const prompt = own(prompts, name);
      const counted = more.counts?.get(name);
      const model = own(listing.category_models ?? {}, name) ?? more.models?.get(name);
      return h("li.card",
        h("header", h("span.quiet.small", { title: "Its number, as routers know it" }, at), h("h2.break", name), more.counts && !counted ? badge("retired", "warn") : null, model ? h("code.small.break.push", { title: "Recommended model" }, model) : null),
        h("p.break", own(descriptions, name) ?? ""),
        counted ? h("p.quiet.small", [plural(counted.examples, "example"), counted.patterns ? plural(counted.patterns, "pattern") : null, counted.words ? plural(counted.words, "word") : null].filter(Boolean).join(" · ")) : null,
        prompt ? h("details", h("summary", "System prompt"), h("pre", { tabindex: "0" }, prompt)) : null);
    })));
}

/** What only the text of the taxonomy tells. Not everyone may read it, so all of this may be left out. */
async function details() {
  const { has, lacks } = await allowed();
  if (!has("get_taxonomy")) return {};
  const { text, path } = await call("get_taxonomy");
  if (!text) return { path };
  const inside = path === null;
  const models = modelsOf(text);
  const checked = lacks("check_taxonomy", "") ? undefined : await call("check_taxonomy", { text }).catch(() => undefined);
  return { path, inside, models, counts: checked?.valid ? new Map(checked.categories.map((one) => [one.name, one])) : undefined };
}

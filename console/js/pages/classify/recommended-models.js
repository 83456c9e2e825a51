// Extracts the recommended models from the source of a taxonomy, which the list of categories does not contain. Parses only
// the usual form of YAML line by line, since a full YAML parser would be larger than this page.

const unquote = (text) => text.replace(/\s+#.*$/, "").trim().replace(/^(["'])(.*)\1$/, "$2");

/** A map from category names to models. */
export function parseRecommendedModels(text) {
  const items = [];
  let defaultModel;
  let inCategories = false;
  let indent;
  for (const line of text.split("\n")) {
    const [, space, dash, key, value] = /^( *)(- +)?(\w+):(.*)$/.exec(line) ?? [];
    if (key === undefined) continue;
    const depth = space.length + (dash?.length ?? 0);
    if (depth === 0) {
      inCategories = key === "categories";
      if (key === "model") defaultModel = unquote(value);
    } else if (inCategories) {
      if (dash) indent ??= depth;
      if (depth !== indent) continue;
      if (dash) items.push({});
      if (key === "name" || key === "model") items.at(-1)[key] = unquote(value);
    }
  }
  return new Map(items.filter(({ name, model }) => name && (model ?? defaultModel)).map(({ name, model }) => [name, model ?? defaultModel]));
}

// The models that a taxonomy recommends, read from its text. The list of categories does not tell them, and a whole
// reader of YAML would be larger than this page: lines as people write them are understood, the rest is left out.

const bare = (text) => text.replace(/\s+#.*$/, "").trim().replace(/^(["'])(.*)\1$/, "$2");

/** A map from the name of a category to its model. */
export function modelsOf(text) {
  const items = [];
  let general;
  let inside = false;
  let indent;
  for (const line of text.split("\n")) {
    const [, space, dash, key, value] = /^( *)(- +)?(\w+):(.*)$/.exec(line) ?? [];
    if (key === undefined) continue;
    const depth = space.length + (dash?.length ?? 0);
    if (depth === 0) {
      inside = key === "categories";
      if (key === "model") general = bare(value);
    } else if (inside) {
      if (dash) indent ??= depth;
      if (depth !== indent) continue;
      if (dash) items.push({});
      if (key === "name" || key === "model") items.at(-1)[key] = bare(value);
    }
  }
  return new Map(items.filter(({ name, model }) => name && (model ?? general)).map(({ name, model }) => [name, model ?? general]));
}

// What the reader has written into the fields of a page, kept while that page is drawn anew.

/** What is no text of the reader, or is not to be kept, is left out. */
const FIELDS = "textarea, select, input:not([type=file], [type=password])";
/** What had no field on the page drawn anew: one with less trust has fewer of them, and the next may have it again. */
const unplaced = new Map();

/** Remembers what is written on a page; gives a function that puts it back once the page is drawn anew. */
export function gather(page) {
  for (const [name, field] of fields(page)) if (!field.readOnly) unplaced.set(name, value(field));
  const [active] = [...fields(page)].find(([, field]) => field === document.activeElement) ?? [];
  return () => {
    const found = fields(page);
    // Boxes first: one may decide which fields there are, and fills them.
    const order = [...found].sort(([, a], [, b]) => Number(isBox(b)) - Number(isBox(a)));
    for (const [name, field] of order) {
      if (!unplaced.has(name) || field.readOnly) continue;
      put(field, unplaced.get(name));
      unplaced.delete(name);
    }
    found.get(active)?.focus({ preventScroll: true });
  };
}

/** The fields of a page by what they are called and where they are; of those called alike, each by its number. */
function fields(page) {
  const found = new Map();
  for (const field of page.querySelectorAll(FIELDS)) {
    const name = [location.hash, field.localName, field.id, field.name, field.ariaLabel, field.labels?.[0]?.textContent].join("|");
    let number = 0;
    while (found.has(`${name}|${number}`)) number++;
    found.set(`${name}|${number}`, field);
  }
  return found;
}

const isBox = (field) => field.type === "checkbox";
const value = (field) => (isBox(field) ? field.checked : field.value);

/** As if the reader had written it, so that the page takes it over. */
function put(field, written) {
  if (value(field) === written) return;
  if (isBox(field)) field.checked = written;
  else field.value = written;
  for (const name of ["input", "change"]) field.dispatchEvent(new Event(name, { bubbles: true }));
}

// Saves the values of form fields while a page is redrawn.

/** Files and passwords are not saved. */
const FIELDS = "textarea, select, input:not([type=file], [type=password])";
/** Values without a field on the redrawn page: a less trusted client has fewer fields, and the next one may have them again. */
const unrestored = new Map();

/** Saves the field values of a page; returns a function that restores them on the redrawn page. */
export function saveFormState(page) {
  for (const [name, field] of fields(page)) if (!field.readOnly) unrestored.set(name, value(field));
  const [active] = [...fields(page)].find(([, field]) => field === document.activeElement) ?? [];
  return () => {
    const current = fields(page);
    // Checkboxes first: they can add and fill other fields.
    const order = [...current].sort(([, a], [, b]) => Number(isCheckbox(b)) - Number(isCheckbox(a)));
    for (const [name, field] of order) {
      if (!unrestored.has(name) || field.readOnly) continue;
      setValue(field, unrestored.get(name));
      unrestored.delete(name);
    }
    current.get(active)?.focus({ preventScroll: true });
  };
}

/** The fields of a page by location, name and label; duplicates are numbered. */
function fields(page) {
  const byName = new Map();
  for (const field of page.querySelectorAll(FIELDS)) {
    const name = [location.hash, field.localName, field.id, field.name, field.ariaLabel, field.labels?.[0]?.textContent].join("|");
    let number = 0;
    while (byName.has(`${name}|${number}`)) number++;
    byName.set(`${name}|${number}`, field);
  }
  return byName;
}

const isCheckbox = (field) => field.type === "checkbox";
const value = (field) => (isCheckbox(field) ? field.checked : field.value);

/** Sets a value and dispatches the events of user input, so that the page handles it. */
function setValue(field, saved) {
  if (value(field) === saved) return;
  if (isCheckbox(field)) field.checked = saved;
  else field.value = saved;
  for (const name of ["input", "change"]) field.dispatchEvent(new Event(name, { bubbles: true }));
}

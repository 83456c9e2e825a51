// Form fields from a JSON Schema: scalar properties and lists of strings get a field, others a JSON text area.

import { h } from "../../dom.js";
import { inlineCode } from "../../components/inline-code.js";

/** Returns { elements, value(), read() }; `read` throws an Error about the first invalid field. */
export function fields(schema) {
  const required = new Set(schema.required ?? []);
  const all = Object.entries(schema.properties ?? {}).map(([name, property]) => field(name, property, required.has(name)));
  const gather = (strict) => {
    const value = {};
    for (const { name, read } of all) {
      const fieldValue = read(strict);
      if (fieldValue !== undefined) value[name] = fieldValue;
    }
    return value;
  };
  return { elements: all.map(({ element }) => element), value: () => gather(false), read: () => gather(true) };
}

function field(name, property, required) {
  const kind = fieldKind(property);
  const input = KINDS[kind].input(property);
  const id = `field-${name}`;
  input.id = id;
  input.name = name;
  if (required) input.setAttribute("aria-required", "true");
  const defaultHint = property.default === undefined || kind === "boolean" ? "" : ` Default: ${JSON.stringify(property.default)}.`;
  const hint = [property.description, range(property)].filter(Boolean).join("; ") + (defaultHint && `.${defaultHint}`);
  const label = kind === "boolean" ? h("label.inline", { for: id }, input, h("span", h("code", name), required ? " (required) " : " ", h("span.hint", inlineCode(hint)))) : h("label", { for: id }, h("span", h("code", name), required ? " (required)" : ""), hint ? h("span.hint", inlineCode(hint)) : null, input);
  const read = (strict) => {
    input.removeAttribute("aria-invalid");
    try {
      const value = KINDS[kind].read(input, property);
      if (value === undefined && required) throw new Error(`\`${name}\` is required.`);
      return value;
    } catch (error) {
      if (!strict) return undefined;
      input.setAttribute("aria-invalid", "true");
      input.focus();
      throw new Error(error.message.startsWith("`") ? error.message : `\`${name}\`: ${error.message}`);
    }
  };
  return { name, element: label, read };
}

const range = ({ minimum, maximum }) => (minimum !== undefined && maximum !== undefined && maximum < 1e9 ? `from ${minimum} to ${maximum}` : "");

function fieldKind(property) {
  const type = Array.isArray(property.type) ? property.type.find((type) => type !== "null") : property.type;
  if (property.enum) return "choice";
  if (type === "array" && property.items?.type === "string") return "strings";
  if (KINDS[type]) return type;
  return "any";
}

/** Whether a string property gets a multi-line field. */
const isLong = ({ maxLength, description = "" }) => (maxLength === undefined || maxLength > 500) && /text|prompt|yaml|question/i.test(description);

const KINDS = {
  string: {
    input: (property) => (isLong(property) ? h("textarea", { rows: "3" }) : h("input", { type: "text", autocomplete: "off", maxlength: property.maxLength })),
    read: (input) => (input.value === "" ? undefined : input.value),
  },
  choice: {
    input: (property) => h("select", h("option", { value: "" }, "–"), property.enum.map((value) => h("option", { value }, value))),
    read: (input) => (input.value === "" ? undefined : input.value),
  },
  boolean: {
    input: (property) => h("input", { type: "checkbox", checked: property.default === true }),
    read: (input, property) => (input.checked === (property.default ?? false) ? undefined : input.checked),
  },
  integer: { input: (property) => numberInput(property, "1"), read: (input) => readNumber(input, true) },
  number: { input: (property) => numberInput(property, "any"), read: (input) => readNumber(input, false) },
  strings: {
    input: () => h("textarea", { rows: "3", placeholder: "One per line; Ctrl+Enter submits", dataset: { multiline: "" } }),
    read: (input) => {
      const lines = input.value.split("\n").filter((line) => line.trim());
      return lines.length ? lines : undefined;
    },
  },
  any: {
    input: () => h("textarea.code", { rows: "3", placeholder: "JSON; Ctrl+Enter submits", spellcheck: "false", dataset: { multiline: "" } }),
    read: (input) => {
      if (!input.value.trim()) return undefined;
      try {
        return JSON.parse(input.value);
      } catch (error) {
        throw new Error(`invalid JSON: ${error.message}`);
      }
    },
  },
};

const numberInput = ({ minimum, maximum }, step) => h("input", { type: "number", min: minimum, max: maximum, step });

function readNumber(input, isInteger) {
  if (input.validity.badInput) throw new Error("must be a number.");
  if (input.value === "") return undefined;
  const value = Number(input.value);
  if (isInteger && !Number.isInteger(value)) throw new Error("must be an integer.");
  return value;
}

//! Expands environment variables in configuration files: `${VAR}`, `${VAR:-default}`; `$${` is a literal `${`.

use std::collections::BTreeMap;

use serde_json::Value;
use zeroize::Zeroizing;

use super::coerce::coerce;
use super::diagnostic::{Diagnostic, KeyPath};
use super::read::MAX_FILE_BYTES;
use super::schema;
use super::spanned_value::{SpannedValue, ValueData};

/// Expands every string below `node`, then coerces each expanded string to the type of its key.
///
/// The expanded size of a file is limited to `MAX_FILE_BYTES`, however often it contains a long variable.
pub(super) fn expand(node: &mut SpannedValue, variables: &BTreeMap<String, String>, schema: &Value) -> Vec<Diagnostic> {
    let mut expansion = Expander { variables, budget: MAX_FILE_BYTES, problems: Vec::new() };
    expansion.visit(node, &KeyPath::default(), Some(schema));
    expansion.problems
}

struct Expander<'a> {
    variables: &'a BTreeMap<String, String>,
    budget: usize,
    problems: Vec<Diagnostic>,
}

impl Expander<'_> {
    fn visit(&mut self, node: &mut SpannedValue, path: &KeyPath, schema: Option<&Value>) {
        match &mut node.data {
            ValueData::Map(entries) => {
                for (key, entry) in entries {
                    self.visit(&mut entry.node, &path.key(key), schema.and_then(|schema| schema::member(schema, key)));
                }
            }
            ValueData::List(items) => {
                for (index, item) in items.iter_mut().enumerate() {
                    self.visit(item, &path.index(index), schema.and_then(|schema| schema.get("items")));
                }
            }
            ValueData::String(text) if text.contains("${") => {
                let result = substitute(text, self.variables, self.budget);
                match result {
                    Ok(ExpandedText { text, grown, replaced }) => {
                        self.budget -= grown.min(self.budget);
                        let origin = node.origin.clone();
                        *node =
                            if replaced { coerce(&text, schema, origin) } else { SpannedValue::string(&text, origin) };
                    }
                    Err(messages) => {
                        let at = |message| Diagnostic::at(node.origin.clone(), path.clone(), message);
                        self.problems.extend(messages.into_iter().map(at));
                    }
                }
            }
            _ => {}
        }
    }
}

struct ExpandedText {
    /// Zeroed on drop, because variables may contain keys.
    text: Zeroizing<String>,
    /// Number of bytes inserted from variables.
    grown: usize,
    /// False if there were only escapes.
    replaced: bool,
}

/// Expands once: the value of a variable is not expanded again.
fn substitute(text: &str, variables: &BTreeMap<String, String>, budget: usize) -> Result<ExpandedText, Vec<String>> {
    let mut expanded = ExpandedText { text: Zeroizing::default(), grown: 0, replaced: false };
    let mut problems = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let (before, reference) = (&rest[..start], &rest[start + 2..]);
        if let Some(before) = before.strip_suffix('$') {
            expanded.text.push_str(before);
            expanded.text.push_str("${");
            rest = reference;
            continue;
        }
        expanded.text.push_str(before);
        let Some((inside, after)) = reference.split_once('}') else {
            problems.push("has `${` without `}`; use `$${` for a literal `${`".into());
            rest = "";
            break;
        };
        rest = after;
        match resolve(inside, variables) {
            Ok(value) if expanded.grown + value.len() > budget => {
                problems.push("is too large after variable expansion".into());
                break;
            }
            Ok(value) => {
                expanded.text.push_str(value);
                expanded.grown += value.len();
                expanded.replaced = true;
            }
            Err(problem) => problems.push(problem),
        }
    }
    expanded.text.push_str(rest);
    if problems.is_empty() { Ok(expanded) } else { Err(problems) }
}

/// As in a shell, `:-` also applies to an empty variable.
fn resolve<'a>(inside: &'a str, variables: &'a BTreeMap<String, String>) -> Result<&'a str, String> {
    let (name, default) = match inside.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inside, None),
    };
    let mut letters = name.chars();
    let begins = letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_');
    if !begins || !letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_') {
        return Err("has `${` without a variable name; use `$${` for a literal `${`".into());
    }
    if default.is_some_and(|default| default.contains("${")) {
        return Err(format!("has `${{` in the default of `${{{name}}}`; a default must be plain text"));
    }
    match (variables.get(name), default) {
        (Some(value), None) => Ok(value),
        (Some(value), Some(_)) if !value.is_empty() => Ok(value),
        (_, Some(default)) => Ok(default),
        (None, None) => Err(format!("references the environment variable `{name}`, which is not set")),
    }
}

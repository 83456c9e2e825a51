//! Validates the merged configuration against the schema and reports all errors with their locations.

use jsonschema::error::ValidationErrorKind;
use jsonschema::paths::Location;
use serde_json::Value;

use super::diagnostic::{Diagnostic, Diagnostics, KeyPath, Segment};
use super::schema::{self, FORMATS};
use super::spanned_value::{SpannedValue, ValueData, wipe_strings};
use super::{renamed, schema_text};
use corbie_util::did_you_mean;

/// Sections that may be copied from the configuration of other programs: an unknown key is a warning, not an error.
const LENIENT_SECTIONS: [&str; 2] = ["classification", "classifier"];

/// Validates `tree`, and removes the keys that only cause warnings.
pub(super) fn validate(tree: &mut SpannedValue, schema: &Value, findings: &mut Diagnostics) {
    let options = FORMATS
        .iter()
        .fold(jsonschema::options(), |options, format| options.with_format(format.name, format.is_valid))
        .should_validate_formats(true);
    let validator = options.build(schema).expect("the schema is generated, and a test compiles it");

    let mut instance = tree.to_json();
    let mut ignored = Vec::new();
    for error in validator.iter_errors(&instance) {
        let path = key_path(tree, error.instance_path());
        match error.kind() {
            ValidationErrorKind::AdditionalProperties { unexpected } => {
                for key in unexpected {
                    let problem = unknown_key(tree, schema, &path, key);
                    if is_lenient(&path) {
                        ignored.push(path.key(key));
                        findings.warnings.push(problem);
                    } else {
                        findings.errors.push(problem);
                    }
                }
            }
            ValidationErrorKind::Required { property } => {
                let key = property.as_str().unwrap_or_default();
                let message = format!("requires the key `{key}`");
                findings.errors.push(Diagnostic::at(tree.key_origin(&path), path, message));
            }
            _ => findings.errors.push(type_mismatch(tree, schema, path)),
        }
    }
    wipe_strings(&mut instance);
    for path in ignored {
        tree.remove(&path.0);
    }
}

fn is_lenient(path: &KeyPath) -> bool {
    matches!(path.0.first(), Some(Segment::Key(section)) if LENIENT_SECTIONS.contains(&section.as_str()))
}

fn unknown_key(tree: &SpannedValue, schema: &Value, parent: &KeyPath, key: &str) -> Diagnostic {
    let path = parent.key(key);
    if let Some(new) = renamed::key(&path) {
        let message = format!("was renamed to `{}`", parent.key(new));
        return Diagnostic::at(tree.key_origin(&path), path, message);
    }
    let siblings = schema::schema_at(schema, &parent.0).and_then(|schema| schema.get("properties")?.as_object());
    let near = did_you_mean::closest(key, siblings.into_iter().flatten().map(|(name, _)| name.as_str()));
    let suggestion = near.map(String::from).or_else(|| did_you_mean::path_of_key(key, schema));
    Diagnostic::at(tree.key_origin(&path), path, "unknown setting").with_suggestion(suggestion)
}

fn type_mismatch(tree: &SpannedValue, schema: &Value, path: KeyPath) -> Diagnostic {
    let Some(node) = tree.get(&path.0) else {
        return Diagnostic::at(tree.key_origin(&path), path, "has an invalid value");
    };
    let schema = schema::schema_at(schema, &path.0).unwrap_or(&Value::Null);
    if let ValueData::String(text) = &node.data
        && let Some(new) = renamed::value(&path, text)
    {
        let message = format!(
            "{}; `{}` was renamed to `{new}`",
            schema_text::mismatch_message(schema, &node.data),
            text.as_str()
        );
        return Diagnostic::at(node.origin.clone(), path, message);
    }
    let near = match &node.data {
        ValueData::String(text) => did_you_mean::closest(text, schema::choices(schema).into_iter()),
        _ => None,
    };
    Diagnostic::at(node.origin.clone(), path, schema_text::mismatch_message(schema, &node.data))
        .with_suggestion(near.map(String::from))
}

/// The validator does not distinguish a key `0` from an index; the tree does.
fn key_path(tree: &SpannedValue, location: &Location) -> KeyPath {
    // The iterator of the library drops empty keys.
    let segments = location.as_str().split('/').skip(1);
    segments.fold(KeyPath::default(), |path, segment| {
        let segment = segment.replace("~1", "/").replace("~0", "~");
        match (tree.get(&path.0).map(|node| &node.data), segment.parse()) {
            (Some(ValueData::List(_)), Ok(index)) => path.index(index),
            _ => path.key(&segment),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::super::diagnostic::Origin;
    use super::*;

    #[test]
    fn f12_an_unknown_key_of_a_lenient_section_is_a_warning_and_is_left_out() {
        let section = serde_json::json!({
            "type": "object", "properties": {"threshold": {"type": "number"}}, "additionalProperties": false
        });
        let schema = serde_json::json!({
            "type": "object", "additionalProperties": false,
            "properties": {"classification": section, "strict": section}
        });
        let written = serde_json::json!({
            "classification": {"treshold": 1, "threshold": 2}, "strict": {"treshold": 1}
        });
        let mut tree = SpannedValue::from_json(written, Origin::command_line());
        let mut findings = Diagnostics::default();
        validate(&mut tree, &schema, &mut findings);
        let texts = |problems: &[Diagnostic]| problems.iter().map(Diagnostic::to_string).collect::<Vec<_>>();
        assert_eq!(
            texts(&findings.warnings),
            ["command line: classification.treshold: unknown setting; did you mean `threshold`?"]
        );
        assert_eq!(
            texts(&findings.errors),
            ["command line: strict.treshold: unknown setting; did you mean `threshold`?"]
        );
        assert_eq!(tree.to_json()["classification"], serde_json::json!({"threshold": 2}));
    }
}

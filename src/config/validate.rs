//! Validates the merged configuration against the schema and reports all errors with their locations.

use jsonschema::error::ValidationErrorKind;
use jsonschema::paths::Location;
use serde_json::Value;

use super::problem::{Findings, KeyPath, Problem, Segment};
use super::schema::{self, FORMATS};
use super::tree::{Data, Node, wipe};
use super::{renamed, suggest, wording};

/// Sections that may be copied from the configuration of other programs: an unknown key is a warning, not an error.
const LENIENT: [&str; 2] = ["classification", "classifier"];

/// Validates `tree`, and removes the keys that only cause warnings.
pub(super) fn validate(tree: &mut Node, schema: &Value, findings: &mut Findings) {
    let options = FORMATS
        .iter()
        .fold(jsonschema::options(), |options, format| options.with_format(format.name, format.fits))
        .should_validate_formats(true);
    let validator = options.build(schema).expect("the schema is generated, and a test compiles it");

    let mut instance = tree.to_json();
    let mut ignored = Vec::new();
    for error in validator.iter_errors(&instance) {
        let path = key_path(tree, error.instance_path());
        match error.kind() {
            ValidationErrorKind::AdditionalProperties { unexpected } => {
                for key in unexpected {
                    let problem = unknown(tree, schema, &path, key);
                    if is_lenient(&path) {
                        ignored.push(path.key(key));
                        findings.warnings.push(problem);
                    } else {
                        findings.mistakes.push(problem);
                    }
                }
            }
            ValidationErrorKind::Required { property } => {
                let key = property.as_str().unwrap_or_default();
                let message = format!("needs the key `{key}`");
                findings.mistakes.push(Problem::at(tree.key_origin(&path), path, message));
            }
            _ => findings.mistakes.push(unfit(tree, schema, path)),
        }
    }
    wipe(&mut instance);
    for path in ignored {
        tree.remove(&path.0);
    }
}

fn is_lenient(path: &KeyPath) -> bool {
    matches!(path.0.first(), Some(Segment::Key(section)) if LENIENT.contains(&section.as_str()))
}

fn unknown(tree: &Node, schema: &Value, parent: &KeyPath, key: &str) -> Problem {
    let path = parent.key(key);
    if let Some(new) = renamed::key(&path) {
        let message = format!("was renamed to `{}`", parent.key(new));
        return Problem::at(tree.key_origin(&path), path, message);
    }
    let siblings = schema::at(schema, &parent.0).and_then(|schema| schema.get("properties")?.as_object());
    let near = suggest::near(key, siblings.into_iter().flatten().map(|(name, _)| name.as_str()));
    let suggestion = near.map(String::from).or_else(|| suggest::elsewhere(key, schema));
    Problem::at(tree.key_origin(&path), path, "is not a setting").suggest(suggestion)
}

fn unfit(tree: &Node, schema: &Value, path: KeyPath) -> Problem {
    let Some(node) = tree.get(&path.0) else {
        return Problem::at(tree.key_origin(&path), path, "has a wrong value");
    };
    let schema = schema::at(schema, &path.0).unwrap_or(&Value::Null);
    if let Data::String(text) = &node.data
        && let Some(new) = renamed::value(&path, text)
    {
        let message = format!("{}; `{}` was renamed to `{new}`", wording::must_be(schema, &node.data), text.as_str());
        return Problem::at(node.origin.clone(), path, message);
    }
    let near = match &node.data {
        Data::String(text) => suggest::near(text, schema::choices(schema).into_iter()),
        _ => None,
    };
    Problem::at(node.origin.clone(), path, wording::must_be(schema, &node.data)).suggest(near.map(String::from))
}

/// The validator does not distinguish a key `0` from an index; the tree does.
fn key_path(tree: &Node, location: &Location) -> KeyPath {
    // The iterator of the library drops empty keys.
    let segments = location.as_str().split('/').skip(1);
    segments.fold(KeyPath::default(), |path, segment| {
        let segment = segment.replace("~1", "/").replace("~0", "~");
        match (tree.get(&path.0).map(|node| &node.data), segment.parse()) {
            (Some(Data::List(_)), Ok(index)) => path.index(index),
            _ => path.key(&segment),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::super::problem::Origin;
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
        let mut tree = Node::from_json(written, Origin::command_line());
        let mut findings = Findings::default();
        validate(&mut tree, &schema, &mut findings);
        let texts = |problems: &[Problem]| problems.iter().map(Problem::to_string).collect::<Vec<_>>();
        assert_eq!(
            texts(&findings.warnings),
            ["command line: classification.treshold: is not a setting; did you mean `threshold`?"]
        );
        assert_eq!(
            texts(&findings.mistakes),
            ["command line: strict.treshold: is not a setting; did you mean `threshold`?"]
        );
        assert_eq!(tree.to_json()["classification"], serde_json::json!({"threshold": 2}));
    }
}

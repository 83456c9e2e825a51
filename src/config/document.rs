//! Loads other files in the formats of the configuration, with the same diagnostics: every error has a line and a
//! column.

use std::path::Path;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::problem::{ConfigError, Findings, KeyPath, Origin, Problem};
use super::read::{self, Kind};
use super::tree::Node;
use super::validate::validate;

/// The source spans of a file, for errors that are detected after parsing.
#[derive(Debug)]
pub(crate) struct Written(Node);

/// Loads a file and validates it against a schema.
pub(crate) fn read<T: DeserializeOwned>(path: &Path, kind: Kind, schema: &Value) -> Result<(T, Written), ConfigError> {
    checked(read::file(path, kind).map_err(|problems| ConfigError { problems })?, schema)
}

/// Parses the future content of a file.
pub(crate) fn read_for<T: DeserializeOwned>(
    text: &str,
    file: &Path,
    kind: Kind,
    schema: &Value,
) -> Result<(T, Written), ConfigError> {
    checked(read::text(text, file, kind).map_err(|problems| ConfigError { problems })?, schema)
}

/// Parses embedded YAML.
pub(crate) fn read_text<T: DeserializeOwned>(
    text: &str,
    name: &Path,
    schema: &Value,
) -> Result<(T, Written), ConfigError> {
    checked(read::yaml(text, name).map_err(|problems| ConfigError { problems })?, schema)
}

fn checked<T: DeserializeOwned>(mut tree: Node, schema: &Value) -> Result<(T, Written), ConfigError> {
    tree.drop_nulls();
    let mut findings = Findings::default();
    validate(&mut tree, schema, &mut findings);
    if !findings.mistakes.is_empty() {
        return Err(ConfigError::sorted(findings.mistakes));
    }
    match T::deserialize(tree.to_json()) {
        Ok(value) => Ok((value, Written(tree))),
        // The schema is generated from the type, so this cannot fail.
        Err(error) => Err(Problem::at(tree.origin, KeyPath::default(), format!("cannot be read: {error}")).into()),
    }
}

impl Written {
    /// For values that do not come from a file.
    pub(crate) fn nowhere() -> Written {
        Written(Node::empty(Origin::command_line()))
    }

    /// An error about the value at a path.
    pub(crate) fn mistake(&self, path: KeyPath, message: impl Into<String>) -> Problem {
        let origin = match self.0.get(&path.0) {
            Some(node) => node.origin.clone(),
            None => self.0.key_origin(&path),
        };
        Problem::at(origin, path, message)
    }
}

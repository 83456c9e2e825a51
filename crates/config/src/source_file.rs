//! Loads other files in the formats of the configuration, with the same diagnostics: every error has a line and a
//! column.

use std::path::Path;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::diagnostic::{ConfigError, Diagnostic, Diagnostics, KeyPath, Origin};
use super::read::{self, FileKind};
use super::spanned_value::SpannedValue;
use super::validate::validate;

/// The source spans of a file, for errors that are detected after parsing.
#[derive(Debug)]
pub struct SourceFile(SpannedValue);

/// Loads a file and validates it against a schema.
pub fn read<T: DeserializeOwned>(path: &Path, kind: FileKind, schema: &Value) -> Result<(T, SourceFile), ConfigError> {
    check_and_deserialize(read::file(path, kind).map_err(|problems| ConfigError { diagnostics: problems })?, schema)
}

/// Parses the future content of a file.
pub fn parse_as_file<T: DeserializeOwned>(
    text: &str,
    file: &Path,
    kind: FileKind,
    schema: &Value,
) -> Result<(T, SourceFile), ConfigError> {
    check_and_deserialize(
        read::text(text, file, kind).map_err(|problems| ConfigError { diagnostics: problems })?,
        schema,
    )
}

/// Parses embedded YAML.
pub fn parse_yaml<T: DeserializeOwned>(
    text: &str,
    name: &Path,
    schema: &Value,
) -> Result<(T, SourceFile), ConfigError> {
    check_and_deserialize(read::yaml(text, name).map_err(|problems| ConfigError { diagnostics: problems })?, schema)
}

fn check_and_deserialize<T: DeserializeOwned>(
    mut tree: SpannedValue,
    schema: &Value,
) -> Result<(T, SourceFile), ConfigError> {
    tree.drop_nulls();
    let mut findings = Diagnostics::default();
    validate(&mut tree, schema, &mut findings);
    if !findings.errors.is_empty() {
        return Err(ConfigError::sorted(findings.errors));
    }
    match T::deserialize(tree.to_json()) {
        Ok(value) => Ok((value, SourceFile(tree))),
        // The schema is generated from the type, so this cannot fail.
        Err(error) => Err(Diagnostic::at(tree.origin, KeyPath::default(), format!("cannot be read: {error}")).into()),
    }
}

impl SourceFile {
    /// For values that do not come from a file.
    pub fn detached() -> SourceFile {
        SourceFile(SpannedValue::empty(Origin::command_line()))
    }

    /// An error about the value at a path.
    pub fn diagnostic(&self, path: KeyPath, message: impl Into<String>) -> Diagnostic {
        let origin = match self.0.get(&path.0) {
            Some(node) => node.origin.clone(),
            None => self.0.key_origin(&path),
        };
        Diagnostic::at(origin, path, message)
    }
}

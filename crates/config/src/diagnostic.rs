//! Diagnostics of a configuration, with source spans.
//!
//! A diagnostic names keys and the expected type but never contains a value. Otherwise a key pasted into the wrong line
//! would appear in a log.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// An error or a warning, displayed as
/// ``corbie.yaml:3:5: server.nmae: is not a setting; did you mean `name`?``.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// `None` if there is no location, for example for a missing file.
    pub origin: Option<Origin>,
    pub path: KeyPath,
    pub message: String,
    pub suggestion: Option<String>,
}

/// Location of a key or a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    pub source: ValueSource,
    /// Only files have positions.
    pub position: Option<Position>,
}

/// Source of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ValueSource {
    File(Arc<Path>),
    Variable(Arc<str>),
    CommandLine,
}

/// Position in a file. Both numbers start at 1, and columns count characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    pub line: usize,
    pub column: usize,
}

/// Path from the root to a key, displayed as `server.listen[1]`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyPath(pub Vec<Segment>);

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Segment {
    Key(String),
    Index(usize),
}

/// Why a configuration is invalid: all errors, one line each.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", lines(.diagnostics))]
pub struct ConfigError {
    /// Never empty.
    pub diagnostics: Vec<Diagnostic>,
}

/// Errors and warnings of all sources.
#[derive(Debug, Default)]
pub(super) struct Diagnostics {
    pub(super) errors: Vec<Diagnostic>,
    pub(super) warnings: Vec<Diagnostic>,
}

// === impl Problem ===

impl Diagnostic {
    /// A diagnostic for a whole source.
    pub fn with_source(source: ValueSource, message: impl Into<String>) -> Self {
        let origin = Origin { source, position: None };
        Self::at(origin, KeyPath::default(), message)
    }

    pub fn at(origin: Origin, path: KeyPath, message: impl Into<String>) -> Self {
        Self { origin: Some(origin), path, message: message.into(), suggestion: None }
    }

    pub fn with_suggestion(mut self, suggestion: Option<String>) -> Self {
        self.suggestion = suggestion;
        self
    }

    /// Whether the diagnostic refers to this file.
    pub fn is_about(&self, file: &Path) -> bool {
        matches!(&self.origin, Some(Origin { source: ValueSource::File(path), .. }) if **path == *file)
    }

    /// Sort key: by source, then by position.
    pub(super) fn reading_order(&self) -> (String, Option<Position>) {
        match &self.origin {
            Some(origin) => (origin.source.to_string(), origin.position),
            None => (String::new(), None),
        }
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(origin) = &self.origin {
            write!(out, "{origin}: ")?;
        }
        if !self.path.0.is_empty() {
            write!(out, "{}: ", self.path)?;
        }
        out.write_str(&self.message)?;
        match &self.suggestion {
            Some(suggestion) => write!(out, "; did you mean `{suggestion}`?"),
            None => Ok(()),
        }
    }
}

// === impl Origin ===

impl Origin {
    pub(super) fn command_line() -> Self {
        Self { source: ValueSource::CommandLine, position: None }
    }

    pub(super) fn variable(name: &str) -> Self {
        Self { source: ValueSource::Variable(name.into()), position: None }
    }

    pub(super) fn file(path: &Arc<Path>, position: Position) -> Self {
        Self { source: ValueSource::File(path.clone()), position: Some(position) }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.position {
            Some(Position { line, column }) => write!(out, "{}:{line}:{column}", self.source),
            None => self.source.fmt(out),
        }
    }
}

impl fmt::Display for ValueSource {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(out),
            Self::Variable(name) => write!(out, "environment variable {name}"),
            Self::CommandLine => out.write_str("command line"),
        }
    }
}

// === impl KeyPath ===

impl KeyPath {
    /// Parses `server.limits.max_batch`. Keys that contain a dot cannot be written in this form.
    pub fn dotted(text: &str) -> Self {
        Self(text.split('.').map(|key| Segment::Key(key.into())).collect())
    }

    pub fn key(&self, key: &str) -> Self {
        self.and(Segment::Key(key.into()))
    }

    pub fn index(&self, index: usize) -> Self {
        self.and(Segment::Index(index))
    }

    fn and(&self, segment: Segment) -> Self {
        let mut segments = self.0.clone();
        segments.push(segment);
        Self(segments)
    }
}

impl fmt::Display for KeyPath {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (depth, segment) in self.0.iter().enumerate() {
            match segment {
                Segment::Index(index) => write!(out, "[{index}]")?,
                Segment::Key(key) => {
                    let dot = if depth == 0 { "" } else { "." };
                    if is_plain(key) {
                        write!(out, "{dot}{key}")?;
                    } else {
                        // Quoted and escaped, so that a key in a file cannot forge a log line.
                        write!(out, "{dot}{key:?}")?;
                    }
                }
            }
        }
        Ok(())
    }
}

fn is_plain(key: &str) -> bool {
    !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || "_-$".contains(c))
}

// === impl ConfigError ===

impl ConfigError {
    /// The errors, sorted by location.
    pub fn sorted(mut problems: Vec<Diagnostic>) -> Self {
        problems.sort_by_cached_key(Diagnostic::reading_order);
        Self { diagnostics: problems }
    }
}

impl From<Diagnostic> for ConfigError {
    fn from(problem: Diagnostic) -> Self {
        Self { diagnostics: vec![problem] }
    }
}

fn lines(problems: &[Diagnostic]) -> String {
    problems.iter().map(Diagnostic::to_string).collect::<Vec<_>>().join("\n")
}

//! Reads one configuration file: YAML, TOML or JSON, all into the same tree.

mod json;
mod position;
mod toml;
mod yaml;

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use zeroize::Zeroizing;

use super::problem::{KeyPath, Origin, Position, Problem, Source};
use super::tree::{Data, Node};

/// A larger file is refused: no configuration written by a person comes near it.
pub const MAX_FILE_BYTES: usize = 1024 * 1024;

/// What a file is, for messages, and how large it may be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    pub(crate) most_bytes: usize,
}

pub(super) const CONFIGURATION: Kind = Kind { name: "configuration", most_bytes: MAX_FILE_BYTES };

/// Deeper nesting is refused, so that nothing after the parser can run out of stack.
const MAX_DEPTH: usize = 64;

enum Format {
    Yaml,
    Toml,
    Json,
}

impl Format {
    /// Decided by the name alone; the content is never guessed at.
    fn of(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "yaml" | "yml" => Some(Self::Yaml),
            "toml" => Some(Self::Toml),
            "json" => Some(Self::Json),
            _ => None,
        }
    }

    fn named(path: &Path, kind: Kind) -> Result<Self, Vec<Problem>> {
        Self::of(path).ok_or_else(|| {
            let message = format!("is not a {} file; use `.yaml`, `.yml`, `.toml` or `.json`", kind.name);
            vec![Problem::with_source(Source::File(path.into()), message)]
        })
    }
}

/// The tree of a file, whose root is always a map.
pub(super) fn file(path: &Path, kind: Kind) -> Result<Node, Vec<Problem>> {
    let path: Arc<Path> = path.into();
    let problem = |message: String| vec![Problem::with_source(Source::File(path.clone()), message)];

    let format = Format::named(&path, kind)?;
    let bytes = bounded(&path, kind).map_err(problem)?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let valid = String::from_utf8_lossy(valid);
        let position = position::Index::new(&valid).position(valid.len());
        vec![Problem::at(Origin::file(&path, position), KeyPath::default(), "is not UTF-8 text")]
    })?;
    // A file may hold keys.
    let text = Zeroizing::new(text);
    parse(format, text.strip_prefix('\u{feff}').unwrap_or(&text), &path)
}

/// The tree of a text in the format that a file of this name has.
pub(super) fn text(text: &str, path: &Path, kind: Kind) -> Result<Node, Vec<Problem>> {
    parse(Format::named(path, kind)?, text.strip_prefix('\u{feff}').unwrap_or(text), &path.into())
}

/// The tree of a text that stands for a file.
pub(super) fn yaml(text: &str, path: &Path) -> Result<Node, Vec<Problem>> {
    parse(Format::Yaml, text, &path.into())
}

fn parse(format: Format, text: &str, path: &Arc<Path>) -> Result<Node, Vec<Problem>> {
    let root = match format {
        Format::Yaml => yaml::parse(text, path)?,
        Format::Toml => toml::parse(text, path)?,
        Format::Json => json::parse(text, path)?,
    };
    match root.data {
        Data::Map(_) => Ok(root),
        Data::Null => Ok(Node::empty(root.origin)),
        _ => Err(vec![Problem::at(root.origin, KeyPath::default(), "must be keys with values, such as `name: value`")]),
    }
}

/// The bytes of a regular file within the limit; anything else could block or never end.
fn bounded(path: &Path, kind: Kind) -> Result<Vec<u8>, String> {
    let unreadable = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::NotFound => "does not exist; check the path".to_owned(),
        _ => format!("cannot be read: {error}"),
    };
    if !path.metadata().map_err(unreadable)?.is_file() {
        return Err("is not a regular file".into());
    }
    let mut bytes = Vec::new();
    let mut file = File::open(path).map_err(unreadable)?.take(kind.most_bytes as u64 + 1);
    file.read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() > kind.most_bytes {
        return Err(format!("is larger than {} MiB, the most a {} file may have", kind.most_bytes >> 20, kind.name));
    }
    Ok(bytes)
}

fn syntax(path: &Arc<Path>, position: Position, message: impl Into<String>) -> Problem {
    Problem::at(Origin::file(path, position), KeyPath::default(), message)
}

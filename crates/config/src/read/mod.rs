//! Configuration file parser: YAML, TOML or JSON into the same tree.

mod json;
mod position;
mod toml;
mod yaml;

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use zeroize::Zeroizing;

use super::diagnostic::{Diagnostic, KeyPath, Origin, Position, ValueSource};
use super::spanned_value::{SpannedValue, ValueData};

/// Maximum file size, far above any handwritten configuration.
pub const MAX_FILE_BYTES: usize = 1024 * 1024;

/// Kind of a file, for messages, and its maximum size.
#[derive(Debug, Clone, Copy)]
pub struct FileKind {
    pub name: &'static str,
    pub max_bytes: usize,
}

pub(super) const CONFIG_FILE: FileKind = FileKind { name: "configuration", max_bytes: MAX_FILE_BYTES };

/// Maximum nesting depth, so that later recursion cannot overflow the stack.
const MAX_DEPTH: usize = 64;

enum FileFormat {
    Yaml,
    Toml,
    Json,
}

impl FileFormat {
    /// Determined by the extension alone, never by the content.
    fn of(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "yaml" | "yml" => Some(Self::Yaml),
            "toml" => Some(Self::Toml),
            "json" => Some(Self::Json),
            _ => None,
        }
    }

    fn named(path: &Path, kind: FileKind) -> Result<Self, Vec<Diagnostic>> {
        Self::of(path).ok_or_else(|| {
            let message = format!("is not a {} file; use `.yaml`, `.yml`, `.toml` or `.json`", kind.name);
            vec![Diagnostic::with_source(ValueSource::File(path.into()), message)]
        })
    }
}

/// Parses a file. The root is always a map.
pub(super) fn file(path: &Path, kind: FileKind) -> Result<SpannedValue, Vec<Diagnostic>> {
    parse_content(&read_content(path, kind)?, path, kind)
}

/// The content of a file. Zeroed on drop, because it may contain keys.
pub(super) fn read_content(path: &Path, kind: FileKind) -> Result<Zeroizing<Vec<u8>>, Vec<Diagnostic>> {
    FileFormat::named(path, kind)?;
    let bytes = read_bounded(path, kind);
    bytes.map(Zeroizing::new).map_err(|message| vec![Diagnostic::with_source(ValueSource::File(path.into()), message)])
}

/// Parses the content of a file.
pub(super) fn parse_content(content: &[u8], path: &Path, kind: FileKind) -> Result<SpannedValue, Vec<Diagnostic>> {
    let path: Arc<Path> = path.into();
    let format = FileFormat::named(&path, kind)?;
    let text = std::str::from_utf8(content).map_err(|error| {
        let valid = String::from_utf8_lossy(&content[..error.valid_up_to()]);
        let position = position::PositionIndex::new(&valid).position(valid.len());
        vec![Diagnostic::at(Origin::file(&path, position), KeyPath::default(), "is not UTF-8 text")]
    })?;
    parse(format, text.strip_prefix('\u{feff}').unwrap_or(text), &path)
}

/// Parses a text in the format of this file name.
pub(super) fn text(text: &str, path: &Path, kind: FileKind) -> Result<SpannedValue, Vec<Diagnostic>> {
    parse(FileFormat::named(path, kind)?, text.strip_prefix('\u{feff}').unwrap_or(text), &path.into())
}

/// Parses YAML, with `path` as its origin.
pub(super) fn yaml(text: &str, path: &Path) -> Result<SpannedValue, Vec<Diagnostic>> {
    parse(FileFormat::Yaml, text, &path.into())
}

fn parse(format: FileFormat, text: &str, path: &Arc<Path>) -> Result<SpannedValue, Vec<Diagnostic>> {
    let root = match format {
        FileFormat::Yaml => yaml::parse(text, path)?,
        FileFormat::Toml => toml::parse(text, path)?,
        FileFormat::Json => json::parse(text, path)?,
    };
    match root.data {
        ValueData::Map(_) => Ok(root),
        ValueData::Null => Ok(SpannedValue::empty(root.origin)),
        _ => Err(vec![Diagnostic::at(root.origin, KeyPath::default(), "must be a mapping, such as `name: value`")]),
    }
}

/// Reads a regular file up to the limit. Other kinds of files could block or be endless.
fn read_bounded(path: &Path, kind: FileKind) -> Result<Vec<u8>, String> {
    let unreadable = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::NotFound => "file not found; check the path".to_owned(),
        _ => format!("cannot be read: {error}"),
    };
    if !path.metadata().map_err(unreadable)?.is_file() {
        return Err("is not a regular file".into());
    }
    // Checked again after opening, because the file may have been replaced. Opening a pipe must not wait for a writer.
    let mut options = File::options();
    options.read(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
    let file = options.open(path).map_err(unreadable)?;
    if !file.metadata().map_err(unreadable)?.is_file() {
        return Err("is not a regular file".into());
    }
    let mut bytes = Vec::new();
    file.take(kind.max_bytes as u64 + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() > kind.max_bytes {
        return Err(format!("is larger than {} MiB, the maximum for a {} file", kind.max_bytes >> 20, kind.name));
    }
    Ok(bytes)
}

fn syntax_error(path: &Arc<Path>, position: Position, message: impl Into<String>) -> Diagnostic {
    Diagnostic::at(Origin::file(path, position), KeyPath::default(), message)
}

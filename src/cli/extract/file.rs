//! Opens and reads an input file, with size and format checks.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use corbie_extract::Format;

use crate::cli::formats;
use crate::util::os_error::FILE_NOT_FOUND;
use crate::workers;

/// Why a file was not read.
#[derive(Debug, thiserror::Error)]
pub(super) enum FileError {
    #[error("{}", formats::unsupported(.0))]
    Unsupported(String),
    #[error("this is a folder; specify its files, such as `{0}/*.pdf`")]
    Folder(String),
    #[error("{FILE_NOT_FOUND}; check the path")]
    Missing,
    #[error("the file cannot be opened: {0}")]
    Unreadable(io::Error),
    #[error("File size ({found} {unit}) exceeds maximum allowed size ({most} {unit}); raise `documents.max_file`")]
    TooLarge { found: u64, most: u64, unit: &'static str },
    #[error(transparent)]
    Worker(#[from] workers::Error),
}

/// The bytes of a file and the format by its extension, after the checks in the order of the contract (K-29). The
/// format of a file without extension is detected from its content.
pub(super) fn open(file: &Path, most: u64) -> Result<(Vec<u8>, Option<Format>), FileError> {
    if file == Path::new("-") {
        return Ok((read_bounded(io::stdin().lock(), most)?, None));
    }
    if file.is_dir() {
        return Err(FileError::Folder(file.display().to_string()));
    }
    let named = match file.extension().map(|extension| extension.to_string_lossy()) {
        Some(extension) if !extension.is_empty() => {
            let format = Format::from_extension(&extension);
            Some(format.ok_or_else(|| FileError::Unsupported(extension.into_owned()))?)
        }
        _ => None,
    };
    let opened = File::open(file).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => FileError::Missing,
        _ => FileError::Unreadable(error),
    })?;
    let length = opened.metadata().map_err(FileError::Unreadable)?.len();
    if length > most {
        return Err(too_large(length, most));
    }
    Ok((read_bounded(opened, most)?, named))
}

/// Enforces the limit while reading: a pipe has no length, and a file may grow.
fn read_bounded(from: impl Read, most: u64) -> Result<Vec<u8>, FileError> {
    let mut bytes = Vec::new();
    from.take(most.saturating_add(1)).read_to_end(&mut bytes).map_err(FileError::Unreadable)?;
    match bytes.len() as u64 {
        found if found > most => Err(too_large(found, most)),
        _ => Ok(bytes),
    }
}

fn too_large(found: u64, most: u64) -> FileError {
    let (unit, shift) = if most < 1 << 20 { ("KB", 10) } else { ("MB", 20) };
    FileError::TooLarge { found: found.div_ceil(1 << shift), most: most >> shift, unit }
}

impl FileError {
    /// Stable error code for programs (K-31).
    pub(super) fn kind(&self) -> &str {
        match self {
            FileError::Unsupported(_) => "unsupported_format",
            FileError::Missing => "file_not_found",
            FileError::Folder(_) | FileError::Unreadable(_) => "file_not_readable",
            FileError::TooLarge { .. } => "file_too_large",
            FileError::Worker(error) => error.kind(),
        }
    }
}

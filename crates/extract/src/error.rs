//! Extraction errors.

use super::Format;

/// Each message includes the next step for the user.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("the file is empty")]
    Empty,
    #[error("the file is password-protected; save a copy without a password")]
    PasswordProtected,
    /// A short description of the corruption.
    #[error("the file is corrupt: {0}; open it in the application that created it and save it again")]
    Corrupted(String),
    /// The exceeded limit and its value.
    #[error("the file has more than {most} {what}; split it")]
    TooMuch { what: &'static str, most: u64 },
    #[error("this build does not support {format} files")]
    Unsupported { format: Format },
    #[error("no text was found in the file")]
    NoText,
}

impl Error {
    /// A stable identifier for programs (K-31).
    pub fn kind(&self) -> &'static str {
        match self {
            Error::Empty => "empty_file",
            Error::PasswordProtected => "password_protected",
            Error::Corrupted(_) => "corrupted_file",
            Error::TooMuch { .. } => "limit_exceeded",
            Error::Unsupported { .. } => "unsupported_format",
            Error::NoText => "no_text_extracted",
        }
    }
}

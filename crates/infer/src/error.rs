//! Errors of models and texts, each with a remedy.
//!
//! Fields count texts from zero, as slices do; messages count from one, as users do.

use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("text {} {}", index + 1, self.fault())]
    EmptyText { index: usize },

    #[error("text {} {}", index + 1, self.fault())]
    TextTooLong { index: usize, bytes: usize, most: usize },

    #[error("text {} {}", index + 1, self.fault())]
    Tokenize { index: usize, reason: String },

    /// A defect of the model: it was trained or exported incorrectly, or its file is damaged.
    #[error("`{model}` returned an invalid result for text {}: {reason}", index + 1)]
    Unusable { model: String, index: usize, reason: &'static str },

    #[error("cannot run `{model}`: {reason}")]
    Run { model: String, reason: String },

    #[error("no model at `{}`: {reason}; expected a folder with `model.onnx` and `tokenizer.json`", path.display())]
    NoModel { path: PathBuf, reason: String },

    #[error("cannot use `{}`: {reason}", path.display())]
    BadModel { path: PathBuf, reason: String },

    #[error("cannot load the built-in model: {reason}; this build is damaged, reinstall corbie")]
    Builtin { reason: String },
}

impl Error {
    /// The index and the description of an invalid text; `None` if the model is the cause. The client can correct the
    /// text.
    pub fn invalid_text(&self) -> Option<(usize, String)> {
        match self {
            Error::EmptyText { index } => Some((*index, "is empty".into())),
            Error::TextTooLong { index, bytes, most } => {
                Some((*index, format!("is too long: {bytes} bytes (maximum {most})")))
            }
            Error::Tokenize { index, reason } => Some((*index, format!("cannot be tokenized: {reason}"))),
            _ => None,
        }
    }

    fn fault(&self) -> String {
        self.invalid_text().map(|(_, reason)| reason).unwrap_or_default()
    }
}

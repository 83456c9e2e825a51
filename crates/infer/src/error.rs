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
    #[error("`{model}` gave nothing usable for text {}: {reason}", index + 1)]
    Unusable { model: String, index: usize, reason: &'static str },

    #[error("`{model}` could not be run: {reason}")]
    Run { model: String, reason: String },

    #[error("no model at `{}`: {reason}; a model is a folder with `model.onnx` and `tokenizer.json`", path.display())]
    NoModel { path: PathBuf, reason: String },

    #[error("`{}` cannot be used: {reason}", path.display())]
    BadModel { path: PathBuf, reason: String },

    #[error("the built-in model cannot be used: {reason}; this build is damaged, build or install corbie again")]
    Builtin { reason: String },
}

impl Error {
    /// The index and the description of an invalid text; `None` if the model is the cause. The client can correct the
    /// text.
    pub fn invalid_text(&self) -> Option<(usize, String)> {
        match self {
            Error::EmptyText { index } => Some((*index, "is empty; give at least one letter".into())),
            Error::TextTooLong { index, bytes, most } => {
                Some((*index, format!("has {bytes} bytes; at most {most} are read")))
            }
            Error::Tokenize { index, reason } => Some((*index, format!("cannot be turned into tokens: {reason}"))),
            _ => None,
        }
    }

    fn fault(&self) -> String {
        self.invalid_text().map(|(_, reason)| reason).unwrap_or_default()
    }
}

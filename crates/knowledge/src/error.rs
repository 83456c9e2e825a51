//! Errors of the knowledge base, with the messages that callers see (K-03).

use corbie_extract::Format;
use serde_json::{Map, Value, json};

use crate::workers;
use corbie_classify::inference;

use super::document::BaseName;

/// An error with a stable code and the data that a program needs to handle it.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Error {
    #[error("{message}")]
    InvalidParameter { parameter: String, message: String },
    #[error(
        "Unsupported file format: {}. Use {}",
        if extension.is_empty() { "none".to_owned() } else { format!(".{extension}") },
        format_list()
    )]
    UnsupportedFormat { extension: String },
    #[error("File not found: {0}. Check the path; it must exist on the server's machine")]
    FileNotFound(String),
    #[error("No files match: {0}. Check the pattern; it applies to files on the server's machine")]
    NoFilesMatch(String),
    #[error("Cannot read file: {path}: {reason}")]
    FileNotReadable { path: String, reason: String },
    #[error("File is outside the allowed folders: {0}. Move it, or add its folder to `knowledge.allowed_roots`")]
    PathNotAllowed(String),
    #[error("File size ({} MB) exceeds maximum allowed size ({most_mb} MB)", found.div_ceil(1 << 20))]
    FileTooLarge { found: u64, most_mb: u64 },
    #[error("File is empty: {0}")]
    EmptyFile(String),
    /// From text extraction.
    #[error("{message}")]
    Document { code: String, message: String },
    #[error("Document with ID '{0}' not found")]
    DocumentNotFound(String),
    #[error("Task with ID '{0}' not found. Finished tasks are deleted after some time")]
    TaskNotFound(String),
    #[error("Set confirm=true to remove this document")]
    ConfirmRemoval { id: String, filename: String, chunks: u64 },
    #[error("This action will delete ALL documents. Set confirm=true and confirmation_phrase='DELETE ALL' to proceed")]
    ConfirmClear { documents: u64 },
    #[error("the knowledge base `{0}`")]
    NotGranted(BaseName),
    #[error("Knowledge base is empty. Add documents with knowledge-add first")]
    Empty,
    #[error("Task queue is full ({0} tasks); try again when some have finished")]
    TooManyTasks(u64),
    #[error("The task was cancelled")]
    Cancelled,
    /// The store is unavailable, or refuses the operation.
    #[error("{message}")]
    Storage { code: &'static str, message: String },
    #[error("The embedding model is unavailable: {0}")]
    Model(String),
    /// Internal error. Details are only in the log.
    #[error("Internal error; see the server log")]
    Internal(String),
}

/// Formats that the specification names, in its order (K-27).
pub(super) const FORMATS: [&str; 8] = ["pdf", "docx", "pptx", "xlsx", "html", "jpg", "png", "svg"];

/// Further supported formats (K-42).
pub fn more_formats() -> impl Iterator<Item = &'static str> {
    Format::ALL.into_iter().map(Format::as_str).filter(|format| !FORMATS.contains(format))
}

fn format_list() -> String {
    let [others @ .., last] = FORMATS.map(str::to_uppercase);
    format!("{}, or {last}", others.join(", "))
}

impl Error {
    pub fn invalid(parameter: impl Into<String>, message: impl Into<String>) -> Error {
        Error::InvalidParameter { parameter: parameter.into(), message: message.into() }
    }

    /// Stable error code for programs.
    pub fn code(&self) -> &str {
        match self {
            Error::InvalidParameter { .. } => "invalid_parameter",
            Error::NotGranted(_) => "permission_denied",
            Error::UnsupportedFormat { .. } => "unsupported_format",
            Error::FileNotFound(_) | Error::NoFilesMatch(_) => "file_not_found",
            Error::FileNotReadable { .. } => "file_not_readable",
            Error::PathNotAllowed(_) => "path_not_allowed",
            Error::FileTooLarge { .. } => "file_too_large",
            Error::EmptyFile(_) => "empty_file",
            Error::Document { code, .. } => code,
            Error::DocumentNotFound(_) => "document_not_found",
            Error::TaskNotFound(_) => "task_not_found",
            Error::ConfirmRemoval { .. } | Error::ConfirmClear { .. } => "confirmation_required",
            Error::Empty => "empty_knowledge_base",
            Error::TooManyTasks(_) => "too_many_tasks",
            Error::Cancelled => "cancelled",
            Error::Storage { code, .. } => code,
            Error::Model(_) => "embedding_failed",
            Error::Internal(_) => "internal_error",
        }
    }

    /// Whether the store is only temporarily unavailable, so that a retry may succeed.
    pub fn is_transient(&self) -> bool {
        matches!(self, Error::Storage { code: "storage_busy" | "storage_unavailable", .. })
    }

    /// Whether the cause is the document: the same file would fail again. A read error of the disk may be temporary.
    pub fn is_document_fault(&self) -> bool {
        match self {
            Error::UnsupportedFormat { .. }
            | Error::FileNotFound(_)
            | Error::PathNotAllowed(_)
            | Error::FileTooLarge { .. }
            | Error::EmptyFile(_) => true,
            // A worker that cannot be started, crashed or has no OCR engine is not caused by the file.
            Error::Document { code, .. } => {
                !matches!(code.as_str(), "worker_not_started" | "worker_crashed" | "ocr_failed")
            }
            _ => false,
        }
    }

    /// Members in addition to `error` and `message`.
    pub fn details(&self) -> Map<String, Value> {
        let members = match self {
            Error::InvalidParameter { parameter, .. } => json!({ "parameter": parameter }),
            Error::UnsupportedFormat { .. } => {
                json!({ "supported_formats": FORMATS, "also_supported": more_formats().collect::<Vec<_>>() })
            }
            Error::FileTooLarge { most_mb, .. } => json!({ "max_size_mb": most_mb }),
            Error::DocumentNotFound(id) => json!({ "document_id": id }),
            Error::TaskNotFound(id) => json!({ "task_id": id }),
            Error::ConfirmRemoval { id, filename, chunks } => {
                json!({ "document": { "id": id, "filename": filename, "chunks": chunks } })
            }
            Error::ConfirmClear { documents } => json!({ "current_document_count": documents }),
            Error::Empty => json!({ "document_count": 0 }),
            _ => return Map::new(),
        };
        match members {
            Value::Object(members) => members,
            _ => Map::new(),
        }
    }

    /// The complete error as returned to callers.
    pub fn to_json_members(&self) -> Map<String, Value> {
        let mut members = Map::new();
        members.insert("success".into(), false.into());
        members.insert("error".into(), self.code().into());
        members.insert("message".into(), self.to_string().into());
        members.extend(self.details());
        members
    }
}

impl From<workers::Error> for Error {
    fn from(error: workers::Error) -> Error {
        Error::Document { code: error.kind().to_owned(), message: error.to_string() }
    }
}

impl From<corbie_extract::Error> for Error {
    fn from(error: corbie_extract::Error) -> Error {
        Error::Document { code: error.kind().to_owned(), message: error.to_string() }
    }
}

impl From<inference::Error> for Error {
    fn from(error: inference::Error) -> Error {
        Error::Model(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store;

    #[test]
    fn k38_a_disk_that_could_not_be_read_says_nothing_of_the_document() {
        let unread = Error::FileNotReadable { path: "a.txt".into(), reason: "the disk does not answer".into() };
        assert!(!unread.is_document_fault());
        assert!(Error::EmptyFile("a.txt".into()).is_document_fault());
    }

    #[test]
    fn a_store_that_cannot_be_had_just_now_says_so_and_may_be_asked_again() {
        let away = Error::from(store::Error::Unavailable("connection refused".into()));
        assert_eq!(away.code(), "storage_unavailable");
        assert!(away.is_transient() && Error::from(store::Error::Busy).is_transient());
        assert!(!Error::from(store::Error::Full).is_transient());
    }
}

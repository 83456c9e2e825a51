//! Result of adding a file, as reported to the caller (K-26, K-112).

use serde::Serialize;
use serde_json::{Value, json};

use crate::document::DocumentId;

/// A stored document and how it got there.
#[derive(Debug, Clone, PartialEq)]
pub struct IngestResult {
    pub document_id: DocumentId,
    pub filename: String,
    pub chunks: u64,
    pub method: String,
    pub outcome: IngestOutcome,
    pub warning: Option<String>,
    pub seconds: f64,
}

/// Effect of adding a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum IngestOutcome {
    Added,
    /// The path had a document with different content, which was replaced (K-43).
    Updated,
    /// A document with the same content existed (K-36).
    Unchanged,
}

/// The document of a task that adds one file.
pub fn document_of(result: &Value) -> Option<DocumentId> {
    result["document_id"].as_str()?.parse().ok()
}

/// The documents of any task that adds files.
pub fn documents_of(result: &Value) -> Vec<DocumentId> {
    let files = result["files"].as_array().into_iter().flatten();
    std::iter::once(result).chain(files).filter_map(document_of).collect()
}

impl IngestResult {
    /// Result of the task (K-112), and the response to a caller who waited (K-26).
    pub fn to_json(&self) -> Value {
        let mut result = json!({
            "document_id": self.document_id,
            "filename": self.filename,
            "chunks_created": self.chunks,
            "processing_method": self.method,
            "processing_time_seconds": self.seconds,
        });
        match self.outcome {
            IngestOutcome::Added => {}
            IngestOutcome::Updated => result["updated"] = true.into(),
            IngestOutcome::Unchanged => result["duplicate"] = true.into(),
        }
        if let Some(warning) = &self.warning {
            result["warning"] = warning.as_str().into();
        }
        result
    }
}

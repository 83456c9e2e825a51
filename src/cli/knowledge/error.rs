//! Errors of the knowledge commands, as text and as JSON.

use serde_json::{Value, json};

use super::text;
use crate::cli::sanitize_line;
use crate::knowledge::control_socket;
use crate::knowledge::store::migration;
use crate::util::os_error::FILE_NOT_FOUND;

/// An error; for most of them the message contains advice.
#[derive(Debug, thiserror::Error)]
pub(in crate::cli) enum KnowledgeError {
    /// The error response of a tool.
    #[error("{}", reason(.0))]
    Tool(Value),
    #[error("{0}")]
    Rejected(String),
    #[error(
        "the server that has the knowledge base open has exited; try again. Its imports resume when a server starts; see \
         `corbie tasks`"
    )]
    ServerGone,
    #[error("the knowledge base is disabled; set `knowledge.enabled` to true")]
    Disabled,
    #[error("the user's data folder is unknown; set `knowledge.storage_path`")]
    NoStorage,
    #[error("there is no knowledge base in `{0}`; create one with `corbie add PATH`")]
    NoKnowledgeBase(String),
    #[error("`{0}`: {FILE_NOT_FOUND}; specify a file created by `corbie knowledge backup`")]
    NoBackup(String),
    #[error(
        "the drill needs {} in `{folder}`, but only {} are free; free some space, or choose another disk with --into FOLDER",
        super::size(*.needed),
        super::size(*.free)
    )]
    NoSpace { folder: String, needed: u64, free: u64 },
    #[error("the reply of `{0}` is not a JSON object; check the version of the server")]
    InvalidReply(String),
    #[error("there is no knowledge base `{base}`; {}", existing_bases(.base, .bases))]
    NoSuchBase { base: String, bases: Vec<String> },
    #[error("no document has the name or ID prefix `{0}`; `corbie show` lists all documents")]
    UnknownDocument(String),
    #[error("`{typed}` matches {}; specify one by its ID:{}", super::counted(.documents.len() as u64, "document"), list(.documents))]
    AmbiguousDocument { typed: String, documents: Vec<Value> },
    #[error("no task has the ID prefix `{0}`; `corbie tasks` lists all tasks")]
    UnknownTask(String),
    #[error("{count} tasks have the ID prefix `{beginning}`; type more characters")]
    AmbiguousTask { beginning: String, count: usize },
    #[error("task `{task}` has already ended ({state})")]
    TaskEnded { task: String, state: &'static str },
    #[error("the document has {}; page {page} does not exist", super::counted(*.count, "page"))]
    NoPage { page: u64, count: u64 },
    /// Confirmation is required, but there is no terminal. Contains what would be deleted.
    #[error("{0} Confirmation requires a terminal; use --yes to confirm")]
    NotConfirmed(String),
    #[error("nothing was removed")]
    Declined,
    #[error(transparent)]
    Untrusted(#[from] control_socket::TrustError),
    #[error(transparent)]
    Migration(#[from] migration::Error),
    #[error("{message}")]
    Argument { parameter: &'static str, message: String },
}

/// Message for an empty knowledge base, with the next command.
pub(super) const EMPTY_KNOWLEDGE_BASE: &str = "the knowledge base is empty; add documents with `corbie add PATH`";
/// Maximum number of documents listed for an ambiguous name; `corbie show` lists all.
const MAX_LISTED: usize = 20;

impl KnowledgeError {
    pub(super) fn argument(parameter: &'static str, message: impl Into<String>) -> KnowledgeError {
        KnowledgeError::Argument { parameter, message: message.into() }
    }

    /// The error as a JSON object.
    pub(in crate::cli) fn reply(&self) -> Value {
        let mut reply = json!({ "success": false, "error": self.code(), "message": self.to_string() });
        match self {
            KnowledgeError::Tool(replied) => return replied.clone(),
            KnowledgeError::NoSuchBase { base, bases } => {
                reply["knowledge_base"] = json!(base);
                reply["knowledge_bases"] = json!(bases);
            }
            KnowledgeError::UnknownDocument(typed) => reply["document_id"] = json!(typed),
            KnowledgeError::AmbiguousDocument { typed, documents } => {
                reply["message"] =
                    json!(format!("`{typed}` matches {} documents; specify one by its ID", documents.len()));
                reply["documents"] = json!(documents);
            }
            KnowledgeError::UnknownTask(task) | KnowledgeError::TaskEnded { task, .. } => {
                reply["task_id"] = json!(task)
            }
            KnowledgeError::NoSpace { needed, free, .. } => {
                reply["needed_bytes"] = json!(needed);
                reply["free_bytes"] = json!(free);
            }
            KnowledgeError::Argument { parameter, .. } => reply["parameter"] = json!(parameter),
            _ => {}
        }
        if let KnowledgeError::TaskEnded { state, .. } = self {
            reply["status"] = json!(state);
        }
        reply
    }

    /// Whether the arguments are invalid, so that no work was started.
    pub(in crate::cli) fn is_wrong_usage(&self) -> bool {
        self.code() == "invalid_parameter"
    }

    /// Stable error code; that of the tool, if there is one.
    fn code(&self) -> &str {
        match self {
            KnowledgeError::Tool(reply) => text(reply, "error"),
            KnowledgeError::Rejected(_) => "rejected",
            KnowledgeError::ServerGone => "server_disconnected",
            KnowledgeError::Disabled => "knowledge_disabled",
            KnowledgeError::NoStorage | KnowledgeError::NoKnowledgeBase(_) => "storage_not_found",
            KnowledgeError::NoBackup(_) => "file_not_found",
            KnowledgeError::NoSpace { .. } => "storage_full",
            KnowledgeError::InvalidReply(_) => "invalid_reply",
            KnowledgeError::NoSuchBase { .. } => "knowledge_base_not_found",
            KnowledgeError::UnknownDocument(_) => "document_not_found",
            KnowledgeError::AmbiguousDocument { .. } => "ambiguous_document",
            KnowledgeError::UnknownTask(_) => "task_not_found",
            KnowledgeError::AmbiguousTask { .. } => "ambiguous_task",
            KnowledgeError::TaskEnded { .. } => "task_ended",
            KnowledgeError::NoPage { .. } => "page_not_found",
            KnowledgeError::NotConfirmed(_) | KnowledgeError::Declined => "confirmation_required",
            KnowledgeError::Untrusted(control_socket::TrustError::Folder(_)) => "storage_exposed",
            KnowledgeError::Untrusted(_) => "socket_not_trusted",
            KnowledgeError::Migration(error) => error.kind(),
            KnowledgeError::Argument { .. } => "invalid_parameter",
        }
    }
}

/// The message of a tool error, with the next step as a command.
fn reason(reply: &Value) -> String {
    match (reply["error"].as_str(), reply["message"].as_str()) {
        (Some("empty_knowledge_base"), _) => EMPTY_KNOWLEDGE_BASE.into(),
        (_, Some(message)) => sanitize_line(message),
        (Some(code), None) => sanitize_line(code),
        (None, None) => "the tool failed without an error message".into(),
    }
}

/// Suggests existing bases.
fn existing_bases(base: &str, bases: &[String]) -> String {
    match bases {
        [] => format!("create it with `corbie add --base {base} PATH`"),
        [only] => format!("the only one is `{only}`"),
        bases => format!("existing ones: `{}`", bases.join("`, `")),
    }
}

/// One line per document: its id and its path.
fn list(documents: &[Value]) -> String {
    let line = |(document, id): (&Value, &String)| {
        let place = document["file_path"].as_str().unwrap_or(text(document, "filename"));
        format!("\n  {}  {}", sanitize_line(id), sanitize_line(place))
    };
    let ids = super::short_ids(documents.iter().map(|document| text(document, "id")));
    let mut lines: String = documents.iter().zip(&ids).take(MAX_LISTED).map(line).collect();
    if documents.len() > MAX_LISTED {
        lines += &format!("\n  and {} more", documents.len() - MAX_LISTED);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_is_one_sanitized_line() {
        let failed = |reply: Value| KnowledgeError::Tool(reply).to_string();
        assert_eq!(failed(json!({ "error": "x", "message": "no\n\u{1b}[2J" })), "no  [2J");
        assert!(failed(json!({ "error": "empty_knowledge_base", "message": "…" })).contains("corbie add"));
        assert_eq!(failed(json!({ "error": "odd" })), "odd");
    }

    #[test]
    fn ambiguous_documents_are_listed_up_to_a_limit() {
        let document = json!({ "id": "1", "filename": "a.txt", "file_path": "/x/\u{1b}a.txt" });
        let several = |count| KnowledgeError::AmbiguousDocument {
            typed: "a.txt".into(),
            documents: vec![document.clone(); count],
        };
        let told = several(2).to_string();
        assert_eq!(told, "`a.txt` matches 2 documents; specify one by its ID:\n  1  /x/ a.txt\n  1  /x/ a.txt");
        assert!(several(MAX_LISTED + 3).to_string().ends_with("\n  and 3 more"));
        assert!(!several(2).reply()["message"].as_str().unwrap().contains('\n'));
    }
}

//! Errors of a migration. Data that was already moved stays, and running the same migration again resumes there.

use crate::store;
use crate::task::UnfinishedTasks;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("both are the same knowledge base; name two")]
    SameStore,
    #[error(
        "{side} has tasks that are not finished ({} running, {} waiting); start corbie on it until `corbie tasks` lists \
         none of them, or cancel them, and stop it",
        .unfinished.running,
        .unfinished.queued
    )]
    UnfinishedTasks { side: &'static str, unfinished: UnfinishedTasks },
    #[error("{side} is in use by other instances (on {}); stop them first", .hosts.join(", "))]
    InUse { side: &'static str, hosts: Vec<String> },
    #[error("the knowledge base to move is damaged ({0}); see `corbie knowledge check`, and mend it first")]
    Damaged(String),
    #[error(
        "the knowledge base to move into has {0} that the other one does not have, or has otherwise; clear it, or name \
         an empty one"
    )]
    TargetNotEmpty(String),
    #[error("the knowledge base to move was changed meanwhile; stop whoever writes to it, and start again")]
    SourceChanged,
    #[error(transparent)]
    Store(#[from] store::Error),
}

impl Error {
    /// A stable identifier for programs.
    pub fn kind(&self) -> &'static str {
        match self {
            Error::SameStore => "same_storage",
            Error::UnfinishedTasks { .. } => "unfinished_tasks",
            Error::InUse { .. } => "storage_in_use",
            Error::Damaged(_) => "storage_corrupt",
            Error::TargetNotEmpty(_) => "storage_not_empty",
            Error::SourceChanged => "storage_changed",
            Error::Store(error) => error.kind(),
        }
    }
}

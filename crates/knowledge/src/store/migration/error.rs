//! Errors of a migration. Data that was already moved stays, and running the same migration again resumes there.

use crate::store;
use crate::task::UnfinishedTasks;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("source and target are the same knowledge base")]
    SameStore,
    #[error(
        "{side} has unfinished tasks ({} running, {} queued); run corbie on it until `corbie tasks` lists none, or \
         cancel them, then stop it",
        .unfinished.running,
        .unfinished.queued
    )]
    UnfinishedTasks { side: &'static str, unfinished: UnfinishedTasks },
    #[error("{side} is in use by other instances (on {}); stop them first", .hosts.join(", "))]
    InUse { side: &'static str, hosts: Vec<String> },
    #[error("the source knowledge base is corrupt ({0}); run `corbie knowledge check` and repair it first")]
    Damaged(String),
    #[error("the target knowledge base has {0} missing from or different in the source; clear it, or use an empty one")]
    TargetNotEmpty(String),
    #[error("the source knowledge base was modified during the migration; stop its writers and try again")]
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

//! Which documents of a base are wanted, and what is told of them in a list.

use serde_json::{Map, Value};

use crate::knowledge::document::{DocumentId, Millis};
use crate::knowledge::task::TaskId;

/// Which part of a list is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    pub only: Only,
    pub limit: u32,
    pub offset: u64,
    pub sort: Sort,
    pub order: Order,
}

/// Which documents are listed; what is left out is no condition.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Only {
    /// The name of its file or its title has this in it, in whatever case.
    pub named: Option<String>,
    pub format: Option<String>,
    pub status: Option<ProcessingStatus>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sort {
    #[default]
    DateAdded,
    Filename,
    Size,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    Ascending,
    #[default]
    Descending,
}

/// A part of a list.
#[derive(Debug, Clone, PartialEq)]
pub struct Listed {
    pub documents: Vec<ListedDocument>,
    /// How many there are in all of those that are wanted.
    pub total: u64,
}

/// A document, or a task that is to bring one.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedDocument {
    pub id: DocumentId,
    pub filename: String,
    pub path: Option<String>,
    pub title: Option<String>,
    pub format: String,
    pub size_bytes: u64,
    pub date_added: Millis,
    pub page_count: u32,
    pub chunk_count: u32,
    pub status: ProcessingStatus,
    /// None where it is not known yet.
    pub method: Option<String>,
    pub metadata: Map<String, Value>,
    /// Why it is partial, or why it failed.
    pub warning: Option<String>,
    /// The task that is to bring it.
    pub task: Option<TaskId>,
}

/// Where a document stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProcessingStatus {
    Pending,
    Processing,
    Completed,
    Partial,
    Failed,
}

impl Default for Listing {
    fn default() -> Listing {
        Listing { only: Only::default(), limit: 100, offset: 0, sort: Sort::default(), order: Order::default() }
    }
}

impl Only {
    /// What names have in them, in lower case.
    pub(super) fn part(&self) -> Option<String> {
        self.named.as_ref().map(|named| named.to_lowercase())
    }

    /// Whether everything is listed.
    pub fn is_all(&self) -> bool {
        *self == Only::default()
    }
}

impl ProcessingStatus {
    /// All of them, as a document goes through them.
    pub const ALL: [ProcessingStatus; 5] = [
        ProcessingStatus::Pending,
        ProcessingStatus::Processing,
        ProcessingStatus::Completed,
        ProcessingStatus::Partial,
        ProcessingStatus::Failed,
    ];

    /// The word for it on the wire.
    pub fn name(self) -> &'static str {
        match self {
            ProcessingStatus::Pending => "pending",
            ProcessingStatus::Processing => "processing",
            ProcessingStatus::Completed => "completed",
            ProcessingStatus::Partial => "partial",
            ProcessingStatus::Failed => "failed",
        }
    }
}

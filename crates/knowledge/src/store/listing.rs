//! Query and result types of the document list.

use serde_json::{Map, Value};

use crate::document::{DocumentId, Millis};
use crate::task::TaskId;

/// Query for one page of the document list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentListQuery {
    pub filter: DocumentFilter,
    pub limit: u32,
    pub offset: u64,
    pub sort: SortKey,
    pub order: SortDirection,
}

/// Filter for the document list; unset fields do not filter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DocumentFilter {
    /// Case-insensitive substring of the file name or the title.
    pub name_contains: Option<String>,
    pub format: Option<String>,
    pub status: Option<ProcessingStatus>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SortKey {
    #[default]
    DateAdded,
    Filename,
    Size,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SortDirection {
    Ascending,
    #[default]
    Descending,
}

/// One page of the document list.
#[derive(Debug, Clone, PartialEq)]
pub struct DocumentList {
    pub documents: Vec<ListedDocument>,
    /// Number of all documents that match the filter.
    pub total: u64,
}

/// A document, or a task that will create one.
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
    /// None until it is determined.
    pub method: Option<String>,
    pub metadata: Map<String, Value>,
    /// The reason for a partial or failed status.
    pub warning: Option<String>,
    /// The task that will create the document.
    pub task: Option<TaskId>,
}

/// Processing status of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProcessingStatus {
    Pending,
    Processing,
    Completed,
    Partial,
    Failed,
}

impl Default for DocumentListQuery {
    fn default() -> DocumentListQuery {
        DocumentListQuery {
            filter: DocumentFilter::default(),
            limit: 100,
            offset: 0,
            sort: SortKey::default(),
            order: SortDirection::default(),
        }
    }
}

impl DocumentFilter {
    /// The name filter in lower case.
    pub(super) fn lowercase_name(&self) -> Option<String> {
        self.name_contains.as_ref().map(|named| named.to_lowercase())
    }

    /// Whether the filter matches every document.
    pub fn matches_all(&self) -> bool {
        *self == DocumentFilter::default()
    }
}

impl ProcessingStatus {
    /// All values, in processing order.
    pub const ALL: [ProcessingStatus; 5] = [
        ProcessingStatus::Pending,
        ProcessingStatus::Processing,
        ProcessingStatus::Completed,
        ProcessingStatus::Partial,
        ProcessingStatus::Failed,
    ];

    /// The name on the wire.
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

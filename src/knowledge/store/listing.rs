//! The documents of a base, page by page, with those that are still to come or have failed.

use rusqlite::Connection;
use serde_json::{Map, Value};

use super::error::Error;
use super::{Store, rows};
use crate::knowledge::document::{BaseName, DocumentId, Millis};
use crate::knowledge::task::TaskId;

/// Which part of a list is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listing {
    pub limit: u32,
    pub offset: u64,
    pub sort: Sort,
    pub order: Order,
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
    /// How many there are in all.
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
        Listing { limit: 100, offset: 0, sort: Sort::default(), order: Order::default() }
    }
}

impl ProcessingStatus {
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

impl Store {
    /// A part of the list of documents. Tasks that wait, run or have failed are in it until their document is.
    pub async fn documents(&self, base: &BaseName, listing: Listing) -> Result<Listed, Error> {
        let base = base.clone();
        self.read(move |transaction| {
            let Some(base) = rows::base(transaction, &base)? else {
                return Ok(Listed { documents: Vec::new(), total: 0 });
            };
            Ok(Listed { total: total(transaction, base)?, documents: page(transaction, base, listing)? })
        })
        .await
    }
}

/// Tasks of the base `?1` that have a document to come, and not yet.
const COMING: &str = "FROM tasks AS t WHERE t.base = ?1 AND t.state IN ('queued', 'running', 'failed') \
     AND t.document IS NOT NULL AND NOT EXISTS (SELECT 1 FROM documents AS o WHERE o.id = t.document)";

fn total(connection: &Connection, base: i64) -> Result<u64, Error> {
    let sql = format!("SELECT (SELECT count(*) FROM documents WHERE base = ?1) + (SELECT count(*) {COMING})");
    Ok(connection.prepare_cached(&sql)?.query_row([base], |row| row.get(0))?)
}

fn page(connection: &Connection, base: i64, listing: Listing) -> Result<Vec<ListedDocument>, Error> {
    let by = match listing.sort {
        Sort::DateAdded => "date_added",
        Sort::Filename => "filename COLLATE NOCASE",
        Sort::Size => "size_bytes",
    };
    let order = match listing.order {
        Order::Ascending => "ASC",
        Order::Descending => "DESC",
    };
    // Equal ones keep their order from page to page.
    let sql = format!(
        "SELECT id, filename, path, title, format, size_bytes, date_added, page_count, chunk_count, status, method, warning, \
         NULL AS task, metadata, key FROM documents WHERE base = ?1 \
         UNION ALL SELECT t.document, ifnull(t.filename, ''), NULL, NULL, ifnull(t.format, ''), ifnull(t.size_bytes, 0), \
         t.created, 0, 0, CASE t.state WHEN 'queued' THEN 'pending' WHEN 'running' THEN 'processing' ELSE 'failed' END, \
         NULL, t.error_message, t.id, '{{}}', t.key {COMING} \
         ORDER BY {by} {order}, key {order}, id {order} LIMIT ?2 OFFSET ?3"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map((base, listing.limit, listing.offset.min(i64::MAX as u64)), |row| {
        Ok(ListedDocument {
            id: row.get(0)?,
            filename: row.get(1)?,
            path: row.get(2)?,
            title: row.get(3)?,
            format: row.get(4)?,
            size_bytes: row.get(5)?,
            date_added: row.get(6)?,
            page_count: row.get(7)?,
            chunk_count: row.get(8)?,
            status: row.get(9)?,
            method: row.get(10)?,
            warning: row.get(11)?,
            task: row.get(12)?,
            metadata: rows::metadata(row, 13)?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

//! Document list with paging, including the documents that queued and running tasks add.

use rusqlite::functions::FunctionFlags;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, params};

use super::{Store, rows};
use crate::document::BaseName;
use crate::store::{DocumentFilter, DocumentList, DocumentListQuery, Error, ListedDocument, SortDirection, SortKey};

impl Store {
    /// Returns one page of the document list. A queued or running task is listed until its document exists. A failed task
    /// is no document.
    pub async fn documents(&self, base: &BaseName, listing: DocumentListQuery) -> Result<DocumentList, Error> {
        let base = base.clone();
        self.read(move |transaction| {
            let Some(base) = rows::base_key(transaction, &base)? else {
                return Ok(DocumentList { documents: Vec::new(), total: 0 });
            };
            Ok(DocumentList {
                total: total(transaction, base, &listing.filter)?,
                documents: page(transaction, base, &listing)?,
            })
        })
        .await
    }
}

/// Registers the SQL function for the name filter. SQLite's `LIKE` ignores case only for ASCII.
pub(super) fn register_functions(connection: &Connection) -> Result<(), Error> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC | FunctionFlags::SQLITE_DIRECTONLY;
    connection.create_scalar_function("has_in_lower_case", 2, flags, |context| {
        match (context.get_raw(0), context.get_raw(1)) {
            (ValueRef::Text(text), ValueRef::Text(part)) => {
                let (text, part) = (String::from_utf8_lossy(text), String::from_utf8_lossy(part));
                Ok(text.to_lowercase().contains(&*part))
            }
            _ => Ok(false),
        }
    })?;
    Ok(())
}

/// Number of title characters to search. Real titles are shorter, but metadata may contain anything.
const MAX_TITLE_CHARS: u32 = 1000;

/// Documents of the base `?1`, and its tasks with a document that does not exist yet. A document whose file was added
/// again without success has the status `failed`; its earlier content is still found.
fn list_sql() -> String {
    format!(
        "WITH failures AS (SELECT document, error_message, max(key) FROM tasks \
         WHERE state = 'failed' AND base = ?1 AND document IS NOT NULL GROUP BY document) \
         SELECT id, filename, path, title, format, size_bytes, date_added, page_count, chunk_count, {STATUS_OF_DOCUMENT}, \
         method, ifnull(f.error_message, warning), NULL AS task, metadata, key \
         FROM documents LEFT JOIN failures AS f ON f.document = documents.id WHERE base = ?1 \
         AND (?2 IS NULL OR has_in_lower_case(filename, ?2) \
         OR has_in_lower_case(substr(ifnull(metadata ->> 'title', title), 1, {MAX_TITLE_CHARS}), ?2)) \
         AND (?3 IS NULL OR format = ?3) AND (?4 IS NULL OR {STATUS_OF_DOCUMENT} = ?4) \
         UNION ALL SELECT t.document, ifnull(t.filename, ''), NULL, NULL, ifnull(t.format, ''), ifnull(t.size_bytes, 0), \
         t.created, 0, 0, {STATUS_OF_TASK}, NULL, NULL, t.id, '{{}}', t.key \
         FROM tasks AS t WHERE t.base = ?1 AND t.state IN ('queued', 'running') \
         AND (?2 IS NULL OR has_in_lower_case(t.filename, ?2)) \
         AND (?3 IS NULL OR t.format = ?3) AND (?4 IS NULL OR {STATUS_OF_TASK} = ?4) \
         AND t.document IS NOT NULL AND NOT EXISTS (SELECT 1 FROM documents AS o WHERE o.id = t.document)"
    )
}

/// Status of a document, given its last failure.
const STATUS_OF_DOCUMENT: &str = "iif(f.document IS NULL, status, 'failed')";

/// Status of a document that does not exist yet, for a task state.
const STATUS_OF_TASK: &str = "CASE t.state WHEN 'queued' THEN 'pending' ELSE 'processing' END";

fn total(connection: &Connection, base: i64, only: &DocumentFilter) -> Result<u64, Error> {
    // Without a filter, counting does not need to read the rows.
    if only.matches_all() {
        let sql = "SELECT (SELECT count(*) FROM documents WHERE base = ?1) + (SELECT count(*) FROM tasks AS t \
                   WHERE t.base = ?1 AND t.state IN ('queued', 'running') AND t.document IS NOT NULL \
                   AND NOT EXISTS (SELECT 1 FROM documents AS o WHERE o.id = t.document))";
        return Ok(connection.prepare_cached(sql)?.query_row([base], |row| row.get(0))?);
    }
    let sql = format!("SELECT count(*) FROM ({})", list_sql());
    let wanted = params![base, only.lowercase_name(), only.format, only.status];
    Ok(connection.prepare_cached(&sql)?.query_row(wanted, |row| row.get(0))?)
}

fn page(connection: &Connection, base: i64, listing: &DocumentListQuery) -> Result<Vec<ListedDocument>, Error> {
    let by = match listing.sort {
        SortKey::DateAdded => "date_added",
        SortKey::Filename => "filename COLLATE NOCASE",
        SortKey::Size => "size_bytes",
    };
    let order = match listing.order {
        SortDirection::Ascending => "ASC",
        SortDirection::Descending => "DESC",
    };
    // The key breaks ties, so the order is stable across pages.
    let sql = format!("{} ORDER BY {by} {order}, key {order}, id {order} LIMIT ?5 OFFSET ?6", list_sql());
    let mut statement = connection.prepare_cached(&sql)?;
    let DocumentListQuery { filter: only, limit, offset, .. } = listing;
    let wanted = params![base, only.lowercase_name(), only.format, only.status, limit, (*offset).min(i64::MAX as u64)];
    let rows = statement.query_map(wanted, |row| {
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
            metadata: rows::get_metadata(row, 13)?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

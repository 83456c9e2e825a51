//! Document list with paging, including queued and failed tasks.

use rusqlite::functions::FunctionFlags;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, params};

use super::{Store, rows};
use crate::knowledge::document::BaseName;
use crate::knowledge::store::{Error, Listed, ListedDocument, Listing, Only, Order, Sort};

impl Store {
    /// Returns one page of the document list. A queued, running or failed task is listed until its document exists.
    pub async fn documents(&self, base: &BaseName, listing: Listing) -> Result<Listed, Error> {
        let base = base.clone();
        self.read(move |transaction| {
            let Some(base) = rows::base(transaction, &base)? else {
                return Ok(Listed { documents: Vec::new(), total: 0 });
            };
            Ok(Listed {
                total: total(transaction, base, &listing.only)?,
                documents: page(transaction, base, &listing)?,
            })
        })
        .await
    }
}

/// Registers the SQL function for the name filter. SQLite's `LIKE` ignores case only for ASCII.
pub(super) fn prepare(connection: &Connection) -> Result<(), Error> {
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
const LONGEST_TITLE: u32 = 1000;

/// Documents of the base `?1`, and its tasks with a document that does not exist yet.
fn listed() -> String {
    format!(
        "SELECT id, filename, path, title, format, size_bytes, date_added, page_count, chunk_count, status, method, warning, \
         NULL AS task, metadata, key FROM documents WHERE base = ?1 \
         AND (?2 IS NULL OR has_in_lower_case(filename, ?2) \
         OR has_in_lower_case(substr(ifnull(metadata ->> 'title', title), 1, {LONGEST_TITLE}), ?2)) \
         AND (?3 IS NULL OR format = ?3) AND (?4 IS NULL OR status = ?4) \
         UNION ALL SELECT t.document, ifnull(t.filename, ''), NULL, NULL, ifnull(t.format, ''), ifnull(t.size_bytes, 0), \
         t.created, 0, 0, {COMING}, NULL, t.error_message, t.id, '{{}}', t.key \
         FROM tasks AS t WHERE t.base = ?1 AND t.state IN ('queued', 'running', 'failed') \
         AND (?2 IS NULL OR has_in_lower_case(t.filename, ?2)) \
         AND (?3 IS NULL OR t.format = ?3) AND (?4 IS NULL OR {COMING} = ?4) \
         AND t.document IS NOT NULL AND NOT EXISTS (SELECT 1 FROM documents AS o WHERE o.id = t.document)"
    )
}

/// Document status for a task state.
const COMING: &str = "CASE t.state WHEN 'queued' THEN 'pending' WHEN 'running' THEN 'processing' ELSE 'failed' END";

fn total(connection: &Connection, base: i64, only: &Only) -> Result<u64, Error> {
    // Without a filter, counting does not need to read the rows.
    if only.is_all() {
        let sql = "SELECT (SELECT count(*) FROM documents WHERE base = ?1) + (SELECT count(*) FROM tasks AS t \
                   WHERE t.base = ?1 AND t.state IN ('queued', 'running', 'failed') AND t.document IS NOT NULL \
                   AND NOT EXISTS (SELECT 1 FROM documents AS o WHERE o.id = t.document))";
        return Ok(connection.prepare_cached(sql)?.query_row([base], |row| row.get(0))?);
    }
    let sql = format!("SELECT count(*) FROM ({})", listed());
    let wanted = params![base, only.part(), only.format, only.status];
    Ok(connection.prepare_cached(&sql)?.query_row(wanted, |row| row.get(0))?)
}

fn page(connection: &Connection, base: i64, listing: &Listing) -> Result<Vec<ListedDocument>, Error> {
    let by = match listing.sort {
        Sort::DateAdded => "date_added",
        Sort::Filename => "filename COLLATE NOCASE",
        Sort::Size => "size_bytes",
    };
    let order = match listing.order {
        Order::Ascending => "ASC",
        Order::Descending => "DESC",
    };
    // The key breaks ties, so the order is stable across pages.
    let sql = format!("{} ORDER BY {by} {order}, key {order}, id {order} LIMIT ?5 OFFSET ?6", listed());
    let mut statement = connection.prepare_cached(&sql)?;
    let Listing { only, limit, offset, .. } = listing;
    let wanted = params![base, only.part(), only.format, only.status, limit, (*offset).min(i64::MAX as u64)];
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
            metadata: rows::metadata(row, 13)?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

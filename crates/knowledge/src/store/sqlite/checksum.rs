//! Checksums of stored rows.
//!
//! SQLite checks the structure of its file and not the content of rows: a flipped bit in a text stays unnoticed. So
//! each row of a base and of a document has a CRC-32 of its other columns, which detects every single flipped bit. It is
//! computed when a row is written, and compared when a document is read and by a check of the store.
//!
//! Rows of files from before schema 7 have no checksum at first. [`record_some`] computes it in the background, in small
//! transactions; until then such a row counts as intact.

use std::time::{Duration, Instant};

use rusqlite::functions::FunctionFlags;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, params};

use super::rows;
use crate::store::Error;

/// The schema version in which all tables have checksums.
pub(super) const SINCE: usize = 8;

/// A table with checksums.
#[derive(Debug, Clone, Copy)]
pub(super) struct Table {
    pub(super) name: &'static str,
    /// The columns that the checksum covers.
    columns: &'static [&'static str],
    /// The file name or base name that a row belongs to, as SQL.
    label: &'static str,
}

/// Without the key, which the database assigns. A wrong one violates the foreign keys of documents.
pub(super) const BASES: Table = Table { name: "bases", columns: &["name", "created", "updated"], label: "bases.name" };

pub(super) const DOCUMENTS: Table = Table {
    name: "documents",
    columns: &[
        "id",
        "base",
        "filename",
        "path",
        "origin",
        "title",
        "format",
        "size_bytes",
        "sha256",
        "date_added",
        "updated",
        "status",
        "method",
        "metadata",
        "model",
        "page_count",
        "chunk_count",
        "vector_count",
        "warning",
    ],
    label: "documents.filename",
};

pub(super) const PAGES: Table = Table {
    name: "pages",
    columns: &["document", "number", "label", "text"],
    label: "(SELECT filename FROM documents WHERE key = pages.document)",
};

/// Without the key, which changes when a document is renamed.
pub(super) const CHUNKS: Table = Table {
    name: "chunks",
    columns: &["id", "document", "ordinal", "page_first", "page_last", "tokens", "path", "text", "stretches"],
    label: "(SELECT filename FROM documents WHERE key = chunks.document)",
};

pub(super) const VECTORS: Table = Table {
    name: "vectors",
    columns: &["dimensions", "windows", "codes"],
    label: "(SELECT filename FROM chunks JOIN documents ON documents.key = chunks.document WHERE chunks.key = vectors.chunk)",
};

pub(super) const TABLES: [Table; 5] = [BASES, DOCUMENTS, PAGES, CHUNKS, VECTORS];

/// Rows per statement, and how long one call of [`record_some`] may hold the write lock.
const BATCH: u32 = 64;
const MAX_HOLD: Duration = Duration::from_millis(50);

/// Registers the SQL function `row_checksum`.
pub(super) fn prepare(connection: &Connection) -> Result<(), Error> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC | FunctionFlags::SQLITE_DIRECTONLY;
    connection.create_scalar_function("row_checksum", -1, flags, |context| {
        let mut sum = crc32fast::Hasher::new();
        for column in 0..context.len() {
            rows::hash_value(context.get_raw(column), |bytes| sum.update(bytes));
        }
        // Signed, because SQLite needs two more bytes for the upper half of the unsigned range.
        Ok(i64::from(sum.finalize().cast_signed()))
    })?;
    Ok(())
}

impl Table {
    /// The checksum that a row should have, as SQL.
    fn computed(&self, alias: &str) -> String {
        let columns: Vec<String> = self.columns.iter().map(|column| format!("{alias}.{column}")).collect();
        format!("row_checksum({})", columns.join(", "))
    }

    /// Whether a row is intact, as SQL.
    pub(super) fn intact(&self, alias: &str) -> String {
        format!("({alias}.checksum IS NULL OR {alias}.checksum = {})", self.computed(alias))
    }

    /// Rows that do not match their checksums. Rows up to `unchecked` may have none.
    pub(super) fn damaged(
        &self,
        connection: &Connection,
        unchecked: i64,
        limit: i64,
    ) -> Result<Vec<DamagedRow>, Error> {
        let Table { name, label, .. } = self;
        let sql = format!(
            "SELECT {name}.rowid, {label} FROM {name} \
             WHERE {name}.checksum IS NOT {} AND NOT ({name}.checksum IS NULL AND {name}.rowid <= ?1) LIMIT ?2",
            self.computed(name)
        );
        let mut statement = connection.prepare(&sql)?;
        let rows = statement.query_map(params![unchecked, limit], |row| {
            let label = match row.get_ref(1)? {
                ValueRef::Text(text) => Some(String::from_utf8_lossy(text).into_owned()),
                _ => None,
            };
            Ok(DamagedRow { rowid: row.get(0)?, label })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Sets the checksum of rows that have none or a wrong one.
    fn record_all(&self, connection: &Connection) -> Result<(), Error> {
        let (name, computed) = (self.name, self.computed(self.name));
        connection.execute(&format!("UPDATE {name} SET checksum = {computed} WHERE checksum IS NOT {computed}"), [])?;
        connection.execute("DELETE FROM unchecked WHERE name = ?1", [name])?;
        Ok(())
    }

    /// Sets the checksum of some rows that have none. Returns false if there are no more.
    fn record_batch(&self, connection: &Connection) -> Result<bool, Error> {
        let Some(last) = self.unchecked(connection)? else { return Ok(false) };
        let (name, computed) = (self.name, self.computed(self.name));
        let batch = format!("SELECT rowid FROM {name} WHERE rowid <= ?1 ORDER BY rowid DESC LIMIT {BATCH}");
        let first: Option<i64> = connection
            .prepare_cached(&format!("SELECT min(rowid) FROM ({batch})"))?
            .query_row([last], |row| row.get(0))?;
        let Some(first) = first else {
            connection.execute("DELETE FROM unchecked WHERE name = ?1", [name])?;
            return Ok(false);
        };
        connection
            .prepare_cached(&format!(
                "UPDATE {name} SET checksum = {computed} WHERE rowid BETWEEN ?1 AND ?2 AND checksum IS NULL"
            ))?
            .execute((first, last))?;
        connection.execute("UPDATE unchecked SET last = ?2 WHERE name = ?1", (name, first - 1))?;
        Ok(true)
    }

    /// The last row that may have no checksum. None if all have one.
    pub(super) fn unchecked(&self, connection: &Connection) -> Result<Option<i64>, Error> {
        let mut statement = connection.prepare_cached("SELECT last FROM unchecked WHERE name = ?1")?;
        Ok(statement.query_row([self.name], |row| row.get(0)).optional()?)
    }
}

/// A row whose content does not match its checksum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DamagedRow {
    pub(super) rowid: i64,
    /// File name of its document, or name of the base.
    pub(super) label: Option<String>,
}

/// Updates the checksum of a document's row after a change of its columns.
pub(super) fn record_document(connection: &Connection, key: u64) -> Result<(), Error> {
    let sql = format!("UPDATE documents SET checksum = {} WHERE key = ?1", DOCUMENTS.computed("documents"));
    connection.prepare_cached(&sql)?.execute([key])?;
    Ok(())
}

/// Whether all rows of a document match their checksums.
pub(super) fn is_intact(connection: &Connection, key: u64) -> Result<bool, Error> {
    for table in [DOCUMENTS, PAGES, CHUNKS, VECTORS] {
        let (name, intact) = (table.name, table.intact("t"));
        let of = match name {
            "documents" => "t.key = ?1",
            "vectors" => "t.chunk IN (SELECT key FROM chunks WHERE document = ?1)",
            _ => "t.document = ?1",
        };
        let sql = format!("SELECT 1 FROM {name} AS t WHERE {of} AND NOT {intact}");
        if connection.prepare_cached(&sql)?.exists([key])? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether some rows may have no checksum.
pub(super) fn is_incomplete(connection: &Connection) -> Result<bool, Error> {
    Ok(connection.prepare("SELECT 1 FROM unchecked")?.exists([])?)
}

/// Sets the checksums of all rows that have none or a wrong one.
pub(super) fn record_all(connection: &Connection) -> Result<(), Error> {
    TABLES.iter().try_for_each(|table| table.record_all(connection))
}

/// Sets the checksums of rows that have none, for a short time. Returns whether all rows have one.
pub(super) fn record_some(connection: &Connection) -> Result<bool, Error> {
    let begun = Instant::now();
    for table in TABLES {
        while table.record_batch(connection)? {
            if begun.elapsed() >= MAX_HOLD {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

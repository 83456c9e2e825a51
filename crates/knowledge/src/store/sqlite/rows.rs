//! Conversion between rows and values.

use std::fmt::Display;

use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, ValueRef};
use rusqlite::{Connection, OptionalExtension, Row};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::change_log::ChangeKind;
use super::checksum;
use crate::document::{BaseName, ChunkId, DocumentId, DocumentRecord, Origin, Status};
use crate::store::{Error, ProcessingStatus};
use crate::task::{TaskId, TaskKind};

/// Enums are stored as words, so that the file is readable.
macro_rules! words {
    ($type:ty { $($variant:path = $word:literal),+ $(,)? }) => {
        impl ToSql for $type {
            fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
                Ok(match self { $($variant => $word.into()),+ })
            }
        }

        impl FromSql for $type {
            fn column_result(value: ValueRef<'_>) -> FromSqlResult<$type> {
                match value.as_str()? {
                    $($word => Ok($variant),)+
                    _ => Err(FromSqlError::InvalidType),
                }
            }
        }
    };
}

words!(Status { Status::Completed = "completed", Status::Partial = "partial" });
words!(Origin { Origin::Added = "added", Origin::Watched = "watched", Origin::Uploaded = "uploaded" });
words!(TaskKind { TaskKind::Add = "add", TaskKind::Import = "import" });
words!(ProcessingStatus {
    ProcessingStatus::Pending = "pending",
    ProcessingStatus::Processing = "processing",
    ProcessingStatus::Completed = "completed",
    ProcessingStatus::Partial = "partial",
    ProcessingStatus::Failed = "failed",
});

words!(ChangeKind {
    ChangeKind::Put = "put",
    ChangeKind::Removed = "removed",
    ChangeKind::MetadataUpdated = "described",
    ChangeKind::Cleared = "cleared",
});

/// IDs are stored as sixteen bytes.
macro_rules! ids {
    ($($type:ident),+) => {
        $(
            impl ToSql for $type {
                fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
                    Ok(ToSqlOutput::from(self.0.as_bytes().as_slice()))
                }
            }

            impl FromSql for $type {
                fn column_result(value: ValueRef<'_>) -> FromSqlResult<$type> {
                    <[u8; 16]>::column_result(value).map(|bytes| $type(Uuid::from_bytes(bytes)))
                }
            }
        )+
    };
}

ids!(DocumentId, ChunkId, TaskId);

impl ToSql for BaseName {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(self.as_str().into())
    }
}

impl FromSql for BaseName {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<BaseName> {
        value.as_str()?.parse().map_err(FromSqlError::other)
    }
}

/// Columns for [`read_document`], from `documents AS d JOIN bases AS b`.
pub(super) const DOCUMENT_COLUMNS: &str = "d.key, d.id, b.name, d.filename, d.path, d.origin, d.title, d.format, d.size_bytes, d.sha256, \
     d.date_added, d.updated, d.status, d.method, d.metadata, d.model, d.page_count, d.chunk_count, d.vector_count, d.warning";

pub(super) fn read_document(row: &Row<'_>) -> rusqlite::Result<DocumentRecord> {
    Ok(DocumentRecord {
        key: row.get(0)?,
        id: row.get(1)?,
        base: row.get(2)?,
        filename: row.get(3)?,
        path: row.get(4)?,
        origin: row.get(5)?,
        title: row.get(6)?,
        format: row.get(7)?,
        size_bytes: row.get(8)?,
        sha256: row.get(9)?,
        date_added: row.get(10)?,
        updated: row.get(11)?,
        status: row.get(12)?,
        method: row.get(13)?,
        metadata: get_metadata(row, 14)?,
        model: row.get(15)?,
        page_count: row.get(16)?,
        chunk_count: row.get(17)?,
        vector_count: row.get(18)?,
        warning: row.get(19)?,
    })
}

pub(super) fn get_metadata(row: &Row<'_>, column: usize) -> rusqlite::Result<Map<String, Value>> {
    get_json(row, column)
}

/// Reads a column with JSON.
pub(super) fn get_json<T: serde::de::DeserializeOwned>(row: &Row<'_>, column: usize) -> rusqlite::Result<T> {
    let text = row.get_ref(column)?.as_str()?;
    serde_json::from_str(text).map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Text, Box::new(error))
    })
}

/// Serializes a value to JSON.
pub(super) fn to_json(value: &impl serde::Serialize) -> Result<String, Error> {
    serde_json::to_string(value).map_err(|error| Error::Internal(error.to_string()))
}

/// The key of a base, if it was ever written to.
pub(super) fn base_key(connection: &Connection, name: &BaseName) -> Result<Option<i64>, Error> {
    let mut statement = connection.prepare_cached("SELECT key FROM bases WHERE name = ?1")?;
    Ok(statement.query_row([name], |row| row.get(0)).optional()?)
}

/// The key of a base; creates it if necessary, without marking it as changed.
pub(super) fn get_or_create_base(connection: &Connection, name: &BaseName, now: i64) -> Result<i64, Error> {
    let sql = "INSERT OR IGNORE INTO bases (name, created, updated, checksum) \
         VALUES (?1, ?2, ?2, row_checksum(?1, ?2, ?2))";
    connection.prepare_cached(sql)?.execute((name, now))?;
    base_key(connection, name)?.ok_or_else(|| Error::Internal(format!("knowledge base `{name}` was not created")))
}

/// The key of a base; creates it if necessary and marks it as changed. A damaged row keeps its checksum, so that a check
/// still finds the damage.
pub(super) fn touch_base(connection: &Connection, name: &BaseName, now: i64) -> Result<i64, Error> {
    let mut statement = connection.prepare_cached(&format!(
        "INSERT INTO bases (name, created, updated, checksum) VALUES (?1, ?2, ?2, row_checksum(?1, ?2, ?2)) \
         ON CONFLICT (name) DO UPDATE SET updated = excluded.updated, \
         checksum = iif({}, row_checksum(bases.name, bases.created, excluded.updated), bases.checksum) RETURNING key",
        checksum::BASES.intact("bases")
    ))?;
    Ok(statement.query_row((name, now), |row| row.get(0))?)
}

/// Passes a value with its type and length to a hash function, so that different rows never hash the same bytes.
pub(super) fn hash_value(value: ValueRef<'_>, mut update: impl FnMut(&[u8])) {
    let mut hash = |kind: u8, bytes: &[u8]| {
        update(&[kind]);
        update(&(bytes.len() as u64).to_le_bytes());
        update(bytes);
    };
    match value {
        ValueRef::Null => hash(0, &[]),
        ValueRef::Integer(number) => hash(1, &number.to_le_bytes()),
        ValueRef::Real(number) => hash(2, &number.to_le_bytes()),
        ValueRef::Text(text) => hash(3, text),
        ValueRef::Blob(blob) => hash(4, blob),
    }
}

/// Milliseconds since 1970.
pub(super) fn now() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// A count that fits its column.
pub(super) fn to_u32(number: usize, of: impl Display) -> Result<u32, Error> {
    u32::try_from(number).map_err(|_| Error::Internal(format!("too many {of}")))
}

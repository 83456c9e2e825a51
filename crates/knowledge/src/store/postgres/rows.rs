//! Conversion between rows and values, and hashes that columns store in place of strings.

use std::borrow::Cow;

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;

use super::session::Session;
use crate::document::{BaseName, DocumentId, DocumentRecord, Origin, Status};
use crate::store::{Error, ProcessingStatus};
use crate::task::TaskKind;

/// Enums are stored as words, so that the tables are readable.
pub(super) trait StoredEnum: Sized + Copy + 'static {
    const NAMES: &'static [(Self, &'static str)];

    fn stored_name(self) -> &'static str
    where
        Self: PartialEq,
    {
        Self::NAMES.iter().find(|(value, _)| *value == self).map_or("", |(_, word)| word)
    }

    fn parse_name(word: &str) -> Result<Self, Error> {
        Self::NAMES
            .iter()
            .find(|(_, known)| *known == word)
            .map(|(value, _)| *value)
            .ok_or_else(|| Error::unreadable(word))
    }
}

impl StoredEnum for Status {
    const NAMES: &'static [(Status, &'static str)] = &[(Status::Completed, "completed"), (Status::Partial, "partial")];
}

impl StoredEnum for Origin {
    const NAMES: &'static [(Origin, &'static str)] =
        &[(Origin::Added, "added"), (Origin::Watched, "watched"), (Origin::Uploaded, "uploaded")];
}

impl StoredEnum for TaskKind {
    const NAMES: &'static [(TaskKind, &'static str)] = &[(TaskKind::Add, "add"), (TaskKind::Import, "import")];
}

impl StoredEnum for ProcessingStatus {
    const NAMES: &'static [(ProcessingStatus, &'static str)] = &[
        (ProcessingStatus::Pending, "pending"),
        (ProcessingStatus::Processing, "processing"),
        (ProcessingStatus::Completed, "completed"),
        (ProcessingStatus::Partial, "partial"),
        (ProcessingStatus::Failed, "failed"),
    ];
}

/// Reads a column.
pub(super) fn get<'r, T: FromSql<'r>>(row: &'r Row, column: usize) -> Result<T, Error> {
    row.try_get(column).map_err(|error| Error::Corrupt(error.to_string()))
}

/// Reads a non-negative 64-bit column.
pub(super) fn get_u64(row: &Row, column: usize) -> Result<u64, Error> {
    u64::try_from(get::<i64>(row, column)?).map_err(|_| Error::unreadable("number"))
}

/// Reads a non-negative 32-bit column.
pub(super) fn get_u32(row: &Row, column: usize) -> Result<u32, Error> {
    u32::try_from(get::<i32>(row, column)?).map_err(|_| Error::unreadable("number"))
}

/// Converts a number for a 64-bit column.
pub(super) fn to_i64(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Converts a number for a 32-bit column.
pub(super) fn to_i32(number: usize) -> Result<i32, Error> {
    i32::try_from(number).map_err(|_| Error::Internal("too many items".to_owned()))
}

/// Reads an enum column.
pub(super) fn get_enum<T: StoredEnum>(row: &Row, column: usize) -> Result<T, Error> {
    T::parse_name(get(row, column)?)
}

pub(super) fn get_base_name(row: &Row, column: usize) -> Result<BaseName, Error> {
    get::<&str>(row, column)?.parse().map_err(|_| Error::unreadable("name of a base"))
}

/// Reads a text column with JSON.
pub(super) fn get_json<T: serde::de::DeserializeOwned>(row: &Row, column: usize) -> Result<T, Error> {
    serde_json::from_str(get(row, column)?).map_err(|error| Error::Corrupt(error.to_string()))
}

/// Serializes a value to JSON.
pub(super) fn to_json(value: &impl serde::Serialize) -> Result<String, Error> {
    serde_json::to_string(value).map_err(|error| Error::Internal(error.to_string()))
}

/// Replaces NUL, which PostgreSQL text cannot contain.
pub(super) fn without_nul(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { Cow::Owned(text.replace('\0', "\u{fffd}")) } else { Cow::Borrowed(text) }
}

/// Facets as stored in a column: one hash per key and value, because the strings may be longer than an index entry.
pub(super) fn facet_hashes(facets: &[corbie_index::Facet]) -> Vec<i64> {
    let mut numbers: Vec<i64> = facets.iter().map(|facet| facet_hash(&facet.key, &facet.value)).collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

pub(super) fn facet_hash(key: &str, value: &str) -> i64 {
    let mut hash = Sha256::new();
    hash.update((key.len() as u64).to_le_bytes());
    hash.update(key);
    hash.update(value);
    hash_prefix(&hash.finalize())
}

/// The first eight bytes of a hash as a number.
pub(super) fn hash_prefix(hash: &[u8]) -> i64 {
    hash.first_chunk().map_or(0, |bytes| i64::from_le_bytes(*bytes))
}

/// Columns for [`read_document`], from `documents AS d`, `bases AS b` and `models AS m`.
pub(super) const DOCUMENT_COLUMNS: &str = "d.key, d.id, b.name, d.filename, d.path, d.origin, d.title, d.format, d.size_bytes, d.sha256, \
     d.date_added, d.updated, d.status, d.method, d.metadata, m.name, d.page_count, d.chunk_count, d.vector_count, d.warning, \
     d.writing";

/// The FROM clause for these columns.
pub(super) const DOCUMENT_TABLES: &str =
    "documents AS d JOIN bases AS b ON b.key = d.base JOIN models AS m ON m.key = d.model";

/// Reads a document and its content version.
pub(super) fn read_document(row: &Row) -> Result<(DocumentRecord, i64), Error> {
    let sha256: &[u8] = get(row, 9)?;
    let document = DocumentRecord {
        key: get_u64(row, 0)?,
        id: DocumentId(get(row, 1)?),
        base: get_base_name(row, 2)?,
        filename: get(row, 3)?,
        path: get(row, 4)?,
        origin: get_enum(row, 5)?,
        title: get(row, 6)?,
        format: get(row, 7)?,
        size_bytes: get_u64(row, 8)?,
        sha256: sha256.try_into().map_err(|_| Error::unreadable("sha256"))?,
        date_added: get(row, 10)?,
        updated: get(row, 11)?,
        status: get_enum(row, 12)?,
        method: get(row, 13)?,
        metadata: get_metadata(row, 14)?,
        model: get(row, 15)?,
        page_count: get_u32(row, 16)?,
        chunk_count: get_u32(row, 17)?,
        vector_count: get_u32(row, 18)?,
        warning: get(row, 19)?,
    };
    Ok((document, get(row, 20)?))
}

pub(super) fn get_metadata(row: &Row, column: usize) -> Result<Map<String, Value>, Error> {
    get_json(row, column)
}

/// The key of a base, if it exists.
pub(super) async fn base_key(session: &Session, name: &BaseName) -> Result<Option<i64>, Error> {
    let row = session.opt_row("SELECT key FROM bases WHERE name = $1", &[&name.as_str()]).await?;
    row.map(|row| get(&row, 0)).transpose()
}

/// The key of a base; creates it if it does not exist.
pub(super) async fn get_or_create_base(session: &Session, name: &BaseName) -> Result<i64, Error> {
    if let Some(key) = base_key(session, name).await? {
        return Ok(key);
    }
    let make = "INSERT INTO bases (name, created) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING";
    session.execute(make, &[&name.as_str(), &now()]).await?;
    base_key(session, name).await?.ok_or_else(|| Error::Internal(format!("knowledge base `{name}` was not created")))
}

/// Milliseconds since 1970.
pub(super) fn now() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// Estimated number of rows of a partitioned table, as of its last ANALYZE or VACUUM.
pub(super) async fn estimated_row_count(session: &Session, table: &str) -> Result<u64, Error> {
    let sql = format!(
        "SELECT coalesce(sum(greatest(c.reltuples, 0)), 0)::bigint FROM pg_inherits AS i \
         JOIN pg_class AS c ON c.oid = i.inhrelid WHERE i.inhparent = 'corbie.{table}'::regclass"
    );
    get_u64(&session.row(&sql, &[]).await?, 0)
}

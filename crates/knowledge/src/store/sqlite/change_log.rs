//! Change log, in commit order, for consumers with derived data such as indexes.

use rusqlite::{Connection, params};

use super::{Store, WriterContext};
use crate::document::BaseName;
use crate::store::Error;

/// One committed write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeRecord {
    pub sequence: u64,
    pub base: BaseName,
    /// None if a whole base was cleared.
    pub document: Option<u64>,
    pub kind: ChangeKind,
}

/// Kind of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ChangeKind {
    /// The document was inserted, or its chunks were replaced because its text or name changed.
    Put,
    Removed,
    /// The metadata has changed; the chunks have not.
    MetadataUpdated,
    /// All documents of the base were removed.
    Cleared,
}

/// The changes since a sequence number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangesSince {
    /// In order; empty if there were none.
    Available(Vec<ChangeRecord>),
    /// The changes are no longer retained; the consumer must rebuild.
    TooOld,
}

impl Store {
    /// Sequence number of the last change; 0 if there is none.
    pub async fn sequence(&self) -> Result<u64, Error> {
        self.read(|transaction| last_sequence(transaction)).await
    }

    /// The changes after this sequence number, in this [`history`](Store::history).
    pub async fn changes_since(&self, sequence: u64) -> Result<ChangesSince, Error> {
        self.read(move |transaction| read_since(transaction, sequence)).await
    }

    /// Sequence number of the last change by any process. Takes a few microseconds if there was no change since the
    /// last call, so it may be called before every search.
    pub fn last_change(&self) -> Result<u64, Error> {
        self.change_detector().poll()
    }
}

/// A connection that detects commits of other connections.
#[derive(Debug)]
pub(super) struct ChangeDetector {
    connection: Connection,
    /// SQLite's `data_version`, which differs after every commit of another connection.
    data_version: i64,
    /// Sequence number of the last detected change.
    last_sequence: u64,
}

impl ChangeDetector {
    pub(super) fn new(connection: Connection) -> Result<ChangeDetector, Error> {
        let mark = data_version(&connection)?;
        let seen = last_sequence(&connection)?;
        Ok(ChangeDetector { connection, data_version: mark, last_sequence: seen })
    }

    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }

    fn poll(&mut self) -> Result<u64, Error> {
        let mark = data_version(&self.connection)?;
        if mark != self.data_version {
            (self.data_version, self.last_sequence) = (mark, last_sequence(&self.connection)?);
        }
        Ok(self.last_sequence)
    }
}

/// Appends a change in the transaction that makes it, and prunes old changes.
pub(super) fn append(
    connection: &Connection,
    pen: &WriterContext,
    base: i64,
    document: Option<u64>,
    kind: ChangeKind,
) -> Result<u64, Error> {
    let mut insert =
        connection.prepare_cached("INSERT INTO changes (base, document, kind, writer) VALUES (?1, ?2, ?3, ?4)")?;
    let sequence = insert.insert(params![base, document, kind, pen.instance])?;
    let mut prune = connection.prepare_cached("DELETE FROM changes WHERE sequence <= ?1 - ?2")?;
    prune.execute((sequence, pen.max_changes))?;
    u64::try_from(sequence).map_err(|_| Error::unreadable("sequence"))
}

pub(super) fn last_sequence(connection: &Connection) -> Result<u64, Error> {
    let mut statement = connection.prepare_cached("SELECT ifnull(max(sequence), 0) FROM changes")?;
    Ok(statement.query_row([], |row| row.get(0))?)
}

fn read_since(connection: &Connection, sequence: u64) -> Result<ChangesSince, Error> {
    let (first, last): (Option<u64>, u64) = connection
        .prepare_cached("SELECT min(sequence), ifnull(max(sequence), 0) FROM changes")?
        .query_row([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    if sequence > last || first.is_some_and(|first| sequence + 1 < first) {
        return Ok(ChangesSince::TooOld);
    }
    let mut statement = connection.prepare_cached(
        "SELECT c.sequence, b.name, c.document, c.kind FROM changes AS c JOIN bases AS b ON b.key = c.base \
         WHERE c.sequence > ?1 ORDER BY c.sequence",
    )?;
    let rows = statement.query_map([sequence], |row| {
        Ok(ChangeRecord { sequence: row.get(0)?, base: row.get(1)?, document: row.get(2)?, kind: row.get(3)? })
    })?;
    Ok(ChangesSince::Available(rows.collect::<Result<_, _>>()?))
}

fn data_version(connection: &Connection) -> Result<i64, Error> {
    Ok(connection.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))?)
}

//! Change log, in commit order, for consumers with derived data such as indexes.

use rusqlite::{Connection, params};

use super::{Pen, Store};
use crate::knowledge::document::BaseName;
use crate::knowledge::store::Error;

/// One committed write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
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
    Described,
    /// All documents of the base were removed.
    Cleared,
}

/// The changes since a sequence number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Changes {
    /// In order; empty if there were none.
    Known(Vec<Change>),
    /// The changes are no longer retained; the consumer must rebuild.
    TooOld,
}

impl Store {
    /// Sequence number of the last change; 0 if there is none.
    pub async fn sequence(&self) -> Result<u64, Error> {
        self.read(|transaction| last(transaction)).await
    }

    /// The changes after this sequence number, in this [`history`](Store::history).
    pub async fn changes_since(&self, sequence: u64) -> Result<Changes, Error> {
        self.read(move |transaction| since(transaction, sequence)).await
    }

    /// Sequence number of the last change by any process. Takes a few microseconds if there was no change since the
    /// last call, so it may be called before every search.
    pub fn last_change(&self) -> Result<u64, Error> {
        self.watch().look()
    }
}

/// A connection that detects commits of other connections.
#[derive(Debug)]
pub(super) struct Watch {
    connection: Connection,
    /// SQLite's `data_version`, which differs after every commit of another connection.
    mark: i64,
    /// Sequence number of the last detected change.
    seen: u64,
}

impl Watch {
    pub(super) fn new(connection: Connection) -> Result<Watch, Error> {
        let mark = mark(&connection)?;
        let seen = last(&connection)?;
        Ok(Watch { connection, mark, seen })
    }

    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }

    fn look(&mut self) -> Result<u64, Error> {
        let mark = mark(&self.connection)?;
        if mark != self.mark {
            (self.mark, self.seen) = (mark, last(&self.connection)?);
        }
        Ok(self.seen)
    }
}

/// Appends a change in the transaction that makes it, and prunes old changes.
pub(super) fn note(
    connection: &Connection,
    pen: &Pen,
    base: i64,
    document: Option<u64>,
    kind: ChangeKind,
) -> Result<u64, Error> {
    let mut insert =
        connection.prepare_cached("INSERT INTO changes (base, document, kind, writer) VALUES (?1, ?2, ?3, ?4)")?;
    let sequence = insert.insert(params![base, document, kind, pen.instance])?;
    let mut prune = connection.prepare_cached("DELETE FROM changes WHERE sequence <= ?1 - ?2")?;
    prune.execute((sequence, pen.changes))?;
    u64::try_from(sequence).map_err(|_| Error::unreadable("sequence"))
}

pub(super) fn last(connection: &Connection) -> Result<u64, Error> {
    let mut statement = connection.prepare_cached("SELECT ifnull(max(sequence), 0) FROM changes")?;
    Ok(statement.query_row([], |row| row.get(0))?)
}

fn since(connection: &Connection, sequence: u64) -> Result<Changes, Error> {
    let (first, last): (Option<u64>, u64) = connection
        .prepare_cached("SELECT min(sequence), ifnull(max(sequence), 0) FROM changes")?
        .query_row([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    if sequence > last || first.is_some_and(|first| sequence + 1 < first) {
        return Ok(Changes::TooOld);
    }
    let mut statement = connection.prepare_cached(
        "SELECT c.sequence, b.name, c.document, c.kind FROM changes AS c JOIN bases AS b ON b.key = c.base \
         WHERE c.sequence > ?1 ORDER BY c.sequence",
    )?;
    let rows = statement.query_map([sequence], |row| {
        Ok(Change { sequence: row.get(0)?, base: row.get(1)?, document: row.get(2)?, kind: row.get(3)? })
    })?;
    Ok(Changes::Known(rows.collect::<Result<_, _>>()?))
}

fn mark(connection: &Connection) -> Result<i64, Error> {
    Ok(connection.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))?)
}

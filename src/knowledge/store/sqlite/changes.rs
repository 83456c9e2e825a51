//! What was written, in order, for those who keep something derived from it.

use rusqlite::{Connection, params};

use super::{Pen, Store};
use crate::knowledge::document::BaseName;
use crate::knowledge::store::Error;

/// One committed write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub sequence: u64,
    pub base: BaseName,
    /// None where a whole base was cleared.
    pub document: Option<u64>,
    pub kind: ChangeKind,
}

/// What happened to a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ChangeKind {
    /// It is there, with other chunks than before if it was: other text, or another name.
    Put,
    Removed,
    /// What is said about it has changed; its chunks have not.
    Described,
    /// All documents of the base are gone.
    Cleared,
}

/// What was written since.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Changes {
    /// In order; empty if nothing was.
    Known(Vec<Change>),
    /// So long ago that it is not known any more; begin anew.
    TooOld,
}

impl Store {
    /// The number of the last change; 0 where there was none.
    pub async fn sequence(&self) -> Result<u64, Error> {
        self.read(|transaction| last(transaction)).await
    }

    /// What was written after the change with this number, in this [`history`](Store::history).
    pub async fn changes_since(&self, sequence: u64) -> Result<Changes, Error> {
        self.read(move |transaction| since(transaction, sequence)).await
    }

    /// The number of the last change, whoever made it. A few microseconds if there was none since the last call, so it
    /// may be asked before every search.
    pub fn last_change(&self) -> Result<u64, Error> {
        self.watch().look()
    }
}

/// A connection that notices commits of others.
#[derive(Debug)]
pub(super) struct Watch {
    connection: Connection,
    /// SQLite's own mark, which is another one after every commit of another connection.
    mark: i64,
    /// The last change that was seen.
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

/// Notes a change in the transaction that makes it, and forgets those before the last ones.
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

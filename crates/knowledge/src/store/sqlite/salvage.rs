//! Copies all readable rows out of a damaged file.
//!
//! Each table is read from the start until a damaged page, then backwards from the end. The gap is queried key by key,
//! so a damaged page only costs the rows on it.

use rusqlite::types::Value;
use rusqlite::{Connection, Statement, params_from_iter};

use crate::store::Error;

/// The tables with their keys, parents first.
const TABLES: [(&str, &str); 11] = [
    ("bases", "key"),
    ("documents", "key"),
    ("pages", "rowid"),
    ("chunks", "key"),
    ("vectors", "chunk"),
    ("copies", "rowid"),
    ("changes", "sequence"),
    ("tasks", "key"),
    ("imported", "rowid"),
    ("watched", "key"),
    ("watched_folders", "rowid"),
];

/// Maximum number of keys to query one by one. More would take hours, and a gap of that size is not a damaged page.
const MAX_PROBED_KEYS: i64 = 10_000_000;

/// Copies all readable rows.
pub(super) fn salvage(source: &Connection, target: &Connection) -> Result<(), Error> {
    for (table, key) in TABLES {
        // A table that is completely unreadable is skipped; the other tables may be readable.
        if let Ok(columns) = columns(source, table) {
            TableSalvage { source, target, table, key, columns }.copy()?;
            carry_over_sequence(source, target, table)?;
        }
    }
    Ok(())
}

/// Carries over the key sequence, so that the key of a lost row is never reused.
fn carry_over_sequence(source: &Connection, target: &Connection, table: &str) -> Result<(), Error> {
    let last = "SELECT ifnull(max(seq), 0) FROM sqlite_sequence WHERE name = ?1";
    let Ok(before) = source.query_row(last, [table], |row| row.get::<_, i64>(0)) else { return Ok(()) };
    let now: i64 = target.query_row(last, [table], |row| row.get(0))?;
    if before > now {
        target.execute("DELETE FROM sqlite_sequence WHERE name = ?1", [table])?;
        target.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (?1, ?2)", (table, before))?;
    }
    Ok(())
}

struct TableSalvage<'a> {
    source: &'a Connection,
    target: &'a Connection,
    table: &'static str,
    key: &'static str,
    columns: Vec<String>,
}

impl TableSalvage<'_> {
    fn copy(&self) -> Result<(), Error> {
        let names = self.columns.join(", ");
        let places = vec!["?"; self.columns.len()].join(", ");
        let sql = format!("INSERT OR IGNORE INTO {} ({names}) VALUES ({places})", self.table);
        let mut insert = self.target.prepare(&sql)?;
        let Err(first) = self.copy_until_damage("ASC", &mut insert)? else { return Ok(()) };
        let Err(last) = self.copy_until_damage("DESC", &mut insert)? else { return Ok(()) };
        let (Some(first), Some(last)) = (first, last) else { return Ok(()) };
        let sql = format!("SELECT {} FROM {} NOT INDEXED WHERE {} = ?1", self.selected(), self.table, self.key);
        let Ok(mut one) = self.source.prepare(&sql) else { return Ok(()) };
        for key in (first + 1..last).take(MAX_PROBED_KEYS as usize) {
            let row = one.query_row([key], |row| values(row, self.columns.len()));
            if let Ok((_, row)) = row {
                insert_row(&mut insert, row)?;
            }
        }
        Ok(())
    }

    /// Copies rows until one is unreadable. Returns the key before that row, if any.
    fn copy_until_damage(&self, order: &str, insert: &mut Statement<'_>) -> Result<Result<(), Option<i64>>, Error> {
        let sql = format!("SELECT {} FROM {} NOT INDEXED ORDER BY {} {order}", self.selected(), self.table, self.key);
        let mut last = None;
        let Ok(mut statement) = self.source.prepare(&sql) else { return Ok(Err(None)) };
        let Ok(mut rows) = statement.query([]) else { return Ok(Err(None)) };
        loop {
            match rows.next() {
                Ok(None) => return Ok(Ok(())),
                Ok(Some(row)) => match values(row, self.columns.len()) {
                    Ok((key, row)) => {
                        insert_row(insert, row)?;
                        last = Some(key);
                    }
                    Err(_) => return Ok(Err(last)),
                },
                Err(_) => return Ok(Err(last)),
            }
        }
    }

    /// The key and all columns.
    fn selected(&self) -> String {
        format!("{}, {}", self.key, self.columns.join(", "))
    }
}

/// The columns of a table in the source file, which may have an older schema.
fn columns(source: &Connection, table: &str) -> Result<Vec<String>, Error> {
    let mut statement = source.prepare("SELECT name FROM pragma_table_info(?1)")?;
    let names = statement.query_map([table], |row| row.get(0))?.collect::<Result<Vec<String>, _>>()?;
    if names.is_empty() { Err(Error::unreadable(table)) } else { Ok(names) }
}

fn values(row: &rusqlite::Row<'_>, count: usize) -> rusqlite::Result<(i64, Vec<Value>)> {
    let values = (1..=count).map(|column| row.get(column)).collect::<rusqlite::Result<_>>()?;
    Ok((row.get(0)?, values))
}

/// A row that violates a constraint is damaged and is skipped; errors such as a full disk are returned.
fn insert_row(insert: &mut Statement<'_>, row: Vec<Value>) -> Result<(), Error> {
    match insert.execute(params_from_iter(row)).map_err(Error::from) {
        Ok(_) | Err(Error::Internal(_)) => Ok(()),
        Err(error) => Err(error),
    }
}

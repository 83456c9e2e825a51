//! Mends a store that is damaged.
//!
//! Where only rows do not agree, in its place: what belongs to nothing is removed, counts are corrected. A file whose pages
//! or indexes are damaged is never written to: it is set aside, and everything that can be read is copied into a new one,
//! which gets new indexes by that.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, Transaction};

use super::check::{self, MISCOUNTED};
use super::files::{self, Files};
use super::loss::{self, Loss, Paths, SHORT};
use super::{Store, backup, connection, salvage, schema, writer};
use crate::knowledge::store::Error;

/// What a repair has done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Repaired {
    /// What was wrong; nothing if the store was sound.
    pub problems: Vec<String>,
    /// Where the damaged file is now, if it had to be replaced.
    pub set_aside: Option<PathBuf>,
    /// Documents that are there afterwards.
    pub documents: u64,
    pub chunks: u64,
    /// Documents that are not what they were, or are gone.
    pub loss: Loss,
    /// Nothing of the file could be read, so that nobody knows what is lost. What is there now is empty.
    pub unreadable: bool,
}

/// Said of documents that have lost something.
pub(super) const LOST: &str = "Some of it was lost when the store was damaged; add it again";

const PATIENCE: Duration = Duration::from_secs(10);

impl Store {
    /// Repairs the store of a folder, which nobody may have open meanwhile. A file that has to be replaced is kept.
    pub fn repair(folder: &Path) -> Result<Repaired, Error> {
        let files = Files::of(folder);
        files.create_folders()?;
        let _alone = files.alone()?;
        files.make_database()?;
        let problems = match examine(&files) {
            Ok(Found { problems, .. }) if problems.is_empty() => return report(&files, Repaired::default()),
            Ok(Found { problems, well_formed: true }) => {
                let loss = mend(&files)?;
                return report(&files, Repaired { problems, loss, ..Repaired::default() });
            }
            Ok(Found { problems, .. }) => problems,
            Err(error @ Error::Corrupt(_)) => vec![error.to_string()],
            Err(error) => return Err(error),
        };
        let new = backup::unused(&files, "repairing");
        files::create_private(&new)?;
        let replaced = rebuild(&files, &new)
            .and_then(|rebuilt| Ok((rebuilt, backup::replace(&files, &new, "damaged")?)))
            .inspect_err(|_| backup::discard(&new));
        let (Rebuilt { loss, unreadable }, set_aside) = replaced?;
        report(&files, Repaired { problems, loss, unreadable, set_aside, ..Repaired::default() })
    }
}

/// What is wrong with a store that can be opened.
struct Found {
    problems: Vec<String>,
    /// Only rows do not agree.
    well_formed: bool,
}

/// What a damaged file gave.
struct Rebuilt {
    loss: Loss,
    /// Nothing.
    unreadable: bool,
}

fn examine(files: &Files) -> Result<Found, Error> {
    let mut connection = connection::writer(&files.database, PATIENCE)?;
    schema::migrate(&mut connection)?;
    let problems = check::check(&connection).problems;
    Ok(Found { well_formed: check::is_well_formed(&connection), problems })
}

/// Mends a store in its place. Tells which documents have lost something.
fn mend(files: &Files) -> Result<Loss, Error> {
    let mut connection = connection::writer(&files.database, PATIENCE)?;
    connection.pragma_update(None, "foreign_keys", "OFF")?;
    writer::transact(&mut connection, |transaction| mend_rows(transaction, &Paths::new()))
}

/// Removes what belongs to nothing, and makes documents say what they have. `paths` are those of documents there were.
fn mend_rows(transaction: &Transaction<'_>, paths: &Paths) -> Result<Loss, Error> {
    let lost = loss::lost(transaction, paths)?;
    transaction.execute_batch(
        "DELETE FROM documents WHERE base NOT IN (SELECT key FROM bases);
         DELETE FROM tasks WHERE base NOT IN (SELECT key FROM bases);
         DELETE FROM chunks WHERE document NOT IN (SELECT key FROM documents);
         DELETE FROM pages WHERE document NOT IN (SELECT key FROM documents);
         DELETE FROM vectors WHERE chunk NOT IN (SELECT key FROM chunks);
         DELETE FROM watched WHERE base NOT IN (SELECT key FROM bases);
         DELETE FROM imported WHERE task NOT IN (SELECT key FROM tasks);
         DELETE FROM copies WHERE document NOT IN (SELECT key FROM documents);
         -- Documents that were lost come back where their files are followed; those a user removed are not named any more.
         UPDATE watched SET state = 'waiting', document = NULL
             WHERE state = 'settled' AND document NOT IN (SELECT id FROM documents);",
    )?;
    drop_unreadable(transaction)?;
    let incomplete = loss::incomplete(transaction)?;
    let sql = format!(
        "UPDATE documents SET page_count = m.pages, chunk_count = m.chunks, vector_count = m.vectors, \
         status = iif({SHORT}, 'partial', status), warning = iif({SHORT}, ?1, warning) \
         FROM ({MISCOUNTED}) AS m WHERE documents.key = m.key"
    );
    transaction.execute(&sql, [LOST])?;
    Ok(Loss { incomplete, ..lost })
}

/// Vectors that cannot be read are removed; their chunks are still found by their words.
fn drop_unreadable(transaction: &Transaction<'_>) -> Result<(), Error> {
    let mut statement = transaction.prepare("SELECT chunk, dimensions, windows, codes FROM vectors")?;
    let mut rows = statement.query([])?;
    let mut unreadable = Vec::new();
    while let Some(row) = rows.next()? {
        let codes = row.get_ref(3)?.as_blob().unwrap_or_default();
        if super::vectors::decode(row.get(1)?, row.get(2)?, codes).is_none() {
            unreadable.push(row.get::<_, i64>(0)?);
        }
    }
    for chunk in unreadable {
        transaction.execute("DELETE FROM vectors WHERE chunk = ?1", [chunk])?;
    }
    Ok(())
}

/// Copies what can be read into a new file. Tells which documents have lost something.
fn rebuild(files: &Files, new: &Path) -> Result<Rebuilt, Error> {
    let mut target = connection::writer(new, PATIENCE)?;
    schema::migrate(&mut target)?;
    target.pragma_update(None, "foreign_keys", "OFF")?;
    let rebuilt = writer::transact(&mut target, |transaction| {
        // A file of which not even the beginning can be read has nothing to give.
        let (mut paths, mut unreadable) = (Paths::new(), true);
        if let Ok(source) = connection::salvager(&files.database, PATIENCE) {
            salvage::salvage(&source, transaction)?;
            paths = loss::indexed(&source);
            unreadable = !has_tables(&source);
        }
        Ok(Rebuilt { loss: mend_rows(transaction, &paths)?, unreadable })
    })?;
    target.pragma_update_and_check(None, "journal_mode", "DELETE", |_| Ok(()))?;
    target.close().map_err(|(_, error)| Error::from(error))?;
    Ok(rebuilt)
}

/// Whether the list of tables can be read, without which nothing is found in a file.
fn has_tables(source: &Connection) -> bool {
    let count = source.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get::<_, i64>(0));
    count.is_ok_and(|tables| tables > 0)
}

fn report(files: &Files, repaired: Repaired) -> Result<Repaired, Error> {
    let connection: Connection = connection::writer(&files.database, PATIENCE)?;
    let found = check::check(&connection);
    match found.problems.into_iter().next() {
        Some(problem) => Err(Error::Corrupt(problem)),
        None => Ok(Repaired { documents: found.documents, chunks: found.chunks, ..repaired }),
    }
}

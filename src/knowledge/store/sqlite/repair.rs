//! Repair of a damaged store.
//!
//! If only rows are inconsistent, the file is copied and repaired in place: orphaned rows are removed and counts corrected.
//! A file with damaged pages or indexes is never written to. It is preserved under another name, and all readable data is
//! copied into a new file, which also rebuilds the indexes. Changes that were lost with a [damaged log](super::damaged_log)
//! are reported by document, as far as the copy of the log shows them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, Transaction};

use super::check::{self, MISCOUNTED};
use super::damaged_log::{self, DamagedLog, LogLoss};
use super::files::{self, Files};
use super::loss::{self, Loss, LostDocument, Paths, SHORT};
use super::wal::Damage;
use super::{Store, backup, checksum, connection, index_binding, migration_copy, rows, salvage, schema, writer};
use crate::knowledge::store::{Error, MigrationCopy};

/// Result of a repair.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Repaired {
    /// The problems found; empty if the store was consistent.
    pub problems: Vec<String>,
    /// New path of the damaged file, if it had to be replaced.
    pub set_aside: Option<PathBuf>,
    /// Copy of the file from before the repair, if rows were removed or corrected in place.
    pub copy: Option<PathBuf>,
    /// Write-ahead logs that were damaged since the last repair.
    pub logs: Vec<LogLoss>,
    /// Number of documents after the repair.
    pub documents: u64,
    pub chunks: u64,
    /// Documents that were damaged or lost.
    pub loss: Loss,
    /// The file was completely unreadable, so the extent of the loss is unknown. The new store is empty.
    pub unreadable: bool,
}

/// Warning for documents that have lost data.
pub(super) const LOST: &str = "Some of it was lost when the store was damaged; add it again";

const PATIENCE: Duration = Duration::from_secs(10);

impl Store {
    /// Repairs the store of a folder. No process may have it open. A replaced file is preserved.
    pub fn repair(folder: &Path) -> Result<Repaired, Error> {
        let files = Files::of(folder);
        files.create_folders()?;
        let _alone = files.alone()?;
        // Before SQLite opens the file, which removes the log.
        let damage = damaged_log::preserve(&files)?;
        let logs = damaged_log::unreported(&files);
        files.make_database()?;
        let repaired = repair(&files, damage == Some(Damage::NoDatabase))?;
        report(&files, &logs, repaired)
    }
}

/// `is_emptied`: the database is empty although it had content.
fn repair(files: &Files, is_emptied: bool) -> Result<Repaired, Error> {
    let problems = match examine(files) {
        Ok(Found { .. }) if is_emptied => {
            index_binding::permit_any(&connection::writer(&files.database, PATIENCE)?)?;
            return Ok(Repaired { unreadable: true, ..Repaired::default() });
        }
        Ok(Found { problems, .. }) if problems.is_empty() => return Ok(Repaired::default()),
        Ok(Found { problems, well_formed: true }) => {
            let (loss, copy) = mend(files)?;
            return Ok(Repaired { problems, loss, copy: Some(copy), ..Repaired::default() });
        }
        Ok(Found { problems, .. }) => problems,
        Err(error @ Error::Corrupt(_)) => vec![error.to_string()],
        Err(error) => return Err(error),
    };
    let new = backup::unused(files, "repairing");
    drop(files::create_private(&new)?);
    let replaced = rebuild(files, &new)
        .and_then(|rebuilt| Ok((rebuilt, backup::replace(files, &new, "damaged")?)))
        .inspect_err(|_| backup::discard(&new));
    let (Rebuilt { loss, unreadable }, set_aside) = replaced?;
    Ok(Repaired { problems, loss, unreadable, set_aside, ..Repaired::default() })
}

/// Problems of a store that can be opened.
struct Found {
    problems: Vec<String>,
    /// Only rows are inconsistent.
    well_formed: bool,
}

/// Result of salvaging a damaged file.
struct Rebuilt {
    loss: Loss,
    /// The file was unreadable.
    unreadable: bool,
}

fn examine(files: &Files) -> Result<Found, Error> {
    let mut connection = connection::writer(&files.database, PATIENCE)?;
    migration_copy::keep(&connection, files, MigrationCopy::Auto)?;
    schema::migrate(&mut connection)?;
    let problems = check::check(&connection).problems;
    Ok(Found { well_formed: check::is_well_formed(&connection), problems })
}

/// Repairs a store in place. Returns the documents that have lost data, and a copy of the file from before.
fn mend(files: &Files) -> Result<(Loss, PathBuf), Error> {
    let mut connection = connection::writer(&files.database, PATIENCE)?;
    let copy = backup::dated(files, "before-repair");
    backup::write(&connection, &copy)?;
    files::sync(&files.folder)?;
    connection.pragma_update(None, "foreign_keys", "OFF")?;
    let loss = writer::transact(&mut connection, |transaction| {
        // Indexes may hold vectors of rows that the repair removes.
        schema::renew_history(transaction)?;
        mend_rows(transaction, &Paths::new())
    })?;
    Ok((loss, copy))
}

/// Removes orphaned rows and corrects the counts of documents. `paths` are the paths of all documents that existed.
fn mend_rows(transaction: &Transaction<'_>, paths: &Paths) -> Result<Loss, Error> {
    let mut lost = loss::lost(transaction, paths)?;
    let damaged = drop_damaged(transaction, &mut lost)?;
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
    let incomplete = loss::incomplete(transaction, &damaged)?;
    let sql = format!(
        "UPDATE documents SET page_count = m.pages, chunk_count = m.chunks, vector_count = m.vectors, \
         status = iif({SHORT}, 'partial', status), warning = iif({SHORT}, ?1, warning) \
         FROM ({MISCOUNTED}) AS m WHERE documents.key = m.key"
    );
    transaction.execute(&sql, [LOST])?;
    let mut mark = transaction.prepare("UPDATE documents SET status = 'partial', warning = ?2 WHERE key = ?1")?;
    for key in damaged {
        mark.execute((key, LOST))?;
    }
    checksum::record_all(transaction)?;
    Ok(Loss { incomplete, ..lost })
}

/// Removes pages, chunks and vectors that do not match their checksums, and documents with an unreadable row. Returns the
/// keys of documents with a damaged row that can still be read.
fn drop_damaged(transaction: &Transaction<'_>, loss: &mut Loss) -> Result<Vec<i64>, Error> {
    for table in [checksum::PAGES, checksum::CHUNKS, checksum::VECTORS] {
        let mut delete = transaction.prepare(&format!("DELETE FROM {} WHERE rowid = ?1", table.name))?;
        for damaged in table.damaged(transaction, i64::MAX, i64::MAX)? {
            delete.execute([damaged.rowid])?;
        }
    }
    let columns = rows::DOCUMENT;
    let mut read = transaction
        .prepare(&format!("SELECT {columns} FROM documents AS d JOIN bases AS b ON b.key = d.base WHERE d.key = ?1"))?;
    let mut readable = Vec::new();
    for checksum::Damaged { rowid, label } in checksum::DOCUMENTS.damaged(transaction, i64::MAX, i64::MAX)? {
        match read.query_row([rowid], rows::document) {
            Ok(_) => readable.push(rowid),
            Err(_) => {
                transaction.execute("DELETE FROM documents WHERE key = ?1", [rowid])?;
                loss.lost.push(LostDocument { filename: label.unwrap_or_default(), path: None });
            }
        }
    }
    Ok(readable)
}

/// Removes vectors that cannot be decoded; the lexical search still finds their chunks.
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

/// Copies all readable data into a new file. Returns the documents that have lost data.
fn rebuild(files: &Files, new: &Path) -> Result<Rebuilt, Error> {
    let mut target = connection::writer(new, PATIENCE)?;
    schema::migrate(&mut target)?;
    target.pragma_update(None, "foreign_keys", "OFF")?;
    let rebuilt = writer::transact(&mut target, |transaction| {
        // If even the file header is unreadable, no data can be salvaged.
        let (mut paths, mut unreadable) = (Paths::new(), true);
        if let Ok(source) = connection::salvager(&files.database, PATIENCE) {
            salvage::salvage(&source, transaction)?;
            paths = loss::indexed(&source);
            unreadable = !has_tables(&source);
            match schema::store_id(&source) {
                Ok(id) => schema::set_store_id(transaction, &id)?,
                Err(_) => index_binding::permit_any(transaction)?,
            }
        } else {
            index_binding::permit_any(transaction)?;
        }
        Ok(Rebuilt { loss: mend_rows(transaction, &paths)?, unreadable })
    })?;
    target.pragma_update_and_check(None, "journal_mode", "DELETE", |_| Ok(()))?;
    target.close().map_err(|(_, error)| Error::from(error))?;
    Ok(rebuilt)
}

/// Whether the schema table is readable; without it no data can be found in the file.
fn has_tables(source: &Connection) -> bool {
    let count = source.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get::<_, i64>(0));
    count.is_ok_and(|tables| tables > 0)
}

/// Checks the repaired file, and adds the changes that were lost with damaged logs.
fn report(files: &Files, logs: &[DamagedLog], mut repaired: Repaired) -> Result<Repaired, Error> {
    let connection = connection::writer(&files.database, PATIENCE)?;
    let found = check::check(&connection);
    if let Some(problem) = found.problems.into_iter().next() {
        return Err(Error::Corrupt(problem));
    }
    damaged_log::renew_history(&connection, logs)?;
    repaired.problems.splice(0..0, logs.iter().map(ToString::to_string));
    repaired.logs = damaged_log::losses(files, &connection, logs, &mut repaired.loss.lost)?;
    damaged_log::acknowledge(files)?;
    Ok(Repaired { documents: found.documents, chunks: found.chunks, ..repaired })
}

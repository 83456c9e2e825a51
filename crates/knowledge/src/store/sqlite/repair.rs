//! Repair of a damaged store.
//!
//! If only rows are inconsistent, the file is copied and repaired in place: orphaned rows are removed and counts corrected.
//! A file with damaged pages or indexes is never written to. It is preserved under another name, and all readable data is
//! copied into a new file, which also rebuilds the indexes. Changes that were lost with a [damaged log](super::damaged_log)
//! are reported by document, as far as the copy of the log shows them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, Transaction};

use super::check::{self, MISCOUNTED_DOCUMENTS};
use super::damage_report::{self, DamageReport, INCOMPLETE_CONDITION, LostDocument, Paths};
use super::damaged_log::{self, DamagedLog, LogLoss};
use super::files::{self, StoreFiles};
use super::wal::Damage;
use super::{Store, backup, checksum, connection, index_binding, migration_copy, rows, salvage, schema, writer};
use crate::store::{Error, MigrationCopy};

/// Result of a repair.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RepairReport {
    /// The problems found; empty if the store was consistent.
    pub problems: Vec<String>,
    /// New path of the damaged file, if it had to be replaced.
    pub preserved_as: Option<PathBuf>,
    /// Copy of the file from before the repair, if rows were removed or corrected in place.
    pub copy: Option<PathBuf>,
    /// Write-ahead logs that were damaged since the last repair.
    pub logs: Vec<LogLoss>,
    /// Number of documents after the repair.
    pub documents: u64,
    pub chunks: u64,
    /// Documents that were damaged or lost.
    pub damage: DamageReport,
    /// The file was completely unreadable, so the extent of the loss is unknown. The new store is empty.
    pub unreadable: bool,
}

/// Warning for documents that have lost data.
pub(super) const LOST_WARNING: &str = "Parts of the document were lost in a repair; add it again";

const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

impl Store {
    /// Repairs the store of a folder. No process may have it open. A replaced file is preserved.
    pub fn repair(folder: &Path) -> Result<RepairReport, Error> {
        let files = StoreFiles::of(folder);
        files.create_folders()?;
        let _alone = files.lock_exclusive()?;
        // Before SQLite opens the file, which removes the log.
        let damage = damaged_log::preserve(&files)?;
        let logs = damaged_log::unreported(&files);
        files.create_database()?;
        let repaired = repair(&files, damage == Some(Damage::NoDatabase))?;
        finish_report(&files, &logs, repaired)
    }
}

/// `is_emptied`: the database is empty although it had content.
fn repair(files: &StoreFiles, is_emptied: bool) -> Result<RepairReport, Error> {
    let problems = match assess(files) {
        Ok(DamageAssessment { .. }) if is_emptied => {
            index_binding::permit_any(&connection::writer(&files.database, LOCK_TIMEOUT)?)?;
            return Ok(RepairReport { unreadable: true, ..RepairReport::default() });
        }
        Ok(DamageAssessment { problems, .. }) if problems.is_empty() => return Ok(RepairReport::default()),
        Ok(DamageAssessment { problems, well_formed: true }) => {
            let (loss, copy) = repair_in_place(files)?;
            return Ok(RepairReport { problems, damage: loss, copy: Some(copy), ..RepairReport::default() });
        }
        Ok(DamageAssessment { problems, .. }) => problems,
        Err(error @ Error::Corrupt(_)) => vec![error.to_string()],
        Err(error) => return Err(error),
    };
    let new = backup::unused_path(files, "repairing");
    drop(files::create_private(&new)?);
    let replaced = rebuild(files, &new)
        .and_then(|rebuilt| Ok((rebuilt, backup::replace(files, &new, "damaged")?)))
        .inspect_err(|_| backup::discard(&new));
    let (RebuildResult { damage: loss, unreadable }, set_aside) = replaced?;
    Ok(RepairReport { problems, damage: loss, unreadable, preserved_as: set_aside, ..RepairReport::default() })
}

/// Problems of a store that can be opened.
struct DamageAssessment {
    problems: Vec<String>,
    /// Only rows are inconsistent.
    well_formed: bool,
}

/// Result of salvaging a damaged file.
struct RebuildResult {
    damage: DamageReport,
    /// The file was unreadable.
    unreadable: bool,
}

fn assess(files: &StoreFiles) -> Result<DamageAssessment, Error> {
    let mut connection = connection::writer(&files.database, LOCK_TIMEOUT)?;
    migration_copy::keep(&connection, files, MigrationCopy::Auto)?;
    schema::migrate(&mut connection)?;
    let problems = check::check(&connection).problems;
    Ok(DamageAssessment { well_formed: check::is_well_formed(&connection), problems })
}

/// Repairs a store in place. Returns the documents that have lost data, and a copy of the file from before.
fn repair_in_place(files: &StoreFiles) -> Result<(DamageReport, PathBuf), Error> {
    let mut connection = connection::writer(&files.database, LOCK_TIMEOUT)?;
    let copy = backup::dated_path(files, "before-repair");
    backup::write_backup(&connection, &copy)?;
    files::sync(&files.folder)?;
    connection.pragma_update(None, "foreign_keys", "OFF")?;
    let loss = writer::transact(&mut connection, |transaction| {
        // Indexes may hold vectors of rows that the repair removes.
        schema::renew_history(transaction)?;
        repair_rows(transaction, &Paths::new())
    })?;
    Ok((loss, copy))
}

/// Removes orphaned rows and corrects the counts of documents. `paths` are the paths of all documents that existed.
fn repair_rows(transaction: &Transaction<'_>, paths: &Paths) -> Result<DamageReport, Error> {
    let mut lost = damage_report::find_lost(transaction, paths)?;
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
    drop_undecodable_vectors(transaction)?;
    let incomplete = damage_report::find_incomplete(transaction, &damaged)?;
    let sql = format!(
        "UPDATE documents SET page_count = m.pages, chunk_count = m.chunks, vector_count = m.vectors, \
         status = iif({INCOMPLETE_CONDITION}, 'partial', status), warning = iif({INCOMPLETE_CONDITION}, ?1, warning) \
         FROM ({MISCOUNTED_DOCUMENTS}) AS m WHERE documents.key = m.key"
    );
    transaction.execute(&sql, [LOST_WARNING])?;
    let mut mark = transaction.prepare("UPDATE documents SET status = 'partial', warning = ?2 WHERE key = ?1")?;
    for key in damaged {
        mark.execute((key, LOST_WARNING))?;
    }
    checksum::record_all(transaction)?;
    Ok(DamageReport { incomplete, ..lost })
}

/// Removes pages, chunks and vectors that do not match their checksums, and documents with an unreadable row. Returns the
/// keys of documents with a damaged row that can still be read.
fn drop_damaged(transaction: &Transaction<'_>, loss: &mut DamageReport) -> Result<Vec<i64>, Error> {
    for table in [checksum::PAGES, checksum::CHUNKS, checksum::VECTORS] {
        let mut delete = transaction.prepare(&format!("DELETE FROM {} WHERE rowid = ?1", table.name))?;
        for damaged in table.damaged(transaction, i64::MAX, i64::MAX)? {
            delete.execute([damaged.rowid])?;
        }
    }
    let columns = rows::DOCUMENT_COLUMNS;
    let mut read = transaction
        .prepare(&format!("SELECT {columns} FROM documents AS d JOIN bases AS b ON b.key = d.base WHERE d.key = ?1"))?;
    let mut readable = Vec::new();
    for checksum::DamagedRow { rowid, label } in checksum::DOCUMENTS.damaged(transaction, i64::MAX, i64::MAX)? {
        match read.query_row([rowid], rows::read_document) {
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
fn drop_undecodable_vectors(transaction: &Transaction<'_>) -> Result<(), Error> {
    let mut statement = transaction.prepare("SELECT chunk, dimensions, windows, codes FROM vectors")?;
    let mut rows = statement.query([])?;
    let mut unreadable = Vec::new();
    while let Some(row) = rows.next()? {
        let codes = row.get_ref(3)?.as_blob().unwrap_or_default();
        if super::scalar_quantization::decode(row.get(1)?, row.get(2)?, codes).is_none() {
            unreadable.push(row.get::<_, i64>(0)?);
        }
    }
    for chunk in unreadable {
        transaction.execute("DELETE FROM vectors WHERE chunk = ?1", [chunk])?;
    }
    Ok(())
}

/// Copies all readable data into a new file. Returns the documents that have lost data.
fn rebuild(files: &StoreFiles, new: &Path) -> Result<RebuildResult, Error> {
    let mut target = connection::writer(new, LOCK_TIMEOUT)?;
    schema::migrate(&mut target)?;
    target.pragma_update(None, "foreign_keys", "OFF")?;
    let rebuilt = writer::transact(&mut target, |transaction| {
        // If even the file header is unreadable, no data can be salvaged.
        let (mut paths, mut unreadable) = (Paths::new(), true);
        if let Ok(source) = connection::salvager(&files.database, LOCK_TIMEOUT) {
            salvage::salvage(&source, transaction)?;
            paths = damage_report::paths_from_index(&source);
            unreadable = !has_tables(&source);
            match schema::store_id(&source) {
                Ok(id) => schema::set_store_id(transaction, &id)?,
                Err(_) => index_binding::permit_any(transaction)?,
            }
        } else {
            index_binding::permit_any(transaction)?;
        }
        Ok(RebuildResult { damage: repair_rows(transaction, &paths)?, unreadable })
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
fn finish_report(files: &StoreFiles, logs: &[DamagedLog], mut repaired: RepairReport) -> Result<RepairReport, Error> {
    let connection = connection::writer(&files.database, LOCK_TIMEOUT)?;
    let found = check::check(&connection);
    if let Some(problem) = found.problems.into_iter().next() {
        return Err(Error::Corrupt(problem));
    }
    damaged_log::renew_history(&connection, logs)?;
    repaired.problems.splice(0..0, logs.iter().map(ToString::to_string));
    repaired.logs = damaged_log::losses(files, &connection, logs, &mut repaired.damage.lost)?;
    damaged_log::acknowledge(files)?;
    Ok(RepairReport { documents: found.documents, chunks: found.chunks, ..repaired })
}

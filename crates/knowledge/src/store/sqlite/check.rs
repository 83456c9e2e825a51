//! Consistency check of the database file.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, Transaction};

use super::files::StoreFiles;
use super::{Store, checksum, connection, damaged_log, index_binding, scalar_quantization, schema, wal};
use crate::store::{CheckReport, Error};

/// Result of a quick check that found no problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuickCheck {
    Consistent,
    /// The time limit was reached.
    TimedOut,
}

/// How long a quick check waits for other processes.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);
/// Number of SQLite steps between two checks of the deadline; a step is a page or a VM instruction.
const STEPS_PER_DEADLINE_CHECK: i32 = 100;
/// Maximum number of reported problems; more would add no information.
const MAX_PROBLEMS: usize = 100;

type CheckFn = fn(&Connection, &mut CheckReport) -> Result<(), Error>;

impl Store {
    /// Reads the whole file and reports problems. Other processes may use the store concurrently.
    pub async fn check(&self) -> Result<CheckReport, Error> {
        let files = self.0.files.clone();
        let work = move |transaction: &Transaction<'_>| {
            let mut report = check(transaction);
            let lock = files.setup_lock()?;
            lock.lock().map_err(Error::io(&files.folder))?;
            damaged_log::preserve(&files)?;
            let logs = damaged_log::unreported(&files);
            report.problems.splice(0..0, logs.iter().map(ToString::to_string));
            report.problems.truncate(MAX_PROBLEMS);
            Ok(report)
        };
        self.read(work).await
    }
}

/// Quick check: whether the database of a folder can be opened and its pages are consistent. Changes nothing, is
/// faster than [`Store::check`], and blocks on disk I/O. SQLite stops when `limit` is reached. `index` is an index of
/// documents that the file must contain.
pub fn quick_check(folder: &Path, index: Option<&Path>, limit: Duration) -> Result<QuickCheck, Error> {
    let files = StoreFiles::of(folder);
    // Before SQLite opens the file: closing the last connection removes the WAL.
    if let Some(damage) = wal::damage(&files.database) {
        return Err(Error::Corrupt(damage.to_string()));
    }
    if let Some(log) = damaged_log::unreported(&files).last() {
        return Err(Error::Corrupt(log.to_string()));
    }
    let mut connection = connection::reader(&files.database, LOCK_TIMEOUT)?;
    if let (1.., Some(index)) = (schema::version(&connection)?, index) {
        index_binding::check(&connection, index)?;
    }
    let until = Instant::now() + limit;
    connection.progress_handler(STEPS_PER_DEADLINE_CHECK, Some(move || Instant::now() >= until))?;
    match connection.query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0)) {
        Ok(found) if found == "ok" => Ok(QuickCheck::Consistent),
        Ok(found) => Err(Error::Corrupt(found)),
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::OperationInterrupted) => Ok(QuickCheck::TimedOut),
        Err(error) => Err(error.into()),
    }
}

/// An unreadable page is reported like any other problem.
pub(super) fn check(connection: &Connection) -> CheckReport {
    let mut report = CheckReport::default();
    let looks: [CheckFn; 6] = [check_integrity, check_references, check_counts, check_vectors, checksums, count_rows];
    for look in looks {
        if let Err(error) = look(connection, &mut report) {
            report.problems.push(error.to_string());
        }
    }
    report.problems.truncate(MAX_PROBLEMS);
    report
}

/// Whether SQLite finds no problem with pages, indexes and types.
pub(super) fn is_well_formed(connection: &Connection) -> bool {
    let mut report = CheckReport::default();
    check_integrity(connection, &mut report).is_ok() && report.is_consistent()
}

fn check_integrity(connection: &Connection, report: &mut CheckReport) -> Result<(), Error> {
    let mut statement = connection.prepare(&format!("PRAGMA integrity_check({MAX_PROBLEMS})"))?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let line: String = row.get(0)?;
        if line != "ok" {
            report.problems.push(line);
        }
    }
    Ok(())
}

/// Foreign keys: chunks have their documents, vectors their chunks.
fn check_references(connection: &Connection, report: &mut CheckReport) -> Result<(), Error> {
    let mut statement = connection.prepare("PRAGMA foreign_key_check")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()?
        && report.problems.len() < MAX_PROBLEMS
    {
        let (table, key, parent): (String, Option<i64>, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
        report.problems.push(format!("row {} of {table} has no row in {parent}", key.unwrap_or(0)));
    }
    Ok(())
}

/// Documents with counts that differ from their rows, and the actual counts. Repair uses it too.
pub(super) const MISCOUNTED_DOCUMENTS: &str = "SELECT * FROM (SELECT d.key AS key, d.filename AS filename, \
     (SELECT count(*) FROM pages AS p WHERE p.document = d.key) AS pages, \
     (SELECT count(*) FROM chunks AS c WHERE c.document = d.key) AS chunks, \
     (SELECT ifnull(sum(v.windows), 0) FROM chunks AS c JOIN vectors AS v ON v.chunk = c.key WHERE c.document = d.key) \
     AS vectors, d.page_count, d.chunk_count, d.vector_count FROM documents AS d) \
     WHERE pages <> page_count OR chunks <> chunk_count OR vectors <> vector_count";

fn check_counts(connection: &Connection, report: &mut CheckReport) -> Result<(), Error> {
    let mut statement = connection.prepare(MISCOUNTED_DOCUMENTS)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()?
        && report.problems.len() < MAX_PROBLEMS
    {
        let filename: String = row.get(1)?;
        let found: (u64, u64, u64) = (row.get(2)?, row.get(3)?, row.get(4)?);
        let said: (u64, u64, u64) = (row.get(5)?, row.get(6)?, row.get(7)?);
        report.problems.push(format!("`{filename}` has {found:?} pages, chunks and vectors, expected {said:?}"));
    }
    Ok(())
}

/// Vectors can be decoded, and all vectors of a document have the same length.
fn check_vectors(connection: &Connection, report: &mut CheckReport) -> Result<(), Error> {
    let mut statement = connection.prepare(
        "SELECT v.chunk, c.document, v.dimensions, v.windows, v.codes FROM vectors AS v JOIN chunks AS c ON c.key = v.chunk \
         ORDER BY v.chunk",
    )?;
    let mut rows = statement.query([])?;
    let mut last = None;
    while let Some(row) = rows.next()?
        && report.problems.len() < MAX_PROBLEMS
    {
        let (chunk, document, dimensions, windows): (u64, u64, u32, u32) =
            (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?);
        let codes = row.get_ref(4)?.as_blob().map_err(|_| Error::unreadable("vectors"))?;
        if scalar_quantization::decode(dimensions, windows, codes).is_none() {
            report.problems.push(format!("vectors of chunk {chunk} are corrupt"));
        }
        if last.is_some_and(|(known, length)| known == document && length != dimensions) {
            report.problems.push(format!("vector dimension of chunk {chunk} differs from previous chunks"));
        }
        last = Some((document, dimensions));
    }
    Ok(())
}

/// Rows match their checksums. Backups of older versions have none.
fn checksums(connection: &Connection, report: &mut CheckReport) -> Result<(), Error> {
    if schema::version(connection)? < checksum::SINCE {
        return Ok(());
    }
    for table in checksum::TABLES {
        let unchecked = table.unchecked(connection)?.unwrap_or(0);
        for checksum::DamagedRow { rowid, label } in table.damaged(connection, unchecked, MAX_PROBLEMS as i64)? {
            let of = label.map(|name| format!(" of `{name}`")).unwrap_or_default();
            let name = table.name;
            report.problems.push(format!("row {rowid} of {name}{of} does not match its checksum"));
        }
    }
    Ok(())
}

fn count_rows(connection: &Connection, report: &mut CheckReport) -> Result<(), Error> {
    let amount = |what: &str| -> Result<u64, Error> {
        Ok(connection.query_row(&format!("SELECT ifnull({what}, 0)"), [], |row| row.get(0))?)
    };
    report.documents = amount("(SELECT count(*) FROM documents)")?;
    report.pages = amount("(SELECT count(*) FROM pages)")?;
    report.chunks = amount("(SELECT count(*) FROM chunks)")?;
    report.vectors = amount("(SELECT sum(windows) FROM vectors)")?;
    report.tasks = amount("(SELECT count(*) FROM tasks)")?;
    Ok(())
}

//! Copies of damaged write-ahead logs.
//!
//! SQLite removes the log when the last connection closes, and with it the committed changes after the damaged part. So
//! the log is copied to `knowledge.db-wal.damaged-N` before SQLite opens it. The copies are also the durable record of the
//! damage: a check reports them until a repair or a restore renames them to `knowledge.db-wal.reported-N`.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use super::damage_report::LostDocument;
use super::files::{self, StoreFiles};
use super::record::{self, DocumentRow};
use super::wal::{self, Damage};
use super::{backup, schema};
use crate::store::Error;

/// Maximum number of copies of each kind. The first ones are kept, and the last one is replaced.
const MAX_COPIES: usize = 3;
/// The row of `meta` with the copies that the history was renewed for.
const RENEWED_FOR: &str = "damaged_logs";

/// A copy of a damaged log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DamagedLog {
    path: PathBuf,
    /// Number of the copy.
    number: usize,
    bytes: u64,
    damage: Damage,
}

/// What a damaged log held.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogLoss {
    /// The copy of the log, under its name after the report.
    pub copy: PathBuf,
    /// Number of transactions before the damage, which are in the database.
    pub applied: u64,
    /// Number of transactions from the damage on that are known to be lost.
    pub lost: u64,
}

impl fmt::Display for DamagedLog {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        write!(to, "{}; a copy of the log is `{name}`", self.damage)
    }
}

/// Verifies the log of a store before SQLite opens it, and copies a damaged one unless there is a copy of it. Returns
/// the damage. The caller holds a lock that keeps other processes from doing the same.
pub(super) fn preserve(files: &StoreFiles) -> Result<Option<Damage>, Error> {
    let log = StoreFiles::companion(&files.database, "-wal");
    let damage = match files.has_content() {
        true => wal::damage(&files.database),
        // SQLite removes the log of an empty database.
        false => wal::has_commit(&log).then_some(Damage::NoDatabase),
    };
    let Some(found) = damage else { return Ok(None) };
    tracing::error!("{found}; restore a backup, or stop the servers and run `corbie knowledge repair`");
    let copies: Vec<PathBuf> = (1..=MAX_COPIES).map(|number| copy_path(files, DAMAGED, number)).collect();
    if copies.iter().any(|copy| is_same(copy, &log, found)) {
        return Ok(damage);
    }
    let Some(to) = copies.iter().find(|copy| !copy.exists()).or(copies.last()) else { return Ok(damage) };
    let unfinished = StoreFiles::companion(to, ".new");
    // Left by a process that was killed.
    backup::discard(&unfinished);
    match found {
        // An empty copy is the record of the loss.
        Damage::Missing => drop(files::create_private(&unfinished)?),
        _ => files::copy(&log, &unfinished).inspect_err(|_| backup::discard(&unfinished))?,
    }
    fs::rename(&unfinished, to).map_err(Error::io(to))?;
    files::sync(&files.folder)?;
    tracing::error!(copy = %to.display(), "copied the damaged write-ahead log");
    Ok(damage)
}

/// The copies that no repair has reported.
pub(super) fn unreported(files: &StoreFiles) -> Vec<DamagedLog> {
    let read = (1..=MAX_COPIES).filter_map(|number| {
        let path = copy_path(files, DAMAGED, number);
        let bytes = fs::symlink_metadata(&path).ok().filter(fs::Metadata::is_file)?.len();
        let damage = match files.has_content() {
            // A copy that cannot be read is damage, too.
            true => wal::damage_of_copy(&path).unwrap_or(Damage::Header),
            false => Damage::NoDatabase,
        };
        Some(DamagedLog { path, number, bytes, damage })
    });
    read.collect()
}

/// Starts a new history because of copies that it was not renewed for: after the loss of changes, keys and sequence numbers
/// are used again, and an index has data of the lost ones.
pub(super) fn renew_history(connection: &Connection, logs: &[DamagedLog]) -> Result<(), Error> {
    let name =
        |log: &DamagedLog| format!("{} {}", log.path.file_name().unwrap_or_default().to_string_lossy(), log.bytes);
    let copies = logs.iter().map(name).collect::<Vec<_>>().join(", ");
    let known = schema::get(connection, RENEWED_FOR)?;
    match known {
        Some(known) if known == copies => {}
        None if logs.is_empty() => {}
        Some(_) if logs.is_empty() => schema::remove(connection, RENEWED_FOR)?,
        _ => {
            let transaction = connection.unchecked_transaction()?;
            schema::renew_history(&transaction)?;
            schema::set(&transaction, RENEWED_FOR, &copies)?;
            transaction.commit()?;
        }
    }
    Ok(())
}

/// Reads what the logs held, and adds the documents that are not in the database to `lost`.
pub(super) fn losses(
    files: &StoreFiles,
    connection: &Connection,
    logs: &[DamagedLog],
    lost: &mut Vec<LostDocument>,
) -> Result<Vec<LogLoss>, Error> {
    let mut losses = Vec::new();
    for log in logs {
        let content = Content::read(log)?;
        for DocumentRow { id, filename, path, sha256 } in content.pages.into_values().flatten() {
            let mut statement = connection.prepare_cached("SELECT 1 FROM documents WHERE id = ?1 AND sha256 = ?2")?;
            let document = LostDocument { filename, path };
            if !statement.exists((id, sha256))? && !lost.contains(&document) {
                lost.push(document);
            }
        }
        let copy = copy_path(files, REPORTED, log.number);
        losses.push(LogLoss { copy, applied: content.applied, lost: content.lost });
    }
    Ok(losses)
}

/// Ends the reports of copies by giving them another name.
pub(super) fn acknowledge(files: &StoreFiles) -> Result<(), Error> {
    for number in 1..=MAX_COPIES {
        let (from, to) = (copy_path(files, DAMAGED, number), copy_path(files, REPORTED, number));
        if fs::symlink_metadata(&from).is_ok() {
            fs::rename(&from, &to).map_err(Error::io(&to))?;
        }
    }
    files::sync(&files.folder)
}

/// Content of a log from the damage on.
#[derive(Default)]
struct Content {
    applied: u64,
    lost: u64,
    /// Documents by page, in the last version of the page.
    pages: BTreeMap<u32, Vec<DocumentRow>>,
}

impl Content {
    fn read(log: &DamagedLog) -> Result<Content, Error> {
        let mut content = Content::default();
        // The pages of a transaction whose commit frame was not read yet.
        let mut open = BTreeMap::new();
        let read = wal::frames(&log.path, &mut |frame| {
            open.insert(frame.page, record::documents(frame.content));
            match (frame.is_commit, frame.is_valid && log.damage != Damage::NoDatabase) {
                (true, true) => {
                    open.clear();
                    content.applied += 1;
                }
                (true, false) => {
                    content.pages.append(&mut open);
                    content.lost += 1;
                }
                (false, _) => {}
            }
        });
        read.map_err(Error::io(&log.path))?;
        // The damaged frame is the last commit frame, and not readable.
        if content.lost == 0 {
            (content.pages, content.lost) = (open, 1);
        }
        Ok(content)
    }
}

const DAMAGED: &str = "damaged";
const REPORTED: &str = "reported";

fn copy_path(files: &StoreFiles, kind: &str, number: usize) -> PathBuf {
    StoreFiles::companion(&files.database, &format!("-wal.{kind}-{number}"))
}

/// Whether there is a copy of this log. A process that goes on after the damage appends to the log, so its salts decide.
fn is_same(copy: &Path, log: &Path, damage: Damage) -> bool {
    match (wal::salts(copy), wal::salts(log)) {
        (Some(copy), Some(log)) => copy == log,
        _ if damage == Damage::Missing => fs::metadata(copy).is_ok_and(|copy| copy.len() == 0),
        _ => fs::metadata(copy).is_ok() && fs::read(copy).ok() == fs::read(log).ok(),
    }
}

//! Health of the store, measured on demand.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::Ordering;

use rusqlite::Connection;

use super::{Store, checksum, clear};
use crate::store::{Error, Health, HealthDiagnostic};

/// Identity of a file (device and inode), independent of its name. A deleted file still answers while it is open, but
/// its data is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DatabaseFileId(Option<(u64, u64)>);

impl Store {
    pub async fn health(&self) -> Result<Health, Error> {
        let store = self.clone();
        let measured = tokio::task::spawn_blocking(move || store.cached_health()).await;
        measured.map_err(|error| Error::Internal(error.to_string()))
    }

    /// Accesses the disk for some microseconds.
    pub fn cached_health(&self) -> Health {
        let answers = |connection: &Connection| {
            connection.query_row("SELECT count(*) FROM bases", [], |row| row.get::<_, i64>(0)).is_ok()
        };
        let same = DatabaseFileId::of(&self.0.files.database) == self.0.database_id;
        let connected = match same && answers(self.change_detector().connection()) {
            true => Ok(()),
            false => Err(HealthDiagnostic {
                problem: "does not respond, or its file was replaced".to_owned(),
                remedy: "restart the server".to_owned(),
            }),
        };
        Health { connected, accessible: check_writable(&self.0.files.folder) }
    }

    /// Records the checksums of rows from older versions, for a short time, and checkpoints the WAL once no writes
    /// have extended it since the previous call: damage in the WAL loses more than damage in the database.
    pub async fn maintain(&self) -> Result<(), Error> {
        let recorded = self.record_checksums().await.map(drop);
        let size = self.0.files.log_size();
        if self.0.log_size.swap(size, Ordering::Relaxed) == size && size > 0 {
            let patience = self.0.options.busy_timeout;
            let checkpoint = move |connection: &mut Connection| {
                clear::try_shrink_log(connection, patience);
                Ok(())
            };
            self.0.writer.run(checkpoint).await?;
        }
        recorded
    }

    /// Checkpoints and truncates the WAL. A reader delays it for a second at most.
    pub async fn checkpoint(&self) -> Result<(), Error> {
        let patience = self.0.options.busy_timeout;
        let checkpoint = move |connection: &mut Connection| {
            clear::truncate_wal(connection, patience);
            Ok(())
        };
        self.0.writer.run(checkpoint).await
    }

    /// Records the checksums of rows that have none, for a short time. Returns whether all rows have one.
    pub async fn record_checksums(&self) -> Result<bool, Error> {
        let complete = &self.0.checksums_complete;
        if !complete.load(Ordering::Relaxed) {
            complete.store(self.write(|transaction, _| checksum::record_some(transaction)).await?, Ordering::Relaxed);
        }
        Ok(complete.load(Ordering::Relaxed))
    }
}

/// Minimum free space in bytes for writing.
const PROBE_BYTES: usize = 64 << 10;

/// Permission bits do not reveal a full or read-only disk, so the check writes an anonymous temporary file.
fn check_writable(folder: &Path) -> Result<(), String> {
    let attempt = fs::read_dir(folder).and_then(|_| tempfile::tempfile_in(folder)?.write_all(&[0; PROBE_BYTES]));
    attempt.map_err(|error| format!("Storage directory not accessible: {}", reason(&error)))
}

/// The message of the operating system without its error number.
fn reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    let end = text.find(" (os error").or_else(|| text.find(" at path")).unwrap_or(text.len());
    text[..end].to_owned()
}

impl DatabaseFileId {
    #[cfg(unix)]
    pub(super) fn of(path: &Path) -> DatabaseFileId {
        use std::os::unix::fs::MetadataExt;
        DatabaseFileId(fs::metadata(path).ok().map(|found| (found.dev(), found.ino())))
    }

    #[cfg(not(unix))]
    pub(super) fn of(path: &Path) -> DatabaseFileId {
        DatabaseFileId(fs::metadata(path).ok().map(|_| (0, 0)))
    }
}

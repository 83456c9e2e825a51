//! SQLite store in a single file.
//!
//! The file is the single source of truth. All other data, such as an index, is derived from it and follows its
//! [changes](Store::changes_since). Several processes may have the same store open; each sees only complete documents.
//!
//! In each process one thread does all writes, in transactions that take SQLite's write lock at the start and are on
//! disk when they are acknowledged. Reads run concurrently on other connections. A dropped future leaves no partial
//! work: its transaction runs completely or not at all.

mod backup;
mod changes;
mod check;
mod checksum;
mod chunks;
mod clear;
mod connection;
mod contents;
mod copies;
mod damaged_log;
mod documents;
mod failure;
mod files;
mod health;
mod imported;
mod index_binding;
mod instance;
mod listing;
mod load;
mod loss;
mod migration_copy;
mod moved;
mod put;
mod readers;
mod record;
mod repair;
mod rows;
mod salvage;
mod schema;
mod task_list;
mod tasks;
mod text;
mod uploads;
mod vectors;
mod wal;
mod wal_index;
mod watched;
mod writer;

use std::fs::{File, TryLockError};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use rusqlite::Transaction;

pub use changes::{Change, ChangeKind, Changes};
pub use check::{Glance, glance};
pub use contents::Contents;
pub use damaged_log::LogLoss;
pub use load::{Live, LiveDocument, LoadedChunk, LoadedDocument};
pub use loss::{Loss, LostDocument};
pub use repair::Repaired;
pub use schema::VERSION;
pub use vectors::FAITHFUL;

use changes::Watch;
use files::Files;
use instance::{Instance, Living};
use readers::Readers;
use writer::Writer;

use super::{Error, Options};
use crate::locked::locked;

/// The store of a knowledge base. Cheap to clone; all clones share the same state.
#[derive(Debug, Clone)]
pub struct Store(Arc<Shared>);

/// Fields are dropped in this order: connections, the instance registration, and last the lock that other processes
/// check.
#[derive(Debug)]
struct Shared {
    files: Files,
    options: Options,
    id: String,
    history: String,
    readers: Readers,
    watch: Mutex<Watch>,
    writer: Writer,
    instance: Instance,
    file: health::Identity,
    /// All rows have a checksum.
    checksums_complete: AtomicBool,
    /// The file was restored or rebuilt, and is bound to no index yet.
    replaces_any: bool,
    /// Size of the WAL at the last periodic maintenance.
    log_size: AtomicU64,
    _in_use: Arc<File>,
}

impl Store {
    /// Opens the store of a folder and creates it if it does not exist. Blocks on file I/O, so call it at program
    /// start.
    pub fn open(folder: &Path, options: Options) -> Result<Store, Error> {
        let files = Files::of(folder);
        files.create_folders()?;
        let in_use = share(&files)?;
        Store::open_with(files, in_use, options)
    }

    /// The same with a lock that is already held.
    fn open_with(files: Files, in_use: File, options: Options) -> Result<Store, Error> {
        let in_use = Arc::new(in_use);
        let setting_up = files.setting_up()?;
        setting_up.lock().map_err(Error::io(&files.folder))?;
        must_not_be_missing(&files, options.index.as_deref())?;
        files.make_database()?;
        // Before SQLite opens the file.
        let damage = damaged_log::preserve(&files)?;
        if let Some(damage @ wal::Damage::NoDatabase) = damage {
            return Err(Error::Corrupt(damage.to_string()));
        }
        let had_content = files.has_content();
        let logs = damaged_log::unreported(&files);
        let mut connection = connection::writer(&files.database, options.busy_timeout)?;
        match (schema::version(&connection)?, &options.index, logs.last()) {
            // The tables themselves were in the lost part.
            (0, _, Some(log)) if had_content => return Err(Error::Corrupt(log.to_string())),
            (0, Some(index), _) => return Err(Error::Missing { index: index.clone() }),
            (1.., Some(index), _) => index_binding::check(&connection, index)?,
            _ => {}
        }
        migration_copy::keep(&connection, &files, options.migration_copy)?;
        schema::migrate(&mut connection)?;
        damaged_log::renew_history(&connection, &logs)?;
        drop(setting_up);
        if let Some(bytes) = options.max_bytes {
            let page: u64 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
            connection.pragma_update_and_check(None, "max_page_count", bytes / page.max(1), |_| Ok(()))?;
        }
        let (id, history) = (schema::store_id(&connection)?, schema::history(&connection)?);
        let replaces_any = index_binding::is_permitted(&connection)?;
        let checksums_complete = AtomicBool::new(!checksum::is_incomplete(&connection)?);
        let watch = Watch::new(connection::reader(&files.database, WATCH.min(options.busy_timeout))?)?;
        let readers = Readers::new(files.database.clone(), &options, Arc::clone(&in_use));
        instance::forget_the_dead(&files);
        Ok(Store(Arc::new(Shared {
            writer: Writer::start(connection, options.queue)?,
            instance: Instance::take(&files)?,
            file: health::Identity::of(&files.database),
            watch: Mutex::new(watch),
            checksums_complete,
            replaces_any,
            log_size: AtomicU64::new(0),
            _in_use: in_use,
            id,
            history,
            readers,
            files,
            options,
        })))
    }

    /// Fails if the file of a folder is empty or missing although there is an index of its documents.
    pub fn must_not_be_missing(folder: &Path, index: Option<&Path>) -> Result<(), Error> {
        must_not_be_missing(&Files::of(folder), index)
    }

    /// Whether a folder contains a store.
    pub fn exists(folder: &Path) -> bool {
        Files::of(folder).database.exists()
    }

    /// Name of this process among all processes that share the store. It is valid as long as the store is open here.
    pub fn instance(&self) -> &str {
        self.0.instance.name()
    }

    /// ID of the history that change sequence numbers belong to. A restored or salvaged store has a new one, and data
    /// derived from the previous one must be rebuilt.
    pub fn history(&self) -> &str {
        &self.0.history
    }

    /// Folder of the store's files.
    pub fn folder(&self) -> &Path {
        &self.0.files.folder
    }

    /// Size of the store of a folder on disk in bytes, whether it is open or not.
    pub fn size_in(folder: &Path) -> u64 {
        Files::of(folder).size()
    }

    /// Size of the store on disk in bytes.
    pub fn known_size(&self) -> u64 {
        self.0.files.size()
    }

    /// Runs a read transaction.
    async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        self.0.readers.read(work).await
    }

    /// Runs a write transaction.
    async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Transaction<'_>, &Pen) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let pen = self.pen();
        self.0.writer.transact(move |transaction| work(transaction, &pen)).await
    }

    fn pen(&self) -> Pen {
        Pen { instance: self.instance().to_owned(), changes: self.0.options.changes }
    }

    fn living(&self) -> Living {
        Living { files: self.0.files.clone(), instance: self.instance().to_owned() }
    }

    fn watch(&self) -> MutexGuard<'_, Watch> {
        locked(&self.0.watch)
    }
}

/// Busy timeout of the connection for calls that must not block. Only WAL recovery makes it wait.
const WATCH: Duration = Duration::from_millis(100);

/// Context of a write.
#[derive(Debug, Clone)]
struct Pen {
    instance: String,
    changes: u64,
}

/// Fails if the file is empty or missing although there is an index of its documents.
fn must_not_be_missing(files: &Files, index: Option<&Path>) -> Result<(), Error> {
    let is_missing = match std::fs::metadata(&files.database) {
        Ok(found) => found.len() == 0,
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    };
    match index.filter(|_| is_missing) {
        Some(index) => Err(Error::Missing { index: index.to_owned() }),
        None => Ok(()),
    }
}

/// Takes the shared lock of an open store. Fails while its file is being replaced.
fn share(files: &Files) -> Result<File, Error> {
    let lock = files.in_use()?;
    match lock.try_lock_shared() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => Err(Error::InUse),
        Err(TryLockError::Error(error)) => Err(Error::io(&files.folder)(error)),
    }
}

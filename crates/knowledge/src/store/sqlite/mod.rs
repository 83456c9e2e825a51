//! SQLite store in a single file.
//!
//! The file is the single source of truth. All other data, such as an index, is derived from it and follows its
//! [change_log](Store::changes_since). Several processes may have the same store open; each sees only complete documents.
//!
//! In each process one thread does all writes, in transactions that take SQLite's write lock at the start and are on
//! disk when they are acknowledged. Reads run concurrently on other connections. A dropped future leaves no partial
//! work: its transaction runs completely or not at all.

mod backup;
mod change_log;
mod check;
mod checksum;
mod chunks;
mod clear;
mod connection;
mod damage_report;
mod damaged_log;
mod digest;
mod documents;
mod duplicates;
mod error;
mod export_for_index;
mod files;
mod health;
mod import_checkpoint;
mod index_binding;
mod instance;
mod listing;
mod migration_copy;
mod migration_io;
mod reader_pool;
mod record;
mod repair;
mod rows;
mod salvage;
mod scalar_quantization;
mod schema;
mod task_completion;
mod tasks;
mod text;
mod uploads;
mod upsert_document;
mod wal;
mod wal_index;
mod watched_files;
mod writer;

use std::fs::{File, TryLockError};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use rusqlite::Transaction;

pub use change_log::{ChangeKind, ChangeRecord, ChangesSince};
pub use check::{QuickCheck, quick_check};
pub use damage_report::{DamageReport, LostDocument};
pub use damaged_log::LogLoss;
pub use digest::ContentDigest;
pub use export_for_index::{LiveDocument, LiveSnapshot, LoadedChunk, LoadedDocument};
pub use repair::RepairReport;
pub use scalar_quantization::MIN_COSINE_SIMILARITY;
pub use schema::VERSION;

use change_log::ChangeDetector;
use files::StoreFiles;
use instance::{Instance, Liveness};
use reader_pool::ReaderPool;
use writer::Writer;

use super::{Error, Options};
use corbie_util::lock::lock;

/// The store of a knowledge base. Cheap to clone; all clones share the same state.
#[derive(Debug, Clone)]
pub struct Store(Arc<Inner>);

/// Fields are dropped in this order: connections, the instance registration, and last the lock that other processes
/// check.
#[derive(Debug)]
struct Inner {
    files: StoreFiles,
    options: Options,
    id: String,
    history: String,
    readers: ReaderPool,
    change_detector: Mutex<ChangeDetector>,
    writer: Writer,
    instance: Instance,
    database_id: health::DatabaseFileId,
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
        let files = StoreFiles::of(folder);
        files.create_folders()?;
        let in_use = lock_shared(&files)?;
        Store::open_with(files, in_use, options)
    }

    /// The same with a lock that is already held.
    fn open_with(files: StoreFiles, in_use: File, options: Options) -> Result<Store, Error> {
        let in_use = Arc::new(in_use);
        let setting_up = files.setup_lock()?;
        setting_up.lock().map_err(Error::io(&files.folder))?;
        must_not_be_missing(&files, options.index.as_deref())?;
        files.create_database()?;
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
        let watch = ChangeDetector::new(connection::reader(
            &files.database,
            CHANGE_DETECTOR_TIMEOUT.min(options.busy_timeout),
        )?)?;
        let readers = ReaderPool::new(files.database.clone(), &options, Arc::clone(&in_use));
        instance::remove_dead_instances(&files);
        Ok(Store(Arc::new(Inner {
            writer: Writer::start(connection, options.max_queued_writes)?,
            instance: Instance::register(&files)?,
            database_id: health::DatabaseFileId::of(&files.database),
            change_detector: Mutex::new(watch),
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
        must_not_be_missing(&StoreFiles::of(folder), index)
    }

    /// Whether a folder contains a store.
    pub fn exists(folder: &Path) -> bool {
        StoreFiles::of(folder).database.exists()
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
        StoreFiles::of(folder).size()
    }

    /// Size of the store on disk in bytes.
    pub fn cached_size(&self) -> u64 {
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
        work: impl FnOnce(&Transaction<'_>, &WriterContext) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let pen = self.writer_context();
        self.0.writer.transact(move |transaction| work(transaction, &pen)).await
    }

    fn writer_context(&self) -> WriterContext {
        WriterContext { instance: self.instance().to_owned(), max_changes: self.0.options.max_changes }
    }

    fn liveness(&self) -> Liveness {
        Liveness { files: self.0.files.clone(), instance: self.instance().to_owned() }
    }

    fn change_detector(&self) -> MutexGuard<'_, ChangeDetector> {
        lock(&self.0.change_detector)
    }
}

/// Busy timeout of the connection for calls that must not block. Only WAL recovery makes it wait.
const CHANGE_DETECTOR_TIMEOUT: Duration = Duration::from_millis(100);

/// Context of a write.
#[derive(Debug, Clone)]
struct WriterContext {
    instance: String,
    max_changes: u64,
}

/// Fails if the file is empty or missing although there is an index of its documents.
fn must_not_be_missing(files: &StoreFiles, index: Option<&Path>) -> Result<(), Error> {
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
fn lock_shared(files: &StoreFiles) -> Result<File, Error> {
    let lock = files.in_use_lock()?;
    match lock.try_lock_shared() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => Err(Error::InUse),
        Err(TryLockError::Error(error)) => Err(Error::io(&files.folder)(error)),
    }
}

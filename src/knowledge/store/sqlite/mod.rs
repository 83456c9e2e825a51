//! A store in one SQLite file.
//!
//! The file is the only truth. Whatever else there is, such as an index, is derived from it and follows its
//! [changes](Store::changes_since). Several processes may have the same store open; each sees whole documents only.
//!
//! Writes are done by one thread of each process, in transactions that take SQLite's lock at their beginning and are on
//! the disk when they are answered. Reads happen beside them, on other connections. A future that is dropped leaves
//! nothing half done: its transaction is made as a whole, or not at all.

mod backup;
mod changes;
mod check;
mod chunks;
mod clear;
mod connection;
mod contents;
mod copies;
mod documents;
mod failure;
mod files;
mod health;
mod imported;
mod instance;
mod listing;
mod load;
mod loss;
mod moved;
mod put;
mod readers;
mod repair;
mod rows;
mod salvage;
mod schema;
mod task_list;
mod tasks;
mod text;
mod uploads;
mod vectors;
mod watched;
mod writer;

use std::fs::{File, TryLockError};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use rusqlite::Transaction;

pub use changes::{Change, ChangeKind, Changes};
pub use check::{Glance, glance};
pub use contents::Contents;
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

/// A knowledge base's store. Cheap to clone; all clones are the same.
#[derive(Debug, Clone)]
pub struct Store(Arc<Shared>);

/// Parts are given up in this order: connections, the name of this process, and last the lock that others respect.
#[derive(Debug)]
struct Shared {
    files: Files,
    options: Options,
    history: String,
    readers: Readers,
    watch: Mutex<Watch>,
    writer: Writer,
    instance: Instance,
    file: health::Identity,
    _in_use: Arc<File>,
}

impl Store {
    /// Opens the store of a folder, and makes it where there is none. Waits for files, so it belongs to the start of a
    /// program.
    pub fn open(folder: &Path, options: Options) -> Result<Store, Error> {
        let files = Files::of(folder);
        files.create_folders()?;
        let in_use = share(&files)?;
        Store::open_with(files, in_use, options)
    }

    /// The same with the lock that others respect.
    fn open_with(files: Files, in_use: File, options: Options) -> Result<Store, Error> {
        let in_use = Arc::new(in_use);
        let setting_up = files.setting_up()?;
        setting_up.lock().map_err(Error::io(&files.folder))?;
        files.make_database()?;
        let mut connection = connection::writer(&files.database, options.busy_timeout)?;
        schema::migrate(&mut connection)?;
        drop(setting_up);
        if let Some(bytes) = options.max_bytes {
            let page: u64 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
            connection.pragma_update_and_check(None, "max_page_count", bytes / page.max(1), |_| Ok(()))?;
        }
        let history = schema::history(&connection)?;
        let watch = Watch::new(connection::reader(&files.database, WATCH.min(options.busy_timeout))?)?;
        let readers = Readers::new(files.database.clone(), &options, Arc::clone(&in_use));
        instance::forget_the_dead(&files);
        Ok(Store(Arc::new(Shared {
            writer: Writer::start(connection, options.queue)?,
            instance: Instance::take(&files)?,
            file: health::Identity::of(&files.database),
            watch: Mutex::new(watch),
            _in_use: in_use,
            history,
            readers,
            files,
            options,
        })))
    }

    /// Whether there is a store in a folder.
    pub fn exists(folder: &Path) -> bool {
        Files::of(folder).database.exists()
    }

    /// The name of this process among those that share the store. It lives as long as the store is open here.
    pub fn instance(&self) -> &str {
        self.0.instance.name()
    }

    /// What the numbers of changes belong to. A restored or salvaged store has another one, and whatever was derived from
    /// the one before is to be made anew.
    pub fn history(&self) -> &str {
        &self.0.history
    }

    /// Where the store's files are.
    pub fn folder(&self) -> &Path {
        &self.0.files.folder
    }

    /// How many bytes the store of a folder takes on the disk, whether it is open or not.
    pub fn size_in(folder: &Path) -> u64 {
        Files::of(folder).size()
    }

    /// How many bytes the store takes on the disk.
    pub fn known_size(&self) -> u64 {
        self.0.files.size()
    }

    /// Reads in one transaction.
    async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        self.0.readers.read(work).await
    }

    /// Writes in one transaction.
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

/// How long the connection waits that is asked where nothing may wait. Only the recovery of a log ever makes it.
const WATCH: Duration = Duration::from_millis(100);

/// What a write must know about who writes.
#[derive(Debug, Clone)]
struct Pen {
    instance: String,
    changes: u64,
}

/// Says that the store is open here. Fails while its file is being replaced.
fn share(files: &Files) -> Result<File, Error> {
    let lock = files.in_use()?;
    match lock.try_lock_shared() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => Err(Error::InUse),
        Err(TryLockError::Error(error)) => Err(Error::io(&files.folder)(error)),
    }
}

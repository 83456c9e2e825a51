//! Pool of read connections, used on blocking threads.
//!
//! Each read sees the snapshot at the start of its transaction: a document with all its chunks, or none of it.

use std::fs::File;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rusqlite::{Connection, Transaction, TransactionBehavior};
use tokio::sync::Semaphore;

use super::connection;
use crate::store::{Error, Options};
use corbie_util::lock::lock;

/// The pool. Connections are opened on demand and reused.
#[derive(Debug, Clone)]
pub(super) struct ReaderPool {
    database: PathBuf,
    busy_timeout: Duration,
    permits: Arc<Semaphore>,
    idle: Arc<Mutex<Vec<Connection>>>,
    /// A running read prevents other processes from replacing the file.
    _in_use: Arc<File>,
}

impl ReaderPool {
    pub(super) fn new(database: PathBuf, options: &Options, in_use: Arc<File>) -> ReaderPool {
        let room = Arc::new(Semaphore::new(options.max_readers.max(1)));
        ReaderPool {
            database,
            busy_timeout: options.busy_timeout,
            permits: room,
            idle: Arc::default(),
            _in_use: in_use,
        }
    }

    /// Runs a read transaction.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let room = self.permits.clone().acquire_owned().await.map_err(|_| Error::Closed)?;
        let readers = self.clone();
        let reading = tokio::task::spawn_blocking(move || {
            let _room = room;
            let idle = lock(&readers.idle).pop();
            let mut connection = match idle {
                Some(connection) => connection,
                None => connection::reader(&readers.database, readers.busy_timeout)?,
            };
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Deferred)?;
            let found = work(&transaction);
            drop(transaction);
            // A failed connection may have hit a damaged page and is not reused.
            if found.is_ok() {
                lock(&readers.idle).push(connection);
            }
            found
        });
        reading.await.map_err(|error| Error::Internal(error.to_string()))?
    }
}

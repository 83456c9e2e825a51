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
use crate::knowledge::store::{Error, Options};
use crate::locked::locked;

/// The pool. Connections are opened on demand and reused.
#[derive(Debug, Clone)]
pub(super) struct Readers {
    database: PathBuf,
    patience: Duration,
    room: Arc<Semaphore>,
    idle: Arc<Mutex<Vec<Connection>>>,
    /// A running read prevents other processes from replacing the file.
    _in_use: Arc<File>,
}

impl Readers {
    pub(super) fn new(database: PathBuf, options: &Options, in_use: Arc<File>) -> Readers {
        let room = Arc::new(Semaphore::new(options.readers.max(1)));
        Readers { database, patience: options.busy_timeout, room, idle: Arc::default(), _in_use: in_use }
    }

    /// Runs a read transaction.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let room = self.room.clone().acquire_owned().await.map_err(|_| Error::Closed)?;
        let readers = self.clone();
        let reading = tokio::task::spawn_blocking(move || {
            let _room = room;
            let idle = locked(&readers.idle).pop();
            let mut connection = match idle {
                Some(connection) => connection,
                None => connection::reader(&readers.database, readers.patience)?,
            };
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Deferred)?;
            let found = work(&transaction);
            drop(transaction);
            // A failed connection may have hit a damaged page and is not reused.
            if found.is_ok() {
                locked(&readers.idle).push(connection);
            }
            found
        });
        reading.await.map_err(|error| Error::Internal(error.to_string()))?
    }
}

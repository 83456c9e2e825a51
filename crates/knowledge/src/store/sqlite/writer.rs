//! Writer thread.
//!
//! Commands arrive over a bounded queue and run in order. A queued command runs even if its caller no longer waits; a
//! panic in it fails only that call.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::thread::{self, JoinHandle};

use rusqlite::{Connection, Transaction, TransactionBehavior};
use tokio::sync::{mpsc, oneshot};

use crate::store::Error;
use corbie_util::lock::lock;

type WriteCommand = Box<dyn FnOnce(&mut Connection) + Send>;

/// The queue and its thread.
#[derive(Debug)]
pub(super) struct Writer {
    queue: Option<mpsc::Sender<WriteCommand>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Writer {
    pub(super) fn start(mut connection: Connection, room: usize) -> Result<Writer, Error> {
        let (queue, mut commands) = mpsc::channel::<WriteCommand>(room.max(1));
        let run = move || {
            while let Some(command) = commands.blocking_recv() {
                // The caller detects a panic by the closed response channel; unwinding rolls back an open transaction.
                if catch_unwind(AssertUnwindSafe(|| command(&mut connection))).is_err() {
                    tracing::error!("a write to the knowledge base panicked; rolled back");
                }
            }
        };
        let thread = thread::Builder::new().name("store".to_owned()).spawn(run);
        let thread = thread.map_err(|error| Error::Internal(error.to_string()))?;
        Ok(Writer { queue: Some(queue), thread: Mutex::new(Some(thread)) })
    }

    /// Runs a closure in one transaction, which is committed on success.
    pub(super) async fn transact<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        self.run(move |connection| transact(connection, work)).await
    }

    /// Runs a closure with the connection.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let (answer, answered) = oneshot::channel();
        let command = Box::new(move |connection: &mut Connection| {
            // Fails only if the caller no longer waits.
            let _ = answer.send(work(connection));
        });
        let queue = self.queue.as_ref().ok_or(Error::Closed)?;
        queue.send(command).await.map_err(|_| Error::Closed)?;
        answered.await.map_err(|_| Error::Internal("a write panicked and was rolled back".to_owned()))?
    }
}

/// Queued commands complete before the store is dropped.
impl Drop for Writer {
    fn drop(&mut self) {
        self.queue = None;
        let thread = lock(&self.thread).take();
        if let Some(thread) = thread.filter(|thread| thread.thread().id() != thread::current().id()) {
            // The thread ends when its queue closes, and it catches panics.
            let _ = thread.join();
        }
    }
}

/// Takes the write lock at the start: a transaction that reads first may fail to get it later.
pub(super) fn transact<T>(
    connection: &mut Connection,
    work: impl FnOnce(&Transaction<'_>) -> Result<T, Error>,
) -> Result<T, Error> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let done = work(&transaction)?;
    transaction.commit()?;
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_fails_one_write_and_its_transaction_is_rolled_back() {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch("CREATE TABLE numbers (number INTEGER)").unwrap();
        let writer = Writer::start(connection, 1).unwrap();
        let insert = |transaction: &Transaction<'_>| Ok(transaction.execute("INSERT INTO numbers VALUES (1)", [])?);
        let failed = writer.transact::<usize>(move |transaction| {
            insert(transaction)?;
            panic!("on purpose")
        });
        assert!(matches!(failed.await, Err(Error::Internal(_))));
        writer.transact(insert).await.unwrap();
        let count = |connection: &mut Connection| {
            Ok(connection.query_row("SELECT count(*) FROM numbers", [], |row| row.get::<_, i64>(0))?)
        };
        assert_eq!(writer.run(count).await.unwrap(), 1);
    }
}

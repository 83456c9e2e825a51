//! A pooled connection, checked out for one unit of work.
//!
//! A transaction that is neither committed nor rolled back closes its connection: the server then rolls it back, and
//! the pool never hands out a connection in the middle of a transaction. The same applies to a statement with an
//! abandoned response. An error or a dropped future therefore never leaves partial work behind.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use deadpool_postgres::{Object, Pool};
use tokio::time::timeout;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Row, Statement};

use super::error;
use crate::knowledge::store::Error;

/// A connection in exclusive use until it is returned to the pool.
#[derive(Debug)]
pub(super) struct Session {
    connection: Option<Object>,
    in_transaction: bool,
    /// Statements that were sent and not yet answered.
    unanswered: AtomicUsize,
}

/// Parameters of a statement.
pub(super) type SqlParams<'a> = &'a [&'a (dyn ToSql + Sync)];

/// A server that does not answer for this long is considered unavailable; its own statement timeout is shorter.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(40);
/// Timeout of BEGIN, which takes no locks.
const BEGIN_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of dead connections to skip in sequence, as after a restart of the server.
const MAX_DEAD_CONNECTIONS: usize = 64;

impl Session {
    /// A session for single statements.
    pub(super) async fn autocommit(pool: &Pool) -> Result<Session, Error> {
        let connection = pool.get().await.map_err(error::map_pool_error)?;
        Ok(Session { connection: Some(connection), in_transaction: false, unanswered: AtomicUsize::new(0) })
    }

    /// Begins a read-only transaction on one snapshot.
    pub(super) async fn begin_read(pool: &Pool) -> Result<Session, Error> {
        Session::begin(pool, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await
    }

    /// Begins a write transaction. Its changes are invisible until [`commit`](Session::commit).
    pub(super) async fn begin_write(pool: &Pool) -> Result<Session, Error> {
        Session::begin(pool, "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE").await
    }

    /// Pooled connections may be dead; no work has been done on them, so the next connection is tried. All attempts
    /// share one timeout: if one connection hangs, the rest would hang too.
    async fn begin(pool: &Pool, how: &str) -> Result<Session, Error> {
        let (mut tried, mut left) = (0, BEGIN_TIMEOUT);
        loop {
            let mut session = Session::autocommit(pool).await?;
            session.in_transaction = true;
            let asked = Instant::now();
            let begun = session.with_timeout(left, session.connection()?.batch_execute(how)).await;
            left = left.saturating_sub(asked.elapsed());
            match begun {
                Err(Error::Unavailable(why))
                    if why != error::STANDBY_MESSAGE && tried < MAX_DEAD_CONNECTIONS && !left.is_zero() =>
                {
                    tried += 1
                }
                begun => return begun.map(|()| session),
            }
        }
    }

    /// Commits the transaction.
    pub(super) async fn commit(mut self) -> Result<(), Error> {
        self.execute_batch("COMMIT").await?;
        self.in_transaction = false;
        Ok(())
    }

    /// Rolls back a transaction without relevant writes, and returns the connection to the pool.
    pub(super) async fn rollback(mut self) -> Result<(), Error> {
        self.execute_batch("ROLLBACK").await?;
        self.in_transaction = false;
        Ok(())
    }

    pub(super) async fn rows(&self, sql: &str, given: SqlParams<'_>) -> Result<Vec<Row>, Error> {
        let statement = self.prepare(sql).await?;
        self.run(&statement, given).await
    }

    /// The same with a longer timeout. The caller raises the server's timeout.
    pub(super) async fn rows_with_timeout(
        &self,
        sql: &str,
        given: SqlParams<'_>,
        most: Duration,
    ) -> Result<Vec<Row>, Error> {
        let statement = self.prepare(sql).await?;
        self.with_timeout(most, self.connection()?.query(&statement, given)).await
    }

    pub(super) async fn row(&self, sql: &str, given: SqlParams<'_>) -> Result<Row, Error> {
        self.opt_row(sql, given).await?.ok_or_else(|| Error::Internal("a row was expected".to_owned()))
    }

    pub(super) async fn opt_row(&self, sql: &str, given: SqlParams<'_>) -> Result<Option<Row>, Error> {
        Ok(self.rows(sql, given).await?.into_iter().next())
    }

    /// Executes a statement and returns the number of changed rows.
    pub(super) async fn execute(&self, sql: &str, given: SqlParams<'_>) -> Result<u64, Error> {
        let statement = self.prepare(sql).await?;
        self.with_answer_timeout(self.connection()?.execute(&statement, given)).await
    }

    /// Executes statements without parameters.
    pub(super) async fn execute_batch(&self, sql: &str) -> Result<(), Error> {
        self.with_answer_timeout(self.connection()?.batch_execute(sql)).await
    }

    /// Executes statements without a timeout.
    pub(super) async fn execute_batch_without_timeout(&self, sql: &str) -> Result<(), Error> {
        self.connection()?.batch_execute(sql).await.map_err(error::map_error)
    }

    /// Queries a single row without a timeout.
    pub(super) async fn row_without_timeout(&self, sql: &str) -> Result<Row, Error> {
        self.connection()?.query_one(sql, &[]).await.map_err(error::map_error)
    }

    /// Prepares a statement, cached for the lifetime of the connection.
    pub(super) async fn prepare(&self, sql: &str) -> Result<Statement, Error> {
        self.with_answer_timeout(self.connection()?.prepare_cached(sql)).await
    }

    /// Runs a prepared statement. Concurrent calls are pipelined.
    pub(super) async fn run(&self, statement: &Statement, given: SqlParams<'_>) -> Result<Vec<Row>, Error> {
        self.with_answer_timeout(self.connection()?.query(statement, given)).await
    }

    /// Waits for the server with a timeout. A connection that has not answered is not reused.
    async fn with_answer_timeout<T>(
        &self,
        answer: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, Error> {
        self.with_timeout(ANSWER_TIMEOUT, answer).await
    }

    async fn with_timeout<T>(
        &self,
        most: Duration,
        answer: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, Error> {
        self.unanswered.fetch_add(1, Ordering::Relaxed);
        let answer = timeout(most, answer).await.map_err(|_| Error::Unavailable("it does not answer".to_owned()))?;
        self.unanswered.fetch_sub(1, Ordering::Relaxed);
        answer.map_err(error::map_error)
    }

    /// The driver's client, for operations such as COPY that are not a simple request and response.
    pub(super) fn connection(&self) -> Result<&Object, Error> {
        self.connection.as_ref().ok_or(Error::Closed)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if (self.in_transaction || self.unanswered.load(Ordering::Relaxed) > 0)
            && let Some(connection) = self.connection.take()
        {
            drop(Object::take(connection));
        }
    }
}

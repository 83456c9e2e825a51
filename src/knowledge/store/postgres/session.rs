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

use super::failure;
use crate::knowledge::store::Error;

/// A connection in exclusive use until it is returned to the pool.
#[derive(Debug)]
pub(super) struct Session {
    connection: Option<Object>,
    is_open: bool,
    /// Statements that were sent and not yet answered.
    asked: AtomicUsize,
}

/// Parameters of a statement.
pub(super) type Given<'a> = &'a [&'a (dyn ToSql + Sync)];

/// A server that does not answer for this long is considered unavailable; its own statement timeout is shorter.
const SILENCE: Duration = Duration::from_secs(40);
/// Timeout of BEGIN, which takes no locks.
const BEGIN: Duration = Duration::from_secs(10);
/// Maximum number of dead connections to skip in sequence, as after a restart of the server.
const DEAD: usize = 64;

impl Session {
    /// A session for single statements.
    pub(super) async fn plain(pool: &Pool) -> Result<Session, Error> {
        let connection = pool.get().await.map_err(failure::of_pool)?;
        Ok(Session { connection: Some(connection), is_open: false, asked: AtomicUsize::new(0) })
    }

    /// Begins a read-only transaction on one snapshot.
    pub(super) async fn reading(pool: &Pool) -> Result<Session, Error> {
        Session::begin(pool, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await
    }

    /// Begins a write transaction. Its changes are invisible until [`commit`](Session::commit).
    pub(super) async fn writing(pool: &Pool) -> Result<Session, Error> {
        Session::begin(pool, "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE").await
    }

    /// Pooled connections may be dead; no work has been done on them, so the next connection is tried. All attempts
    /// share one timeout: if one connection hangs, the rest would hang too.
    async fn begin(pool: &Pool, how: &str) -> Result<Session, Error> {
        let (mut tried, mut left) = (0, BEGIN);
        loop {
            let mut session = Session::plain(pool).await?;
            session.is_open = true;
            let asked = Instant::now();
            let begun = session.within(left, session.connection()?.batch_execute(how)).await;
            left = left.saturating_sub(asked.elapsed());
            match begun {
                Err(Error::Away(why)) if why != failure::STANDBY && tried < DEAD && !left.is_zero() => tried += 1,
                begun => return begun.map(|()| session),
            }
        }
    }

    /// Commits the transaction.
    pub(super) async fn commit(mut self) -> Result<(), Error> {
        self.batch("COMMIT").await?;
        self.is_open = false;
        Ok(())
    }

    /// Rolls back a transaction without relevant writes, and returns the connection to the pool.
    pub(super) async fn leave(mut self) -> Result<(), Error> {
        self.batch("ROLLBACK").await?;
        self.is_open = false;
        Ok(())
    }

    pub(super) async fn rows(&self, sql: &str, given: Given<'_>) -> Result<Vec<Row>, Error> {
        let statement = self.prepared(sql).await?;
        self.run(&statement, given).await
    }

    /// The same with a longer timeout. The caller raises the server's timeout.
    pub(super) async fn rows_within(&self, sql: &str, given: Given<'_>, most: Duration) -> Result<Vec<Row>, Error> {
        let statement = self.prepared(sql).await?;
        self.within(most, self.connection()?.query(&statement, given)).await
    }

    pub(super) async fn row(&self, sql: &str, given: Given<'_>) -> Result<Row, Error> {
        self.maybe(sql, given).await?.ok_or_else(|| Error::Internal("a row was expected".to_owned()))
    }

    pub(super) async fn maybe(&self, sql: &str, given: Given<'_>) -> Result<Option<Row>, Error> {
        Ok(self.rows(sql, given).await?.into_iter().next())
    }

    /// Executes a statement and returns the number of changed rows.
    pub(super) async fn execute(&self, sql: &str, given: Given<'_>) -> Result<u64, Error> {
        let statement = self.prepared(sql).await?;
        self.in_time(self.connection()?.execute(&statement, given)).await
    }

    /// Executes statements without parameters.
    pub(super) async fn batch(&self, sql: &str) -> Result<(), Error> {
        self.in_time(self.connection()?.batch_execute(sql)).await
    }

    /// Executes statements without a timeout.
    pub(super) async fn unhurried(&self, sql: &str) -> Result<(), Error> {
        self.connection()?.batch_execute(sql).await.map_err(failure::of)
    }

    /// Queries a single row without a timeout.
    pub(super) async fn unhurried_row(&self, sql: &str) -> Result<Row, Error> {
        self.connection()?.query_one(sql, &[]).await.map_err(failure::of)
    }

    /// Prepares a statement, cached for the lifetime of the connection.
    pub(super) async fn prepared(&self, sql: &str) -> Result<Statement, Error> {
        self.in_time(self.connection()?.prepare_cached(sql)).await
    }

    /// Runs a prepared statement. Concurrent calls are pipelined.
    pub(super) async fn run(&self, statement: &Statement, given: Given<'_>) -> Result<Vec<Row>, Error> {
        self.in_time(self.connection()?.query(statement, given)).await
    }

    /// Waits for the server with a timeout. A connection that has not answered is not reused.
    async fn in_time<T>(&self, answer: impl Future<Output = Result<T, tokio_postgres::Error>>) -> Result<T, Error> {
        self.within(SILENCE, answer).await
    }

    async fn within<T>(
        &self,
        most: Duration,
        answer: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, Error> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let answer = timeout(most, answer).await.map_err(|_| Error::Away("it does not answer".to_owned()))?;
        self.asked.fetch_sub(1, Ordering::Relaxed);
        answer.map_err(failure::of)
    }

    /// The driver's client, for operations such as COPY that are not a simple request and response.
    pub(super) fn connection(&self) -> Result<&Object, Error> {
        self.connection.as_ref().ok_or(Error::Closed)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if (self.is_open || self.asked.load(Ordering::Relaxed) > 0)
            && let Some(connection) = self.connection.take()
        {
            drop(Object::take(connection));
        }
    }
}

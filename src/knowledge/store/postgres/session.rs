//! A connection that was taken for one piece of work.
//!
//! A transaction that is not brought to its end takes its connection with it: the server then rolls back, and nobody gets a
//! connection in the middle of something. The same goes for a statement that nobody waited for. So whatever fails, or is dropped, leaves nothing half done.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use deadpool_postgres::{Object, Pool};
use tokio::time::timeout;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Row, Statement};

use super::failure;
use crate::knowledge::store::Error;

/// One connection, alone ours until it is given back.
#[derive(Debug)]
pub(super) struct Session {
    connection: Option<Object>,
    is_open: bool,
    /// Statements that were sent and not yet answered.
    asked: AtomicUsize,
}

/// What a statement is given.
pub(super) type Given<'a> = &'a [&'a (dyn ToSql + Sync)];

/// A server that says nothing for so long is away; it ends statements itself before that.
const SILENCE: Duration = Duration::from_secs(40);
/// Nobody works at what begins a transaction.
const BEGIN: Duration = Duration::from_secs(10);
/// So many connections may be found dead, one after the other, as after a restart of the server.
const DEAD: usize = 64;

impl Session {
    /// For single statements.
    pub(super) async fn plain(pool: &Pool) -> Result<Session, Error> {
        let connection = pool.get().await.map_err(failure::of_pool)?;
        Ok(Session { connection: Some(connection), is_open: false, asked: AtomicUsize::new(0) })
    }

    /// Reads, all as it was at one moment.
    pub(super) async fn reading(pool: &Pool) -> Result<Session, Error> {
        Session::begin(pool, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await
    }

    /// Writes, which are seen by nobody before [`commit`](Session::commit).
    pub(super) async fn writing(pool: &Pool) -> Result<Session, Error> {
        Session::begin(pool, "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE").await
    }

    /// Connections that lay in the pool may be dead; nothing has been done on them, so that others can be tried. Those who
    /// are silent are waited for once: the others would be as silent.
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

    /// Keeps what was written.
    pub(super) async fn commit(mut self) -> Result<(), Error> {
        self.batch("COMMIT").await?;
        self.is_open = false;
        Ok(())
    }

    /// Ends what has written nothing that counts, and keeps the connection.
    pub(super) async fn leave(mut self) -> Result<(), Error> {
        self.batch("ROLLBACK").await?;
        self.is_open = false;
        Ok(())
    }

    pub(super) async fn rows(&self, sql: &str, given: Given<'_>) -> Result<Vec<Row>, Error> {
        let statement = self.prepared(sql).await?;
        self.run(&statement, given).await
    }

    /// The same for what may take longer, on both sides.
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

    /// How many rows a statement has changed.
    pub(super) async fn execute(&self, sql: &str, given: Given<'_>) -> Result<u64, Error> {
        let statement = self.prepared(sql).await?;
        self.in_time(self.connection()?.execute(&statement, given)).await
    }

    /// Statements without values.
    pub(super) async fn batch(&self, sql: &str) -> Result<(), Error> {
        self.in_time(self.connection()?.batch_execute(sql)).await
    }

    /// Statements that may take as long as they take.
    pub(super) async fn unhurried(&self, sql: &str) -> Result<(), Error> {
        self.connection()?.batch_execute(sql).await.map_err(failure::of)
    }

    /// The one row of such a statement.
    pub(super) async fn unhurried_row(&self, sql: &str) -> Result<Row, Error> {
        self.connection()?.query_one(sql, &[]).await.map_err(failure::of)
    }

    /// A statement that stays prepared for as long as the connection lives.
    pub(super) async fn prepared(&self, sql: &str) -> Result<Statement, Error> {
        self.in_time(self.connection()?.prepare_cached(sql)).await
    }

    /// The rows of a prepared statement. Several at once go in one message to the server.
    pub(super) async fn run(&self, statement: &Statement, given: Given<'_>) -> Result<Vec<Row>, Error> {
        self.in_time(self.connection()?.query(statement, given)).await
    }

    /// Waits for the server, and not for ever. A connection that has not answered is nobody's any more.
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

    /// The driver's own client, for what is not asked and answered in one.
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

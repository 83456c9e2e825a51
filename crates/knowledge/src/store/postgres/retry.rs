//! Idempotent retry after a lost connection.
//!
//! If the connection is lost during a commit, the outcome is unknown. Callers of a store interpret an error as
//! "nothing was changed". Every write of documents and tasks is therefore retried until the database reports an
//! outcome. Each write is idempotent or detects its own earlier attempt.

use std::time::{Duration, Instant};

use tokio_postgres::Row;

use super::Store;
use super::session::{Session, SqlParams};
use crate::store::Error;

/// How long to retry an in-doubt write. A restarted database is back by then.
const IN_DOUBT_TIMEOUT: Duration = Duration::from_secs(60);
/// Delay before the next attempt.
const RETRY_DELAY: Duration = Duration::from_secs(1);

impl Store {
    /// Runs a single statement that is read-only or idempotent, and returns its rows. A pooled connection may be dead,
    /// so the statement is retried once on another connection.
    pub(super) async fn query_with_retry(&self, sql: &str, given: SqlParams<'_>) -> Result<Vec<Row>, Error> {
        // The first connection is released before a second one is acquired.
        let asked = self.autocommit().await?.rows(sql, given).await;
        match asked {
            Err(Error::Unavailable(_)) => self.autocommit().await?.rows(sql, given).await,
            asked => asked,
        }
    }

    /// Retries a write until its outcome is certain. The flag passed to `attempt` is true if an earlier attempt may
    /// have committed.
    ///
    /// If the database is unavailable from the start, nothing was written, and the call fails without a retry.
    pub(super) async fn write_with_retry<T, F>(&self, mut attempt: impl FnMut(Session, bool) -> F) -> Result<T, Error>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let mut done = attempt(self.begin_write().await?, false).await;
        if !matches!(done, Err(Error::Unavailable(_))) {
            return done;
        }
        let until = Instant::now() + IN_DOUBT_TIMEOUT;
        while Instant::now() < until {
            done = match self.begin_write().await {
                Ok(session) => attempt(session, true).await,
                Err(error) => Err(error),
            };
            // The caller retries after `Busy` without knowing that an earlier attempt may have committed.
            if !matches!(done, Err(Error::Unavailable(_) | Error::Busy)) {
                break;
            }
            tokio::time::sleep(RETRY_DELAY).await;
        }
        done
    }
}

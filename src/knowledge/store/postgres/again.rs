//! Asking once more when a connection was lost.
//!
//! Whoever loses the connection in the middle of a commit does not know whether it was made. The callers of a store take an
//! error for "nothing was changed". So every write of documents and tasks is asked for again, until the database tells;
//! each can be made twice, or knows its own traces.

use std::time::{Duration, Instant};

use tokio_postgres::Row;

use super::Store;
use super::session::{Given, Session};
use crate::knowledge::store::Error;

/// How long a database is waited for that may have done what it was asked. One that is started anew is back by then.
const DOUBT: Duration = Duration::from_secs(60);
/// How long to wait before the next attempt.
const PAUSE: Duration = Duration::from_secs(1);

impl Store {
    /// The rows of a single statement that reads, or that may be made twice. A connection may have died in the pool, so
    /// another one is tried.
    pub(super) async fn ask(&self, sql: &str, given: Given<'_>) -> Result<Vec<Row>, Error> {
        // The first connection is let go before another is waited for.
        let asked = self.plain().await?.rows(sql, given).await;
        match asked {
            Err(Error::Away(_)) => self.plain().await?.rows(sql, given).await,
            asked => asked,
        }
    }

    /// Writes until it is known to be written, or not to be. The attempt is told whether one before it may have done it.
    ///
    /// A database that is not there to begin with has done nothing; nobody waits for that.
    pub(super) async fn write_surely<T, F>(&self, mut attempt: impl FnMut(Session, bool) -> F) -> Result<T, Error>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let mut done = attempt(self.writing().await?, false).await;
        if !matches!(done, Err(Error::Away(_))) {
            return done;
        }
        let until = Instant::now() + DOUBT;
        while Instant::now() < until {
            done = match self.writing().await {
                Ok(session) => attempt(session, true).await,
                Err(error) => Err(error),
            };
            // Whoever is told that it is busy asks anew, and does not know what was asked before.
            if !matches!(done, Err(Error::Away(_) | Error::Busy)) {
                break;
            }
            tokio::time::sleep(PAUSE).await;
        }
        done
    }
}

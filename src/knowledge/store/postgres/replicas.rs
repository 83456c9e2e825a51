//! Databases that follow the primary, and are searched in turn.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use deadpool_postgres::Pool;
use tokio::time::Instant;

use super::CONNECTIONS;
use super::address::Address;
use super::session::Session;
use crate::knowledge::store::Error;
use crate::locked::locked;

/// So long one that did not answer is left alone: a machine that is gone says nothing, and everybody would wait for it.
const REST: Duration = Duration::from_secs(10);

/// All of them, and whose turn it is.
#[derive(Debug)]
pub(super) struct Replicas {
    all: Vec<Replica>,
    turn: AtomicUsize,
}

#[derive(Debug)]
struct Replica {
    pool: Pool,
    /// Not asked before this.
    rests: Mutex<Option<Instant>>,
}

impl Replicas {
    pub(super) fn of(addresses: &[Address]) -> Result<Replicas, Error> {
        let replica = |address: &Address| Ok(Replica { pool: address.pool(CONNECTIONS)?, rests: Mutex::default() });
        Ok(Replicas { all: addresses.iter().map(replica).collect::<Result<_, Error>>()?, turn: AtomicUsize::new(0) })
    }

    /// Reads from the next one that answers; none where none does.
    pub(super) async fn reading(&self) -> Option<Session> {
        let first = self.turn.fetch_add(1, Ordering::Relaxed);
        for at in 0..self.all.len() {
            let replica = &self.all[(first + at) % self.all.len()];
            if locked(&replica.rests).is_some_and(|until| Instant::now() < until) {
                continue;
            }
            match Session::reading(&replica.pool).await {
                Ok(session) => return Some(session),
                Err(error) => {
                    tracing::debug!(%error, "a replica of the knowledge base's database is left alone for a while");
                    *locked(&replica.rests) = Some(Instant::now() + REST);
                }
            }
        }
        None
    }
}

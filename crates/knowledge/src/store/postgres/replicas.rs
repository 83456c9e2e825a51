//! Read replicas for searches, used round-robin.
//!
//! A replica is used only while its last health check succeeded: it answers, it is a copy of this database, and its lag
//! is small. This is checked every few seconds; until the first check is complete, searches use the primary. The lag is
//! measured by this instance's heartbeat as stored on the primary and as replicated: both times come from the primary's
//! clock. A heartbeat is written every two seconds, so stopped replication is detected too.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, Weak};
use std::time::Duration;

use deadpool_postgres::Pool;
use futures_util::future::join_all;
use tokio::time::{Instant, sleep, timeout};
use uuid::Uuid;

use super::session::{self, Session};
use super::{Inner, MAX_CONNECTIONS, Store, rows};
use crate::store::Error;
use corbie_config::postgres_address::Address;
use corbie_util::lock::lock;

/// How long a failed replica is not used: a dead machine does not answer, and every search would wait for it.
const FAILURE_COOLDOWN: Duration = Duration::from_secs(10);
/// Timeout of a search on a replica; a dead machine does not answer.
const SEARCH_TIMEOUT: Duration = Duration::from_secs(15);
/// Maximum lag of a replica in use.
const MAX_LAG: Duration = Duration::from_secs(30);
/// Interval between two checks of all replicas, and the timeout of a check.
const CHECK_INTERVAL: Duration = Duration::from_secs(3);
const CHECK_TIMEOUT: Duration = Duration::from_secs(6);

/// All replicas, and the round-robin position.
#[derive(Debug)]
pub(super) struct Replicas {
    all: Vec<Replica>,
    next: AtomicUsize,
}

#[derive(Debug)]
pub(super) struct Replica {
    address: Address,
    pool: Pool,
    state: Mutex<ReplicaState>,
}

#[derive(Debug)]
struct ReplicaState {
    health: ReplicaHealth,
    /// Not used before this time.
    cooldown_until: Option<Instant>,
}

/// Whether a replica can be searched.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ReplicaHealth {
    /// Not checked yet.
    Unknown,
    Healthy,
    /// A sentence with the reason.
    Unhealthy(String),
}

/// Start and last heartbeat of this instance according to the primary, in milliseconds.
#[derive(Debug, Clone, Copy)]
struct HeartbeatTimes {
    started: i64,
    beat: i64,
}

/// A session for all reads of a search, on one snapshot of one database.
#[derive(Debug)]
pub(super) struct SearchSession<'r> {
    session: Session,
    /// None for the primary.
    replica: Option<&'r Replica>,
}

impl Store {
    /// Starts a read for a search, on a healthy replica if there is one, otherwise on the primary.
    pub(super) async fn begin_search(&self) -> Result<SearchSession<'_>, Error> {
        match self.0.replicas.begin_read().await {
            Some(reading) => Ok(reading),
            None => Ok(SearchSession { session: self.begin_read().await?, replica: None }),
        }
    }

    /// Falls back to the primary after any error of a replica during a search. An error of the primary is returned
    /// unchanged.
    pub(super) async fn fall_back_to_primary(
        &self,
        of: SearchSession<'_>,
        error: Error,
    ) -> Result<SearchSession<'_>, Error> {
        let Some(replica) = of.replica else { return Err(error) };
        replica.start_cooldown(&error);
        drop(of);
        Ok(SearchSession { session: self.begin_read().await?, replica: None })
    }
}

impl SearchSession<'_> {
    pub(super) fn session(&self) -> &Session {
        &self.session
    }

    /// Whether the data may be older than on the primary.
    pub(super) fn is_replica(&self) -> bool {
        self.replica.is_some()
    }

    /// Waits for a read. On a replica the timeout is short, because the primary is the fallback.
    pub(super) async fn with_timeout<T>(&self, read: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        match self.is_replica() {
            true => timeout(SEARCH_TIMEOUT, read).await.unwrap_or_else(|_| Err(no_answer())),
            false => read.await,
        }
    }

    /// Releases the connection. All data has been read, so an error does not matter.
    pub(super) async fn release(self) {
        let _ = self.session.rollback().await;
    }
}

impl Replicas {
    pub(super) fn of(addresses: &[Address]) -> Result<Replicas, Error> {
        let replica = |address: &Address| {
            let known = Mutex::new(ReplicaState { health: ReplicaHealth::Unknown, cooldown_until: None });
            Ok(Replica { address: address.clone(), pool: session::pool(address, MAX_CONNECTIONS)?, state: known })
        };
        Ok(Replicas { all: addresses.iter().map(replica).collect::<Result<_, Error>>()?, next: AtomicUsize::new(0) })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(super) fn is_any_healthy(&self) -> bool {
        self.all.iter().any(Replica::is_healthy)
    }

    /// Starts a read on the next healthy replica that answers, if any.
    async fn begin_read(&self) -> Option<SearchSession<'_>> {
        let first = self.next.fetch_add(1, Ordering::Relaxed);
        for at in 0..self.all.len() {
            let replica = &self.all[(first + at) % self.all.len()];
            if !replica.is_healthy() {
                continue;
            }
            let begun = timeout(SEARCH_TIMEOUT, Session::begin_read(&replica.pool)).await;
            match begun.unwrap_or_else(|_| Err(no_answer())) {
                Ok(session) => return Some(SearchSession { session, replica: Some(replica) }),
                Err(error) => replica.start_cooldown(&error),
            }
        }
        None
    }
}

/// Checks all replicas as long as the store is open.
pub(super) async fn check_loop(store: Weak<Inner>) {
    loop {
        let Some(shared) = store.upgrade() else { return };
        let primary = timeout(CHECK_TIMEOUT, primary_heartbeat(&shared.primary, shared.instance.id())).await;
        // Without the primary the lag cannot be measured.
        let primary = primary.ok().and_then(Result::ok).flatten();
        let id = shared.instance.id();
        join_all(shared.replicas.all.iter().map(|replica| replica.check(&shared.history, id, primary))).await;
        drop(shared);
        sleep(CHECK_INTERVAL).await;
    }
}

/// The heartbeat of this instance on the primary; None if its row was deleted.
async fn primary_heartbeat(pool: &Pool, id: Uuid) -> Result<Option<HeartbeatTimes>, Error> {
    let sql = "SELECT (extract(epoch FROM started) * 1000)::bigint, (extract(epoch FROM beat) * 1000)::bigint \
               FROM instances WHERE name = $1";
    let row = Session::autocommit(pool).await?.opt_row(sql, &[&id]).await?;
    row.map(|row| Ok(HeartbeatTimes { started: rows::get(&row, 0)?, beat: rows::get(&row, 1)? })).transpose()
}

impl Replica {
    fn is_healthy(&self) -> bool {
        let known = lock(&self.state);
        known.health == ReplicaHealth::Healthy && known.cooldown_until.is_none_or(|until| until <= Instant::now())
    }

    fn start_cooldown(&self, error: &Error) {
        tracing::debug!(%error, replica = %self.address, "replica failed; not using it for a while");
        lock(&self.state).cooldown_until = Some(Instant::now() + FAILURE_COOLDOWN);
    }

    async fn check(&self, history: &str, id: Uuid, primary: Option<HeartbeatTimes>) {
        let asked = timeout(CHECK_TIMEOUT, self.fetch_heartbeat(id)).await.unwrap_or_else(|_| Err(no_answer()));
        self.record_health(evaluate(history, primary, asked));
    }

    /// The ID of the replicated database, and the replicated heartbeat of this instance.
    async fn fetch_heartbeat(&self, id: Uuid) -> Result<(Option<String>, Option<i64>), Error> {
        let session = Session::autocommit(&self.pool).await?;
        let told = session.row("SELECT to_regclass('corbie.meta')::text", &[]).await?;
        if rows::get::<Option<String>>(&told, 0)?.is_none() {
            return Ok((None, None));
        }
        let sql = "SELECT (SELECT value FROM meta WHERE name = 'history'), \
                   (SELECT (extract(epoch FROM beat) * 1000)::bigint FROM instances WHERE name = $1)";
        let row = session.row(sql, &[&id]).await?;
        Ok((rows::get(&row, 0)?, rows::get(&row, 1)?))
    }

    /// Logs each change once.
    fn record_health(&self, fitness: ReplicaHealth) {
        let before = std::mem::replace(&mut lock(&self.state).health, fitness.clone());
        match &fitness {
            _ if fitness == before => {}
            ReplicaHealth::Unhealthy(why) if !matches!(before, ReplicaHealth::Unhealthy(_)) => {
                tracing::warn!(replica = %self.address, "replica excluded from searches: {why}");
            }
            ReplicaHealth::Healthy if matches!(before, ReplicaHealth::Unhealthy(_)) => {
                tracing::info!(replica = %self.address, "replica is used for searches again");
            }
            _ => {}
        }
    }
}

/// Evaluates a check of a replica.
fn evaluate(
    history: &str,
    primary: Option<HeartbeatTimes>,
    asked: Result<(Option<String>, Option<i64>), Error>,
) -> ReplicaHealth {
    let (told, beat) = match asked {
        Ok(seen) => seen,
        Err(Error::Unavailable(why)) => return ReplicaHealth::Unhealthy(format!("unreachable ({why})")),
        Err(error) => return ReplicaHealth::Unhealthy(error.to_string()),
    };
    if told.as_deref() != Some(history) {
        let why = "not a replica of the primary database; correct `knowledge.store_replicas`";
        return ReplicaHealth::Unhealthy(why.to_owned());
    }
    let behind = primary.map_or(0, |HeartbeatTimes { started, beat: last }| last - beat.unwrap_or(started));
    match u64::try_from(behind).is_ok_and(|behind| Duration::from_millis(behind) > MAX_LAG) {
        true => ReplicaHealth::Unhealthy(format!("replication lag exceeds {} s", MAX_LAG.as_secs())),
        false => ReplicaHealth::Healthy,
    }
}

fn no_answer() -> Error {
    Error::Unavailable("request timed out".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_800_000_000_000;

    #[track_caller]
    fn check(told: Option<&str>, beat: Option<i64>, primary: Option<HeartbeatTimes>, wanted: &str) {
        let told = told.map(str::to_owned);
        let said = match evaluate("a", primary, Ok((told, beat))) {
            ReplicaHealth::Healthy => "fit".to_owned(),
            ReplicaHealth::Unhealthy(why) => why,
            ReplicaHealth::Unknown => "unknown".to_owned(),
        };
        assert!(said.contains(wanted), "{said}");
    }

    #[test]
    fn a_replica_is_searched_that_follows_this_database_closely() {
        let primary = Some(HeartbeatTimes { started: NOW - 100_000, beat: NOW });
        check(Some("a"), Some(NOW), primary, "fit");
        check(Some("a"), Some(NOW + 2000), primary, "fit");
        check(Some("a"), Some(NOW - 29_000), primary, "fit");
        check(Some("a"), Some(NOW - 31_000), primary, "replication lag exceeds 30 s");
        check(Some("b"), Some(NOW), primary, "not a replica");
        check(None, None, primary, "not a replica");
    }

    #[test]
    fn one_that_has_never_heard_of_this_instance_is_behind_since_that_began() {
        check(Some("a"), None, Some(HeartbeatTimes { started: NOW - 1000, beat: NOW }), "fit");
        check(
            Some("a"),
            None,
            Some(HeartbeatTimes { started: NOW - 40_000, beat: NOW }),
            "replication lag exceeds 30 s",
        );
    }

    #[test]
    fn while_the_primary_is_away_nobody_is_behind() {
        check(Some("a"), Some(NOW - 1_000_000), None, "fit");
        check(Some("b"), None, None, "not a replica");
    }

    #[test]
    fn one_that_does_not_answer_is_not_searched() {
        let ReplicaHealth::Unhealthy(why) = evaluate("a", None, Err(no_answer())) else { panic!("it is fit") };
        assert_eq!(why, "unreachable (request timed out)");
    }
}

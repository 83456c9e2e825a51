//! Heartbeat of this instance, and the health of the store.
//!
//! The heartbeat has a dedicated connection that also carries [`ChangeFeed`](super::listen_notify).

use std::sync::{Arc, Mutex};
use std::time::Duration;

use deadpool_postgres::{Pool, Timeouts};
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};
use tokio_postgres::Client;

use super::instance::Instance;
use super::listen_notify::{ChangeFeed, listen, send_notification};
use super::{Store, error, session};
use crate::store::{Error, Health, HealthDiagnostic};
use corbie_config::postgres_address::Address;
use corbie_util::backoff::Backoff;
use corbie_util::lock::lock;
use corbie_util::supervisor::{TaskName, supervise};

/// Interval between two heartbeats.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(2);
/// Timeout of every statement on this connection.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(4);
/// Lock timeout for the tables that are polled.
const LOCK_TIMEOUT: Duration = Duration::from_millis(500);
/// Maximum backoff for reconnecting. A connection that lasted longer starts with the initial backoff again.
const MAX_BACKOFF: Duration = Duration::from_secs(4);
const RECONNECT_BACKOFF: Backoff = Backoff::new(Duration::from_millis(200), MAX_BACKOFF);
/// Time after an outage by which every live instance has sent a heartbeat again.
pub(super) const STABILIZATION_TIME: Duration = Duration::from_secs(10);
/// Number of heartbeats between two polls for missed changes, and between two size measurements.
const BEATS_PER_POLL: u64 = 2;
const BEATS_PER_MEASUREMENT: u64 = 15;
/// How long the row of a dead instance is retained for troubleshooting.
const DEAD_INSTANCE_RETENTION: &str = "interval '1 day'";

/// Runs as long as the store is open.
#[derive(Debug)]
pub(super) struct Heartbeat {
    inner: Arc<Inner>,
    task: JoinHandle<()>,
}

#[derive(Debug)]
struct Inner {
    changes: ChangeFeed,
    state: Mutex<State>,
    pool: Pool,
}

/// State as of the last check.
#[derive(Debug, Clone, Default)]
struct State {
    problem: Option<String>,
    bytes: u64,
    /// When the database was last unavailable.
    last_outage: Option<Instant>,
}

impl Heartbeat {
    /// Starts on a dedicated connection. It also checks the pool, because all other calls use it.
    pub(super) fn start(address: Address, instance: Instance, pool: Pool) -> Heartbeat {
        let inner = Arc::new(Inner { changes: ChangeFeed::new(), state: Mutex::default(), pool });
        let supervised = inner.clone();
        let run = move || supervised.clone().run(address.clone(), instance.clone());
        let task = tokio::spawn(supervise(TaskName("heartbeat"), run));
        Heartbeat { inner, task }
    }

    /// Changes by this instance, to be announced, and by others.
    pub(super) fn changes(&self) -> &ChangeFeed {
        &self.inner.changes
    }

    pub(super) fn health(&self) -> Health {
        health(lock(&self.inner.state).problem.as_deref())
    }

    /// Whether missing heartbeats are meaningful. After an outage of the database all heartbeats are old, and the
    /// first instance that reconnects must not consider the other instances dead.
    pub(super) fn is_stable(&self) -> bool {
        lock(&self.inner.state).last_outage.is_none_or(|outage| outage.elapsed() > STABILIZATION_TIME)
    }

    /// Size of the tables in bytes.
    pub(super) fn bytes(&self) -> u64 {
        lock(&self.inner.state).bytes
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Store {
    pub async fn health(&self) -> Result<Health, Error> {
        let asked = async { self.autocommit().await?.row("SELECT count(*) FROM bases", &[]).await };
        let trouble = match asked.await {
            Ok(_) => None,
            Err(Error::Unavailable(why)) => Some(why),
            Err(other) => Some(other.to_string()),
        };
        Ok(health(trouble.as_deref()))
    }

    /// Health as of the last heartbeat.
    pub fn cached_health(&self) -> Health {
        self.0.heartbeat.health()
    }

    /// Whether the primary and all replicas were unavailable at the last check.
    pub(crate) fn is_unreachable(&self) -> bool {
        self.cached_health().connected.is_err() && !self.0.replicas.is_any_healthy()
    }

    pub fn cached_size(&self) -> u64 {
        self.0.heartbeat.bytes()
    }
}

/// Health of a store with this connection problem.
fn health(problem: Option<&str>) -> Health {
    let connected = match problem {
        None => Ok(()),
        Some(why) => Err(HealthDiagnostic {
            problem: format!("is unreachable ({why})"),
            remedy: "start the database or correct `knowledge.store`; corbie reconnects automatically".to_owned(),
        }),
    };
    Health { connected, accessible: Ok(()) }
}

impl Inner {
    /// Reconnects after a failure.
    async fn run(self: Arc<Inner>, address: Address, instance: Instance) {
        let mut backoff = RECONNECT_BACKOFF;
        loop {
            let connected_at = Instant::now();
            let Err(error) = self.run_on_connection(&address, &instance).await else { return };
            tracing::debug!(%error, "reconnecting for notifications and heartbeats");
            {
                let mut state = lock(&self.state);
                state.last_outage = Some(Instant::now());
                state.problem = Some(match error {
                    Error::Unavailable(why) => why,
                    other => other.to_string(),
                });
            }
            // Jitter, so that many instances do not reconnect in the same moment.
            let jitter = u64::from(instance.id().as_bytes()[0]);
            if connected_at.elapsed() > MAX_BACKOFF {
                backoff.reset();
            }
            sleep(backoff.next_delay() + Duration::from_millis(jitter)).await;
        }
    }

    async fn run_on_connection(&self, address: &Address, instance: &Instance) -> Result<(), Error> {
        let (client, mut notifications) = with_timeout(session::connect_dedicated(address)).await?;
        with_timeout(listen(&client)).await?;
        // This connection does not wait for locked tables: an instance without a heartbeat is considered dead.
        let unlocked = format!("SET lock_timeout = '{}ms'", LOCK_TIMEOUT.as_millis());
        with_timeout(async { client.batch_execute(&unlocked).await.map_err(error::map_error) }).await?;
        let mut ticks = interval(HEARTBEAT_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut count = 0_u64;
        loop {
            tokio::select! {
                _ = ticks.tick() => {
                    self.send_heartbeat(&client, instance, count).await?;
                    count += 1;
                }
                notification = notifications.recv() => {
                    let notification =
                        notification.ok_or_else(|| Error::Unavailable("connection lost".to_owned()))?;
                    self.changes.on_notification(notification.payload(), instance);
                }
                topic = self.changes.next_announcement() => {
                    with_timeout(send_notification(&client, topic, instance)).await?;
                }
            }
        }
    }

    async fn send_heartbeat(&self, client: &Client, instance: &Instance, count: u64) -> Result<(), Error> {
        let sql = "INSERT INTO instances (name, host) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET beat = now()";
        let (id, host) = (instance.id(), instance.host());
        with_timeout(async { client.execute(sql, &[&id, &host]).await.map_err(error::map_error) }).await?;
        let problem = self.pool_problem().await;
        lock(&self.state).problem = problem;
        // Also with the first heartbeat, because earlier notifications were missed.
        if count.is_multiple_of(BEATS_PER_POLL) {
            ignore_busy(with_timeout(self.changes.poll(client)).await)?;
        }
        if count.is_multiple_of(BEATS_PER_MEASUREMENT) {
            ignore_busy(self.measure(client).await)?;
        }
        Ok(())
    }

    /// Why the pool cannot provide a connection: the server may have too many, or may refuse new ones. A pool with all
    /// connections in use is not a problem.
    async fn pool_problem(&self) -> Option<String> {
        let timeouts = Timeouts {
            wait: Some(Duration::ZERO),
            create: Some(STATEMENT_TIMEOUT / 2),
            recycle: Some(STATEMENT_TIMEOUT / 2),
        };
        // These timeouts do not cover the settings that a new connection runs.
        match timeout(STATEMENT_TIMEOUT / 2, self.pool.timeout_get(&timeouts)).await {
            Err(_) => Some("request timed out".to_owned()),
            Ok(Err(error)) => match error::map_pool_error(error) {
                Error::Unavailable(why) => Some(why),
                _ => None,
            },
            Ok(Ok(_)) => None,
        }
    }

    async fn measure(&self, client: &Client) -> Result<(), Error> {
        let sql = "SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class \
                   WHERE relnamespace = 'corbie'::regnamespace AND relkind = 'r'";
        let row = with_timeout(async { client.query_one(sql, &[]).await.map_err(error::map_error) }).await?;
        lock(&self.state).bytes = row.get::<_, i64>(0).cast_unsigned();
        let sql = format!("DELETE FROM instances WHERE beat < now() - {DEAD_INSTANCE_RETENTION}");
        with_timeout(async { client.batch_execute(&sql).await.map_err(error::map_error) }).await
    }
}

/// Ignores locked tables until the next poll.
fn ignore_busy(result: Result<(), Error>) -> Result<(), Error> {
    match result {
        Err(Error::Busy) => Ok(()),
        result => result,
    }
}

async fn with_timeout<T>(statement: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    timeout(STATEMENT_TIMEOUT, statement)
        .await
        .unwrap_or_else(|_| Err(Error::Unavailable("request timed out".to_owned())))
}

//! Heartbeat and LISTEN/NOTIFY on one dedicated connection.
//!
//! Notifications are sent separately from the writes they announce, and at most once per [`PAUSE`], because PostgreSQL
//! serializes all commits that contain a NOTIFY. Polling makes up for a notification that is lost with this process or
//! with the connection.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use deadpool_postgres::{Pool, Timeouts};
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};
use tokio_postgres::Client;

use super::address::Address;
use super::failure;
use super::instance::Instance;
use crate::knowledge::store::{Error, Health, Trouble};
use crate::locked::locked;
use crate::supervised::{Name, supervised};

/// Interval between two heartbeats.
const BEAT: Duration = Duration::from_secs(2);
/// Timeout of every statement on this connection.
const PATIENCE: Duration = Duration::from_secs(4);
/// Lock timeout for the tables that are polled.
const UNLOCKED: Duration = Duration::from_millis(500);
/// Delay between two notifications. Also the initial backoff for reconnecting; the second value is its maximum.
const PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(4);
/// Time after an outage by which every live instance has sent a heartbeat again.
pub(super) const STEADY: Duration = Duration::from_secs(10);
/// Number of heartbeats between two polls for missed changes, and between two size measurements.
const LOOK: u64 = 2;
const MEASURE: u64 = 15;
/// How long the row of a dead instance is retained for troubleshooting.
const FORGOTTEN: &str = "interval '1 day'";
pub(super) const CHANNEL: &str = "corbie";

/// Changes by other instances. The numbers count notifications.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Heard {
    pub documents: u64,
    /// The taxonomy and the tokens.
    pub files: u64,
    /// The set of available models. The database stores nothing about it: every instance queries the providers
    /// periodically.
    pub models: u64,
}

/// Values that differ after a change.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Marks {
    documents: i64,
    files: i64,
}

/// Runs as long as the store is open.
#[derive(Debug)]
pub(super) struct Pulse {
    shared: Arc<Shared>,
    beating: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    documents: Notify,
    models: Notify,
    heard: watch::Sender<Heard>,
    known: Mutex<Known>,
    pool: Pool,
}

/// State as of the last check.
#[derive(Debug, Clone, Default)]
struct Known {
    trouble: Option<String>,
    bytes: u64,
    /// When the database was last unavailable.
    troubled: Option<Instant>,
    marks: Marks,
}

impl Pulse {
    /// Starts on a dedicated connection. It also checks the pool, because all other calls use it.
    pub(super) fn start(address: Address, instance: Instance, pool: Pool) -> Pulse {
        let shared = Arc::new(Shared {
            documents: Notify::new(),
            models: Notify::new(),
            heard: watch::Sender::new(Heard::default()),
            known: Mutex::default(),
            pool,
        });
        let beats = shared.clone();
        let beat = move || beats.clone().beat(address.clone(), instance.clone());
        let beating = tokio::spawn(supervised(Name("heartbeat"), beat));
        Pulse { shared, beating }
    }

    /// Notifies other instances that documents have changed.
    pub(super) fn tell_documents(&self) {
        self.shared.documents.notify_one();
    }

    /// Notifies other instances that the set of available models has changed.
    pub(super) fn tell_models(&self) {
        self.shared.models.notify_one();
    }

    pub(super) fn heard(&self) -> watch::Receiver<Heard> {
        self.shared.heard.subscribe()
    }

    pub(super) fn health(&self) -> Health {
        health(locked(&self.shared.known).trouble.as_deref())
    }

    /// Whether missing heartbeats are meaningful. After an outage of the database all heartbeats are old, and the
    /// first instance that reconnects must not consider the other instances dead.
    pub(super) fn is_steady(&self) -> bool {
        locked(&self.shared.known).troubled.is_none_or(|troubled| troubled.elapsed() > STEADY)
    }

    /// Size of the tables in bytes.
    pub(super) fn bytes(&self) -> u64 {
        locked(&self.shared.known).bytes
    }
}

impl Drop for Pulse {
    fn drop(&mut self) {
        self.beating.abort();
    }
}

/// Health of a store with this connection problem.
pub(super) fn health(trouble: Option<&str>) -> Health {
    let connected = match trouble {
        None => Ok(()),
        Some(why) => Err(Trouble {
            what: format!("cannot be reached ({why})"),
            next: "start the database, or correct `knowledge.store`; it is tried again by itself".to_owned(),
        }),
    };
    Health { connected, accessible: Ok(()) }
}

impl Shared {
    /// Reconnects after a failure.
    async fn beat(self: Arc<Shared>, address: Address, instance: Instance) {
        let mut pause = PAUSE;
        loop {
            let begun = Instant::now();
            let Err(error) = self.beat_on_one(&address, &instance).await else { return };
            tracing::debug!(%error, "the connection for notices and heartbeats is made anew");
            {
                let mut known = locked(&self.known);
                known.troubled = Some(Instant::now());
                known.trouble = Some(match error {
                    Error::Away(why) => why,
                    other => other.to_string(),
                });
            }
            // Jitter, so that many instances do not reconnect in the same moment.
            let jitter = u64::from(instance.id().as_bytes()[0]);
            pause = if begun.elapsed() > LONGEST_PAUSE { PAUSE } else { (pause * 2).min(LONGEST_PAUSE) };
            sleep(pause + Duration::from_millis(jitter)).await;
        }
    }

    async fn beat_on_one(&self, address: &Address, instance: &Instance) -> Result<(), Error> {
        let (client, mut said) = in_time(address.alone()).await?;
        in_time(async { client.batch_execute(&format!("LISTEN {CHANNEL}")).await.map_err(failure::of) }).await?;
        // This connection does not wait for locked tables: an instance without a heartbeat is considered dead.
        let unlocked = format!("SET lock_timeout = '{}ms'", UNLOCKED.as_millis());
        in_time(async { client.batch_execute(&unlocked).await.map_err(failure::of) }).await?;
        let mut beats = interval(BEAT);
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut beaten = 0_u64;
        loop {
            tokio::select! {
                _ = beats.tick() => {
                    self.beat_once(&client, instance, beaten).await?;
                    beaten += 1;
                }
                notice = said.recv() => {
                    let notice = notice.ok_or_else(|| Error::Away("the connection was lost".to_owned()))?;
                    self.hear(notice.payload(), instance);
                }
                () = self.documents.notified() => tell(&client, "documents", instance).await?,
                () = self.models.notified() => tell(&client, "models", instance).await?,
            }
        }
    }

    async fn beat_once(&self, client: &Client, instance: &Instance, beaten: u64) -> Result<(), Error> {
        let sql = "INSERT INTO instances (name, host) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET beat = now()";
        let (id, host) = (instance.id(), instance.host());
        in_time(async { client.execute(sql, &[&id, &host]).await.map_err(failure::of) }).await?;
        let trouble = self.pool_trouble().await;
        locked(&self.known).trouble = trouble;
        // Also with the first heartbeat, because earlier notifications were missed.
        if beaten.is_multiple_of(LOOK) {
            unless_busy(self.look(client).await)?;
        }
        if beaten.is_multiple_of(MEASURE) {
            unless_busy(self.measure(client).await)?;
        }
        Ok(())
    }

    /// Why the pool cannot provide a connection: the server may have too many, or may refuse new ones. A pool with all
    /// connections in use is not a problem.
    async fn pool_trouble(&self) -> Option<String> {
        let timeouts = Timeouts { wait: Some(Duration::ZERO), create: Some(PATIENCE / 2), recycle: Some(PATIENCE / 2) };
        // These timeouts do not cover the settings that a new connection runs.
        match timeout(PATIENCE / 2, self.pool.timeout_get(&timeouts)).await {
            Err(_) => Some("it does not answer".to_owned()),
            Ok(Err(error)) => match failure::of_pool(error) {
                Error::Away(why) => Some(why),
                _ => None,
            },
            Ok(Ok(_)) => None,
        }
    }

    async fn measure(&self, client: &Client) -> Result<(), Error> {
        let sql = "SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class \
                   WHERE relnamespace = 'corbie'::regnamespace AND relkind = 'r'";
        let row = in_time(async { client.query_one(sql, &[]).await.map_err(failure::of) }).await?;
        locked(&self.known).bytes = row.get::<_, i64>(0).cast_unsigned();
        let sql = format!("DELETE FROM instances WHERE beat < now() - {FORGOTTEN}");
        in_time(async { client.batch_execute(&sql).await.map_err(failure::of) }).await
    }

    /// Polls for changes with a missed notification.
    async fn look(&self, client: &Client) -> Result<(), Error> {
        let sql = "SELECT (SELECT coalesce(bit_xor(mark), 0) FROM sums), \
                   (SELECT coalesce(sum(newest), 0)::bigint FROM (SELECT max(version) AS newest FROM files GROUP BY name) AS f)";
        let row = in_time(async { client.query_one(sql, &[]).await.map_err(failure::of) }).await?;
        let marks = Marks { documents: row.get(0), files: row.get(1) };
        let before = std::mem::replace(&mut locked(&self.known).marks, marks);
        self.heard.send_if_modified(|heard| {
            heard.documents += u64::from(marks.documents != before.documents);
            heard.files += u64::from(marks.files != before.files);
            marks != before
        });
        Ok(())
    }

    fn hear(&self, notice: &str, instance: &Instance) {
        let (what, who) = notice.split_once(' ').unwrap_or((notice, ""));
        if who == instance.name() {
            return;
        }
        self.heard.send_if_modified(|heard| {
            let before = *heard;
            heard.documents += u64::from(what == "documents");
            heard.files += u64::from(what == "files");
            heard.models += u64::from(what == "models");
            *heard != before
        });
    }
}

/// Ignores locked tables until the next poll.
fn unless_busy(looked: Result<(), Error>) -> Result<(), Error> {
    match looked {
        Err(Error::Busy) => Ok(()),
        looked => looked,
    }
}

/// Sends a notification and then pauses. Changes during the pause are announced right after it.
async fn tell(client: &Client, what: &str, instance: &Instance) -> Result<(), Error> {
    let notice = format!("{what} {}", instance.name());
    in_time(async { client.execute("SELECT pg_notify($1, $2)", &[&CHANNEL, &notice]).await.map_err(failure::of) })
        .await?;
    sleep(PAUSE).await;
    Ok(())
}

async fn in_time<T>(answer: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    timeout(PATIENCE, answer).await.unwrap_or_else(|_| Err(Error::Away("it does not answer".to_owned())))
}

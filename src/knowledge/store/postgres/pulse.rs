//! The one connection that is always there: it says that this instance lives, hears what others have changed, and tells them.
//!
//! Notices are sent aside from the writes they are about, and not more often than [`PAUSE`]: PostgreSQL has all commits with
//! a notice wait for each other. One that is lost, with this process or with the connection, is made up for by looking.

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

/// How often an instance says that it lives.
const BEAT: Duration = Duration::from_secs(2);
/// How long the server may take for anything that is asked here.
const PATIENCE: Duration = Duration::from_secs(4);
/// How long it may take until a table can be looked at.
const UNLOCKED: Duration = Duration::from_millis(500);
/// Between two notices, and between two attempts to connect, at first and at most.
const PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(4);
/// So long after the database was away, all who live have beaten again.
pub(super) const STEADY: Duration = Duration::from_secs(10);
/// Beats between two looks at what may have changed unheard, and between two measurements.
const LOOK: u64 = 2;
const MEASURE: u64 = 15;
/// A row of an instance that died is kept for those who look for what happened.
const FORGOTTEN: &str = "interval '1 day'";
pub(super) const CHANNEL: &str = "corbie";

/// What others have changed, as often as it is known: the numbers count notices.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Heard {
    pub documents: u64,
    /// The taxonomy, the tokens.
    pub files: u64,
    /// Models that can be asked, as somebody has found them. Nothing of them is in the database: every instance asks for
    /// them itself now and then.
    pub models: u64,
}

/// What tells that something has changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Marks {
    documents: i64,
    files: i64,
}

/// Runs for as long as the store is open.
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

/// As it was when it was last looked at.
#[derive(Debug, Clone, Default)]
struct Known {
    trouble: Option<String>,
    bytes: u64,
    /// When the database was last found to be away.
    troubled: Option<Instant>,
    marks: Marks,
}

impl Pulse {
    /// On a connection of its own; those of the pool are looked at too, as everybody else needs one of them.
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
        let beating = tokio::spawn(supervised(Name("heartbeats"), beat));
        Pulse { shared, beating }
    }

    /// Has others know that documents have changed.
    pub(super) fn tell_documents(&self) {
        self.shared.documents.notify_one();
    }

    /// Has others know that other models can be asked.
    pub(super) fn tell_models(&self) {
        self.shared.models.notify_one();
    }

    pub(super) fn heard(&self) -> watch::Receiver<Heard> {
        self.shared.heard.subscribe()
    }

    pub(super) fn health(&self) -> Health {
        health(locked(&self.shared.known).trouble.as_deref())
    }

    /// Whether others would have been heard of if they lived: after a database was away, all heartbeats are old, and whoever
    /// comes back first must not take the others for dead.
    pub(super) fn is_steady(&self) -> bool {
        locked(&self.shared.known).troubled.is_none_or(|troubled| troubled.elapsed() > STEADY)
    }

    /// How many bytes the database's tables take.
    pub(super) fn bytes(&self) -> u64 {
        locked(&self.shared.known).bytes
    }
}

impl Drop for Pulse {
    fn drop(&mut self) {
        self.beating.abort();
    }
}

/// How a store is whose database has this trouble.
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
    /// Goes on with another connection where one fails.
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
            // Many instances do not come back in the same moment.
            let jitter = u64::from(instance.id().as_bytes()[0]);
            pause = if begun.elapsed() > LONGEST_PAUSE { PAUSE } else { (pause * 2).min(LONGEST_PAUSE) };
            sleep(pause + Duration::from_millis(jitter)).await;
        }
    }

    async fn beat_on_one(&self, address: &Address, instance: &Instance) -> Result<(), Error> {
        let (client, mut said) = in_time(address.alone()).await?;
        in_time(async { client.batch_execute(&format!("LISTEN {CHANNEL}")).await.map_err(failure::of) }).await?;
        // Nothing here waits for tables that somebody works at: who does not beat is taken for dead.
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
        // With the first beat too: whatever was said before this was not heard.
        if beaten.is_multiple_of(LOOK) {
            unless_busy(self.look(client).await)?;
        }
        if beaten.is_multiple_of(MEASURE) {
            unless_busy(self.measure(client).await)?;
        }
        Ok(())
    }

    /// Why no connection is to be had: there may be too many, or others may not come in any more. That all are in use is no
    /// trouble.
    async fn pool_trouble(&self) -> Option<String> {
        let timeouts = Timeouts { wait: Some(Duration::ZERO), create: Some(PATIENCE / 2), recycle: Some(PATIENCE / 2) };
        // What a connection is told when it is made counts for none of these.
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

    /// Looks for what has changed and was not heard of.
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

/// What somebody works at is looked at the next time.
fn unless_busy(looked: Result<(), Error>) -> Result<(), Error> {
    match looked {
        Err(Error::Busy) => Ok(()),
        looked => looked,
    }
}

/// Tells the others, and then says nothing for a while: what changes meanwhile is told at once after that.
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

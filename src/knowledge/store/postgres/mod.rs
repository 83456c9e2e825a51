//! PostgreSQL store that several instances of the program share.
//!
//! The database is the single source of truth and also holds the search indexes: an inverted index in `postings`, and
//! vectors in pgvector. An instance caches nothing that another instance could invalidate.
//!
//! The contract of each operation is documented in `store/`.
//!
//! Every write is one transaction and is acknowledged after the commit. To prevent deadlocks, locks are taken in this
//! order: the task, the content and path of a document (advisory, sorted), the document row, derived data.

mod address;
mod again;
mod aside;
mod care;
mod check;
mod chunks;
mod clear;
mod contents;
mod copies;
mod copy;
mod decisions;
mod documents;
mod doubt;
mod examined;
mod facets;
mod failure;
mod files;
mod hnsw;
mod imported;
mod instance;
mod keys;
mod letters;
mod listing;
mod models;
mod moved;
mod orphans;
mod postings;
mod prune;
mod pulse;
mod put;
mod rates;
mod ready;
mod renamed;
mod replicas;
mod rows;
mod schema;
mod search;
mod session;
mod sums;
mod taken;
mod task_end;
mod task_list;
mod task_rows;
mod tasks;
mod text;
mod uploaded;
mod uploads;
mod vacuum;
mod watched;
mod written;

use std::sync::Arc;

use corbie_mcp::StateKey;
use deadpool_postgres::Pool;

pub use address::Address;
pub use examined::{Examined, Lists, examine};
pub use files::{Files, Version};
pub use models::Model;
pub use pulse::Heard;
pub use schema::VERSION;
pub use search::Sought;

use aside::aside;
use doubt::Doubt;
use instance::Instance;
use pulse::Pulse;
use replicas::Replicas;
use session::Session;
use tokio::sync::watch;

use super::{Error, Options};
use crate::supervised::{Name, supervised};

/// The store of a knowledge base. Cheap to clone; all clones share the same state.
#[derive(Debug, Clone)]
pub struct Store(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    address: Address,
    primary: Pool,
    replicas: Replicas,
    options: Options,
    history: String,
    state_key: StateKey,
    instance: Instance,
    pulse: Pulse,
    left: vacuum::Left,
    doubt: Doubt,
}

/// Low bits of a chunk key that hold its ordinal in the document; the bits above hold the content version (`writing`).
const KEYS: u32 = 20;

/// Connections per database.
const CONNECTIONS: usize = 10;

impl Store {
    /// Opens the store in a database and creates its tables if they do not exist.
    pub async fn connect(address: &Address, replicas: &[Address], options: Options) -> Result<Store, Error> {
        let primary = address.pool(CONNECTIONS)?;
        schema::migrate(Session::writing(&primary).await?).await?;
        let session = Session::plain(&primary).await?;
        postings::suit(&session).await?;
        let (history, state_key) = (schema::history(&session).await?, keys::state_key(&session).await?);
        drop(session);
        let replicas = Replicas::of(replicas)?;
        let instance = Instance::take(&primary).await?;
        let shared = Arc::new(Shared {
            pulse: Pulse::start(address.clone(), instance.clone(), primary.clone()),
            address: address.clone(),
            primary,
            replicas,
            options,
            history,
            state_key,
            instance,
            left: vacuum::Left::default(),
            doubt: Doubt::default(),
        });
        let store = Arc::downgrade(&shared);
        tokio::spawn(supervised(Name("posting_compaction"), move || care::run(store.clone())));
        if !shared.replicas.is_empty() {
            let store = Arc::downgrade(&shared);
            tokio::spawn(supervised(Name("replica_checks"), move || replicas::look_after(store.clone())));
        }
        Ok(Store(shared))
    }

    /// Name of this process among all processes that share the store.
    pub fn instance(&self) -> &str {
        self.0.instance.name()
    }

    /// Identifies the database, independent of its address.
    pub fn history(&self) -> &str {
        &self.0.history
    }

    /// Address of the database, for display.
    pub fn address(&self) -> &Address {
        &self.0.address
    }

    /// Subscribes to changes made by other instances.
    pub fn heard(&self) -> watch::Receiver<Heard> {
        self.0.pulse.heard()
    }

    /// Notifies other instances that the set of available models has changed.
    pub fn tell_models(&self) {
        self.0.pulse.tell_models();
    }

    /// A session for a single statement.
    async fn plain(&self) -> Result<Session, Error> {
        Session::plain(&self.0.primary).await
    }

    async fn reading(&self) -> Result<Session, Error> {
        Session::reading(&self.0.primary).await
    }

    async fn writing(&self) -> Result<Session, Error> {
        Session::writing(&self.0.primary).await
    }
}

/// Deregisters the instance, so that other instances need not wait for a missed heartbeat.
impl Drop for Shared {
    fn drop(&mut self) {
        let (pool, id) = (self.primary.clone(), self.instance.id());
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(async move {
            if let Ok(session) = Session::plain(&pool).await {
                let _ = session.execute("DELETE FROM instances WHERE name = $1", &[&id]).await;
            }
        });
    }
}

//! PostgreSQL store that several instances of the program share.
//!
//! The database is the single source of truth and also holds the search indexes: an inverted index in `postings`, and
//! vectors in pgvector. An instance caches nothing that another instance could invalidate.
//!
//! The contract of each operation is documented in `store/`.
//!
//! Every write is one transaction and is acknowledged after the commit. To prevent deadlocks, locks are taken in this
//! order: the task, the content and path of a document (advisory, sorted), the document row, derived data.

mod case_folding;
mod check;
mod chunks;
mod clear;
mod compaction;
mod copy_in;
mod corpus_stats;
mod decision_log;
mod delete_content;
mod diagnostics;
mod documents;
mod duplicates;
mod encoded_document;
mod error;
mod heartbeat;
mod hnsw;
mod import_checkpoint;
mod in_doubt;
mod instance;
mod listen_notify;
mod listing;
mod migration_io;
mod models;
mod orphaned_tasks;
mod postings;
mod postings_merge;
mod rate_usage;
mod replicas;
mod retry;
mod rows;
mod schema;
mod search;
mod session;
mod synced_files;
mod task_completion;
mod task_rows;
mod tasks;
mod text;
mod uploads;
mod upsert_document;
mod watched_files;

use std::sync::Arc;

use corbie_mcp::StateKey;
use deadpool_postgres::Pool;

pub use corbie_config::postgres_address::Address;
pub use diagnostics::{DatabaseDiagnostics, PostingListSize, diagnose};
pub use listen_notify::ChangeCounters;
pub use models::ModelRow;
pub use schema::VERSION;
pub use search::{SearchHit, SearchQuery};
pub use synced_files::{FileVersion, SyncedFiles};

use heartbeat::Heartbeat;
use in_doubt::InDoubtTasks;
use instance::Instance;
use replicas::Replicas;
use session::Session;
use tokio::sync::watch;

use super::{Error, Options};
use corbie_util::supervisor::{TaskName, supervise};

/// The store of a knowledge base. Cheap to clone; all clones share the same state.
#[derive(Debug, Clone)]
pub struct Store(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    address: Address,
    primary: Pool,
    replicas: Replicas,
    options: Options,
    history: String,
    state_key: StateKey,
    instance: Instance,
    heartbeat: Heartbeat,
    dead_rows: compaction::DeadRows,
    in_doubt: InDoubtTasks,
}

/// Low bits of a chunk key that hold its ordinal in the document; the bits above hold the content version (`writing`).
const ORDINAL_BITS: u32 = 20;

/// Connections per database.
const MAX_CONNECTIONS: usize = 10;

impl Store {
    /// Opens the store in a database and creates its tables if they do not exist.
    pub async fn connect(address: &Address, replicas: &[Address], options: Options) -> Result<Store, Error> {
        let primary = session::pool(address, MAX_CONNECTIONS)?;
        schema::migrate(Session::begin_write(&primary).await?).await?;
        let session = Session::autocommit(&primary).await?;
        postings::check_analyzer_version(&session).await?;
        let (history, state_key) = (schema::history(&session).await?, schema::state_key(&session).await?);
        schema::note_creation(&session).await?;
        drop(session);
        let replicas = Replicas::of(replicas)?;
        let instance = Instance::register(&primary).await?;
        let shared = Arc::new(Inner {
            heartbeat: Heartbeat::start(address.clone(), instance.clone(), primary.clone()),
            address: address.clone(),
            primary,
            replicas,
            options,
            history,
            state_key,
            instance,
            dead_rows: compaction::DeadRows::default(),
            in_doubt: InDoubtTasks::default(),
        });
        let store = Arc::downgrade(&shared);
        tokio::spawn(supervise(TaskName("posting_compaction"), move || compaction::run(store.clone())));
        if !shared.replicas.is_empty() {
            let store = Arc::downgrade(&shared);
            tokio::spawn(supervise(TaskName("replica_checks"), move || replicas::check_loop(store.clone())));
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
    pub fn subscribe_changes(&self) -> watch::Receiver<ChangeCounters> {
        self.0.heartbeat.changes().subscribe()
    }

    /// Notifies other instances that the set of available models has changed.
    pub fn notify_models_changed(&self) {
        self.0.heartbeat.changes().notify_models_changed();
    }

    /// A session for a single statement.
    async fn autocommit(&self) -> Result<Session, Error> {
        Session::autocommit(&self.0.primary).await
    }

    async fn begin_read(&self) -> Result<Session, Error> {
        Session::begin_read(&self.0.primary).await
    }

    async fn begin_write(&self) -> Result<Session, Error> {
        Session::begin_write(&self.0.primary).await
    }
}

/// Deregisters the instance, so that other instances need not wait for a missed heartbeat.
impl Drop for Inner {
    fn drop(&mut self) {
        let (pool, id) = (self.primary.clone(), self.instance.id());
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(async move {
            if let Ok(session) = Session::autocommit(&pool).await {
                let _ = session.execute("DELETE FROM instances WHERE name = $1", &[&id]).await;
            }
        });
    }
}

/// Runs CPU-bound work on a blocking thread, so that database I/O and heartbeats are not delayed.
async fn run_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Error> {
    tokio::task::spawn_blocking(work).await.map_err(|error| Error::Internal(error.to_string()))
}

//! The knowledge base: document storage, ingestion and search.
//!
//! [`Knowledge`] is the knowledge base of one process. It is opened on first use, and a store that cannot be opened
//! fails only the calls that need it. `store` is the source of truth, `retriever` searches it, and `backend`
//! opens both. `jobs` schedules the tasks that add documents, and `ingest` processes one file.

pub mod backend;
mod base_stats;
pub mod chat_model;
mod chunk_context;
mod clock_guard;
pub mod control_socket;
pub mod date;
pub mod decision_log;
pub mod document;
mod error;
mod estimate;
mod file_discovery;
mod filter;
pub mod grounding;
mod health;
pub mod image_description;
pub mod ingest;
pub mod jobs;
mod local_index;
pub mod mcp_tasks;
mod metrics;
mod notifications;
mod open_nofollow;
mod page_match;
pub mod path_policy;
mod postgres_retriever;
pub mod progress;
mod removal;
pub mod resources;
mod retriever;
pub mod retry;
pub mod search;
mod shared_rate_limit;
mod skipped_files;
pub mod store;
pub mod task;
pub mod tools;
pub mod upload;
mod watcher;
pub mod workers;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use corbie_mcp::{Event, Server};
use futures_util::future::BoxFuture;
use tokio::sync::{OnceCell, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::image_description::ImageDescriber;
use crate::workers::WorkerPool;
use backend::StorageBackend;
use clock_guard::ClockGuard;
use corbie_classify::inference::Inference;
use corbie_config::documents::Documents;
use corbie_config::knowledge as config;
use corbie_config::ocr::Ocr;
use corbie_util::backoff::Backoff;
use corbie_util::lock::lock;
use corbie_util::supervisor::{TaskName, supervise_until};
use document::DocumentId;
pub use error::{Error, more_formats};
use ingest::Ingester;
use jobs::JobScheduler;
use path_policy::{CheckLimiter, FileInfo, PathPolicy};
use retriever::Retriever;
pub use skipped_files::{LEAVING, NAMED_LINKS};
use store::Store;

/// The knowledge base of one process. Clones share the same state.
#[derive(Debug, Clone)]
pub struct Knowledge(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    settings: config::Knowledge,
    pool: WorkerPool,
    inference: Inference,
    describer: Option<ImageDescriber>,
    open: OnceCell<OpenState>,
    /// Signals that the knowledge base is open.
    is_open: watch::Sender<bool>,
    /// Why the last attempt to open it failed.
    open_error: Mutex<Option<Error>>,
    /// Whether an existing store has not been opened yet, and is opened at startup.
    is_opening: AtomicBool,
    /// Receives change notifications.
    server: OnceLock<Server>,
    /// Whether other machines can reach the server, so files are added only from allowed folders (S-11).
    is_remotely_reachable: AtomicBool,
    /// Whether this process is short-lived and does not adopt tasks.
    skips_adoption: AtomicBool,
    check_limiter: CheckLimiter,
    stop: CancellationToken,
    background_tasks: TaskTracker,
}

/// State of an open knowledge base.
#[derive(Debug, Clone)]
pub struct OpenState {
    pub store: Store,
    pub retriever: Retriever,
    pub scheduler: JobScheduler,
    pub storage: PathBuf,
}

/// Timeout for handing unfinished tasks back to the store.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum duration of the checkpoint at the end of the program.
const CHECKPOINT_TIMEOUT: Duration = Duration::from_secs(3);
/// Interval of the maintenance loop, and after how many iterations it catches up with changes and prunes expired data.
/// Each iteration checks for tasks that other processes cancelled.
const MAINTENANCE_INTERVAL: Duration = Duration::from_secs(1);
const CATCH_UP_EVERY: u32 = 5;
const PRUNE_EVERY: u32 = 600;

/// Backoff for connecting to a database.
const OPEN_BACKOFF: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(15));

/// Origin of a request to add a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallerOrigin {
    /// The parent process, the command line, or a watched folder.
    Local,
    /// A network listener. If other users can reach it, callers may not add arbitrary files.
    Remote,
    /// The holder of a token without full trust. It has no access to files of this machine, even from this machine.
    Restricted,
}

impl Knowledge {
    pub fn new(
        settings: config::Knowledge,
        documents: &Documents,
        ocr: &Ocr,
        inference: Inference,
        describer: Option<ImageDescriber>,
    ) -> Knowledge {
        // The specification defines separate limits for added documents.
        let documents =
            Documents { workers: Some(documents.workers().max(settings.max_concurrent_tasks)), ..documents.clone() };
        let language = settings.ocr.language.clone().unwrap_or_else(|| ocr.language.clone());
        let pool = WorkerPool::new(documents, Ocr { language, ..ocr.clone() });
        Knowledge(Arc::new(Inner {
            settings,
            pool,
            inference,
            describer,
            open: OnceCell::new(),
            is_open: watch::Sender::new(false),
            open_error: Mutex::default(),
            is_opening: AtomicBool::new(false),
            server: OnceLock::new(),
            is_remotely_reachable: AtomicBool::new(false),
            skips_adoption: AtomicBool::new(false),
            check_limiter: CheckLimiter::default(),
            stop: CancellationToken::new(),
            background_tasks: TaskTracker::new(),
        }))
    }

    pub fn settings(&self) -> &config::Knowledge {
        &self.0.settings
    }

    pub fn inference(&self) -> &Inference {
        &self.0.inference
    }

    /// Marks the server as reachable from other machines.
    pub fn set_remotely_reachable(&self) {
        self.0.is_remotely_reachable.store(true, Ordering::Relaxed);
    }

    /// Disables adoption of orphaned tasks: a short-lived command would not finish them.
    pub fn skip_adoption(&self) {
        self.0.skips_adoption.store(true, Ordering::Relaxed);
    }

    /// Sets the server that receives change notifications.
    pub fn set_server(&self, server: Server) {
        let _ = self.0.server.set(server);
        self.share_signing_key(self.open_state());
    }

    /// Shares the signing key, so that state issued to clients by one instance is valid at all instances of a store.
    fn share_signing_key(&self, open: Option<&OpenState>) {
        if let (Some(server), Some(OpenState { store: Store::Shared(store), .. })) = (self.server(), open) {
            server.set_shared_state_key(store.state_key());
        }
    }

    pub fn server(&self) -> Option<&Server> {
        self.0.server.get()
    }

    /// Opens the knowledge base on the first call. After a failure the next call tries again.
    pub async fn open(&self) -> Result<&OpenState, Error> {
        let opened = self.0.open.get_or_try_init(|| self.open_backend()).await;
        *lock(&self.0.open_error) = opened.as_ref().err().cloned();
        if opened.is_ok() {
            self.0.is_open.send_if_modified(|open| !std::mem::replace(open, true));
        }
        opened
    }

    /// Waits until it is open and returns the storage folder. `None` if it never opens.
    pub async fn wait_until_open(&self) -> Option<PathBuf> {
        let mut is_open = self.0.is_open.subscribe();
        let opened = is_open.wait_for(|open| *open).await.is_ok();
        self.open_state().filter(|_| opened).map(|open| open.storage.clone())
    }

    /// The open knowledge base, if it is open.
    pub fn open_state(&self) -> Option<&OpenState> {
        self.0.open.get()
    }

    /// The shared PostgreSQL store, once it is open.
    pub fn shared_store(&self) -> Option<&store::postgres::Store> {
        match &self.open_state()?.store {
            Store::Shared(store) => Some(store),
            Store::Embedded(_) => None,
        }
    }

    /// Whether the database is unavailable, so that a search would only wait. Background tasks reconnect.
    pub fn is_search_unavailable(&self) -> bool {
        match self.shared_store() {
            Some(store) => store.is_unreachable(),
            None => self.0.settings.store.is_some() && self.open_error().is_some_and(|error| error.is_transient()),
        }
    }

    /// Whether an existing store is being opened at startup.
    fn is_opening(&self) -> bool {
        self.0.is_opening.load(Ordering::Relaxed)
    }

    /// Why the last attempt to open it failed.
    pub fn open_error(&self) -> Option<Error> {
        // Of two concurrent attempts, the failed one may be the last to store its result.
        match self.open_state() {
            Some(_) => None,
            None => lock(&self.0.open_error).clone(),
        }
    }

    /// Checks at startup that the storage can be opened, so that `/health` does not wait for the first call (T-41). An
    /// existing store counts as impaired until [`Knowledge::resume`] has opened it; a missing one is not created.
    pub async fn check_storage(&self) {
        if backend::exists(&self.0.settings) {
            self.0.is_opening.store(true, Ordering::Relaxed);
            return;
        }
        let checked = match self.storage() {
            Ok(storage) => backend::check_creatable(&self.0.settings, &storage).await,
            Err(error) => Err(error),
        };
        let error = checked.err();
        let is_new = error.as_ref().map(ToString::to_string) != self.open_error().map(|before| before.to_string());
        if let Some(error) = error.as_ref().filter(|_| is_new) {
            tracing::error!(%error, "the knowledge base cannot be created");
        }
        *lock(&self.0.open_error) = error;
    }

    /// Opens an existing store at startup so that interrupted tasks resume. A missing store is created on first use;
    /// until then its folder is checked again while it cannot be used.
    pub async fn resume(self) {
        let mut backoff = OPEN_BACKOFF;
        loop {
            let exists = backend::exists(&self.0.settings);
            if exists || !self.0.settings.watch.is_empty() {
                let opened = self.open().await;
                self.0.is_opening.store(false, Ordering::Relaxed);
                let Err(error) = opened else { return };
                tracing::error!(%error, "cannot open the knowledge base");
                // A database may become available again. A file that cannot be opened needs an operator.
                if exists && self.0.settings.store.is_none() {
                    return;
                }
            } else {
                self.check_storage().await;
                if self.open_error().is_none() {
                    return;
                }
            }
            tokio::select! {
                () = tokio::time::sleep(backoff.next_delay()) => {}
                () = self.0.stop.cancelled() => return,
            }
        }
    }

    fn storage(&self) -> Result<PathBuf, Error> {
        self.0.settings.storage_dir().ok_or_else(|| Error::Storage {
            code: "storage_not_found",
            message: "no user data folder found; set `knowledge.storage_path`".into(),
        })
    }

    /// Boxed because of a recursive type: ingestion may call a model to describe an image, and a model call may search
    /// the knowledge base.
    fn open_backend(&self) -> BoxFuture<'_, Result<OpenState, Error>> {
        Box::pin(self.open_backend_unboxed())
    }

    async fn open_backend_unboxed(&self) -> Result<OpenState, Error> {
        let shared = &*self.0;
        let kept = StorageBackend::open(&shared.settings, self.storage()?, &shared.inference).await?;
        let reader = Ingester {
            pool: shared.pool.clone(),
            inference: shared.inference.clone(),
            describer: shared.describer.clone(),
            chunk_settings: corbie_extract::chunk::Settings {
                size: shared.settings.chunk_size,
                overlap: shared.settings.chunk_overlap,
            },
            ocr_enabled: shared.settings.ocr.enabled,
            path_policy: self.path_policy(CallerOrigin::Local),
            listing_policy: PathPolicy::new(&shared.settings.allowed_roots, shared.settings.max_file_bytes()),
        };
        let together = shared.settings.max_concurrent_tasks;
        let work = JobScheduler::new(reader, kept.clone(), together, shared.stop.clone());
        if !shared.skips_adoption.load(Ordering::Relaxed) {
            work.adopt().await?;
            let adopting = work.clone();
            let adopt = move || adopting.clone().adopt_loop();
            shared.background_tasks.spawn(supervise_until(shared.stop.clone(), TaskName("task_adoption"), adopt));
        }
        let running = work.clone();
        shared
            .background_tasks
            .spawn(supervise_until(shared.stop.clone(), TaskName("job_scheduler"), move || running.clone().run()));
        let StorageBackend { store, retriever: finder, storage } = kept;
        let open = OpenState { store, retriever: finder, scheduler: work, storage };
        let (knowledge, care) = (self.clone(), open.clone());
        let look_after = move || knowledge.clone().maintain(care.clone());
        shared.background_tasks.spawn(supervise_until(shared.stop.clone(), TaskName("maintenance"), look_after));
        self.share_signing_key(Some(&open));
        if let Store::Shared(store) = &open.store {
            let (knowledge, heard) = (self.clone(), store.subscribe_changes());
            let hear = move || notifications::forward_remote_changes(knowledge.clone(), heard.clone());
            shared.background_tasks.spawn(supervise_until(shared.stop.clone(), TaskName("change_notifications"), hear));
            let (knowledge, store) = (self.clone(), store.clone());
            let share = move || shared_rate_limit::sync_loop(knowledge.clone(), store.clone());
            shared.background_tasks.spawn(supervise_until(shared.stop.clone(), TaskName("rate_limit_sync"), share));
        }
        Ok(open)
    }

    /// Periodic maintenance until shutdown.
    async fn maintain(self, open: OpenState) {
        let OpenState { store, retriever: finder, scheduler: work, storage } = open;
        let keep = self.0.settings.task_retention.get().max(Duration::from_secs(3600));
        let mut clock = ClockGuard::new();
        for look in 1u32.. {
            tokio::select! {
                () = tokio::time::sleep(MAINTENANCE_INTERVAL) => {}
                () = self.0.stop.cancelled() => break,
            }
            clock.check();
            let often = async {
                let (stored, worked) = (store.maintain().await, work.sync_with_store().await);
                stored.map_err(Error::from).and(worked)
            };
            let seldom = async {
                if look.is_multiple_of(CATCH_UP_EVERY) {
                    finder.catch_up().await?;
                }
                if look % PRUNE_EVERY == 1 {
                    // Limits by count apply regardless of the clock.
                    let (keep, uploads) = match clock.is_trustworthy() {
                        true => (keep, self.0.settings.upload_retention.get()),
                        false => (Duration::MAX, Duration::MAX),
                    };
                    store.prune_tasks(date::now(), keep).await?;
                    let folder = storage.clone();
                    let named = store.upload_refs().await?;
                    upload::shared_store::sweep(&store, uploads, &named).await?;
                    run_blocking(move || upload::sweep(&folder, uploads, &named)).await?;
                }
                Ok::<_, Error>(())
            };
            // A failure of one step does not skip the other.
            for looked in [often.await, seldom.await] {
                if let Err(error) = looked {
                    tracing::debug!(%error, "store maintenance failed");
                }
            }
            if look.is_multiple_of(CATCH_UP_EVERY)
                && let Err(error) = finder.save().await
            {
                tracing::warn!(%error, "cannot save the index files; the next start will take longer");
            }
        }
        if let Err(error) = finder.save().await {
            tracing::warn!(%error, "cannot save the index files; the next start will take longer");
        }
    }

    /// Stops new work and waits for the work in progress until the deadline. The next start resumes the rest.
    pub async fn shut_down(&self, until: Instant) {
        self.0.stop.cancel();
        self.0.background_tasks.close();
        let done = async {
            if let Some(open) = self.open_state() {
                open.scheduler.wait_finished().await;
                if let Err(error) = open.retriever.save().await {
                    tracing::warn!(%error, "cannot save the index files; the next start will take longer");
                }
            }
            self.0.background_tasks.wait().await;
        };
        let in_time = tokio::time::timeout_at(until, done).await.is_ok();
        let Some(open) = self.open_state() else { return };
        // Bounded, because other instances detect the missing heartbeat anyway if the database is unavailable.
        let handed_back = tokio::time::timeout(RELEASE_TIMEOUT, open.store.release_tasks()).await;
        match handed_back.unwrap_or_else(|_| Err(store::Error::Unavailable("request timed out".to_owned()))) {
            Ok(0) => {}
            Ok(tasks) => tracing::info!(tasks, in_time, "unfinished tasks resume at the next start"),
            Err(error) => {
                tracing::warn!(%error, "cannot release unfinished tasks");
                return;
            }
        }
        // The runtime may end the process before the store is dropped.
        let checkpointed = tokio::time::timeout(CHECKPOINT_TIMEOUT, open.store.checkpoint()).await;
        if !matches!(checkpointed, Ok(Ok(()))) {
            tracing::warn!("cannot checkpoint the write-ahead log; the next start does it");
        }
    }

    /// Path rules for an origin.
    pub fn path_policy(&self, whence: CallerOrigin) -> PathPolicy {
        let shared = &*self.0;
        let mut rules = PathPolicy::new(&shared.settings.allowed_roots, shared.settings.max_file_bytes());
        if let (true, Ok(storage)) = (!rules.roots.is_empty() || self.needs_roots(whence), self.storage()) {
            // Uploads were authorized when they were received.
            rules = rules.with_root(&storage.join(UPLOAD_DIR));
        }
        rules
    }

    /// Checks a file that is to be added, with bounded concurrency.
    pub async fn check(&self, rules: PathPolicy, path: PathBuf) -> Result<FileInfo, Error> {
        self.0.check_limiter.check(rules, path).await
    }

    /// Whether a caller may add only uploads because no folders are allowed (S-11).
    pub fn needs_roots(&self, whence: CallerOrigin) -> bool {
        let everything = match whence {
            CallerOrigin::Local => true,
            CallerOrigin::Remote => !self.0.is_remotely_reachable.load(Ordering::Relaxed),
            CallerOrigin::Restricted => false,
        };
        !everything && self.0.settings.allowed_roots.is_empty()
    }

    /// Completes at shutdown.
    pub async fn stopped(&self) {
        self.0.stop.cancelled().await;
    }

    /// Runs a supervised task until shutdown. Shutdown waits for it until the deadline.
    pub fn spawn_supervised<Work: Future<Output = ()> + Send + 'static>(
        &self,
        name: TaskName,
        make: impl FnMut() -> Work + Send + 'static,
    ) {
        self.0.background_tasks.spawn(supervise_until(self.0.stop.clone(), name, make));
    }

    fn background_tasks(&self) -> &TaskTracker {
        &self.0.background_tasks
    }

    /// Notifies subscribed clients that the documents have changed, and which of them, if that is known.
    pub fn notify_documents_changed(&self, changed: impl IntoIterator<Item = DocumentId>) {
        let Some(server) = self.server() else { return };
        server.publish(Event::ResourcesChanged);
        for id in changed {
            server.publish(Event::ResourceUpdated(resources::document_uri(id).into()));
        }
    }
}

/// Subfolder of the storage for uploads.
pub const UPLOAD_DIR: &str = "uploads";

/// Runs a blocking or CPU-bound function on a blocking thread.
async fn run_blocking<T: Send + 'static>(run: impl FnOnce() -> T + Send + 'static) -> Result<T, Error> {
    tokio::task::spawn_blocking(run).await.map_err(|error| Error::Internal(error.to_string()))
}

/// Truncates caller input for an error message.
fn truncate_for_error(text: &str) -> String {
    let mut clipped: String = text.chars().take(100).collect();
    if clipped.len() < text.len() {
        clipped.push('…');
    }
    clipped
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

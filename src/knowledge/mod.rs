//! The knowledge base: document storage, ingestion and search.
//!
//! [`Knowledge`] is the knowledge base of one process. It is opened on first use, and a store that cannot be opened
//! fails only the calls that need it. `store` is the source of truth, `finder` searches it, and `kept` opens
//! both. `work` schedules the tasks that add documents, and `ingest` processes one file.

mod change;
pub mod date;
pub mod decisions;
pub mod document;
mod error;
mod estimate;
pub mod far;
mod filter;
mod finder;
mod folder;
mod follow;
pub mod grounding;
mod health;
pub mod ingest;
pub(crate) mod kept;
mod library;
pub mod local;
mod metrics;
mod named;
mod notices;
pub mod patience;
mod rates;
pub mod resources;
pub mod search;
mod shared;
mod skipped;
pub mod source;
mod steady;
pub mod store;
pub mod task;
pub mod tasks_view;
pub mod tools;
mod unlinked;
pub mod upload;
mod watched;
pub mod work;

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

use crate::config::documents::Documents;
use crate::config::knowledge as config;
use crate::config::ocr::Ocr;
use crate::describe::Describer;
use crate::inference::Inference;
use crate::locked::locked;
use crate::supervised::{Name, supervised_until};
use crate::workers::Pool;
pub use error::{Error, more_formats};
use finder::Finder;
use ingest::Reader;
use kept::Kept;
pub(crate) use skipped::{LEAVING, NAMED_LINKS};
use source::{Checks, Facts, Rules};
use steady::Steady;
use store::Store;
use work::Work;

/// The knowledge base of one process. Clones share the same state.
#[derive(Debug, Clone)]
pub struct Knowledge(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    settings: config::Knowledge,
    pool: Pool,
    inference: Inference,
    describer: Option<Describer>,
    open: OnceCell<Open>,
    /// Signals that the knowledge base is open.
    is_open: watch::Sender<bool>,
    /// Why the last attempt to open it failed.
    failure: Mutex<Option<Error>>,
    /// Receives change notifications.
    server: OnceLock<Server>,
    /// Whether other machines can reach the server, so files are added only from allowed folders (S-11).
    reachable: AtomicBool,
    /// Whether this process is short-lived and does not adopt tasks.
    leaves_tasks: AtomicBool,
    checks: Checks,
    stop: CancellationToken,
    going: TaskTracker,
}

/// State of an open knowledge base.
#[derive(Debug, Clone)]
pub struct Open {
    pub store: Store,
    pub finder: Finder,
    pub work: Work,
    pub storage: PathBuf,
}

/// Timeout for handing unfinished tasks back to the store.
const HANDING_BACK: Duration = Duration::from_secs(5);
/// Maximum duration of the checkpoint at the end of the program.
const CHECKPOINT_TIMEOUT: Duration = Duration::from_secs(3);
/// Interval of the maintenance loop, and after how many iterations it catches up with changes and prunes expired data.
/// Each iteration checks for tasks that other processes cancelled.
const LOOK: Duration = Duration::from_secs(1);
const CATCH_UP_EVERY: u32 = 5;
const PRUNE_EVERY: u32 = 600;

/// Initial and maximum backoff for connecting to a database.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(15);

/// Origin of a request to add a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whence {
    /// The parent process, the command line, or a watched folder.
    Here,
    /// A network listener. If other users can reach it, callers may not add arbitrary files.
    Outside,
    /// The holder of a token without full trust. It has no access to files of this machine, even from this machine.
    Guest,
}

impl Knowledge {
    pub fn new(
        settings: config::Knowledge,
        documents: &Documents,
        ocr: &Ocr,
        inference: Inference,
        describer: Option<Describer>,
    ) -> Knowledge {
        // The specification defines separate limits for added documents.
        let documents =
            Documents { workers: Some(documents.workers().max(settings.max_concurrent_tasks)), ..documents.clone() };
        let language = settings.ocr.language.clone().unwrap_or_else(|| ocr.language.clone());
        let pool = Pool::new(documents, Ocr { language, ..ocr.clone() });
        Knowledge(Arc::new(Shared {
            settings,
            pool,
            inference,
            describer,
            open: OnceCell::new(),
            is_open: watch::Sender::new(false),
            failure: Mutex::default(),
            server: OnceLock::new(),
            reachable: AtomicBool::new(false),
            leaves_tasks: AtomicBool::new(false),
            checks: Checks::default(),
            stop: CancellationToken::new(),
            going: TaskTracker::new(),
        }))
    }

    pub fn settings(&self) -> &config::Knowledge {
        &self.0.settings
    }

    pub fn inference(&self) -> &Inference {
        &self.0.inference
    }

    /// Marks the server as reachable from other machines.
    pub fn reachable_by_others(&self) {
        self.0.reachable.store(true, Ordering::Relaxed);
    }

    /// Disables adoption of orphaned tasks: a short-lived command would not finish them.
    pub fn leave_tasks(&self) {
        self.0.leaves_tasks.store(true, Ordering::Relaxed);
    }

    /// Sets the server that receives change notifications.
    pub fn tell(&self, server: Server) {
        let _ = self.0.server.set(server);
        self.share_key(self.opened());
    }

    /// Shares the signing key, so that state issued to clients by one instance is valid at all instances of a store.
    fn share_key(&self, open: Option<&Open>) {
        if let (Some(server), Some(Open { store: Store::Shared(store), .. })) = (self.server(), open) {
            server.share_state_key(store.state_key());
        }
    }

    pub fn server(&self) -> Option<&Server> {
        self.0.server.get()
    }

    /// Opens the knowledge base on the first call. After a failure the next call tries again.
    pub async fn open(&self) -> Result<&Open, Error> {
        let opened = self.0.open.get_or_try_init(|| self.begin()).await;
        *locked(&self.0.failure) = opened.as_ref().err().cloned();
        if opened.is_ok() {
            self.0.is_open.send_if_modified(|open| !std::mem::replace(open, true));
        }
        opened
    }

    /// Waits until it is open and returns the storage folder. `None` if it never opens.
    pub(crate) async fn when_open(&self) -> Option<PathBuf> {
        let mut is_open = self.0.is_open.subscribe();
        let opened = is_open.wait_for(|open| *open).await.is_ok();
        self.opened().filter(|_| opened).map(|open| open.storage.clone())
    }

    /// The open knowledge base, if it is open.
    pub fn opened(&self) -> Option<&Open> {
        self.0.open.get()
    }

    /// The shared PostgreSQL store, once it is open.
    pub(crate) fn shared_store(&self) -> Option<&store::postgres::Store> {
        match &self.opened()?.store {
            Store::Shared(store) => Some(store),
            Store::Embedded(_) => None,
        }
    }

    /// Whether the database is unavailable, so that a search would only wait. Background tasks reconnect.
    pub(crate) fn cannot_search(&self) -> bool {
        match self.shared_store() {
            Some(store) => store.is_out_of_reach(),
            None => self.0.settings.store.is_some() && self.failure().is_some_and(|error| error.passes()),
        }
    }

    /// Why the last attempt to open it failed.
    pub fn failure(&self) -> Option<Error> {
        // Of two concurrent attempts, the failed one may be the last to store its result.
        match self.opened() {
            Some(_) => None,
            None => locked(&self.0.failure).clone(),
        }
    }

    /// Opens an existing store at startup so that interrupted tasks resume. A missing store is created on first use.
    pub async fn resume(self) {
        let there = kept::is_there(&self.0.settings);
        if !there && self.0.settings.watch.is_empty() {
            return;
        }
        let mut pause = FIRST_PAUSE;
        while let Err(error) = self.open().await {
            tracing::error!(%error, "the knowledge base cannot be opened");
            // A database may become available again. A file that cannot be opened needs an operator.
            if self.0.settings.store.is_none() {
                return;
            }
            tokio::select! {
                () = tokio::time::sleep(pause) => pause = (2 * pause).min(LONGEST_PAUSE),
                () = self.0.stop.cancelled() => return,
            }
        }
    }

    fn storage(&self) -> Result<PathBuf, Error> {
        self.0.settings.storage().ok_or_else(|| Error::Storage {
            code: "storage_not_found",
            message: "nobody knows where the user's data belong; set `knowledge.storage_path`".into(),
        })
    }

    /// Boxed because of a recursive type: ingestion may call a model to describe an image, and a model call may search
    /// the knowledge base.
    fn begin(&self) -> BoxFuture<'_, Result<Open, Error>> {
        Box::pin(self.begin_unboxed())
    }

    async fn begin_unboxed(&self) -> Result<Open, Error> {
        let shared = &*self.0;
        let kept = Kept::open(&shared.settings, self.storage()?, &shared.inference).await?;
        let reader = Reader {
            pool: shared.pool.clone(),
            inference: shared.inference.clone(),
            describer: shared.describer.clone(),
            chunks: corbie_extract::chunk::Settings {
                size: shared.settings.chunk_size,
                overlap: shared.settings.chunk_overlap,
            },
            looks: shared.settings.ocr.enabled,
            rules: self.rules(Whence::Here),
            folders: Rules::new(&shared.settings.allowed_roots, shared.settings.max_file_bytes()),
        };
        let together = shared.settings.max_concurrent_tasks;
        let work = Work::new(reader, kept.clone(), together, shared.stop.clone());
        if !shared.leaves_tasks.load(Ordering::Relaxed) {
            work.adopt().await?;
            let adopting = work.clone();
            let adopt = move || adopting.clone().keep_adopting();
            shared.going.spawn(supervised_until(shared.stop.clone(), Name("task_adoption"), adopt));
        }
        let running = work.clone();
        shared.going.spawn(supervised_until(shared.stop.clone(), Name("job_scheduler"), move || running.clone().run()));
        let Kept { store, finder, storage } = kept;
        let open = Open { store, finder, work, storage };
        let (knowledge, care) = (self.clone(), open.clone());
        let look_after = move || knowledge.clone().look_after(care.clone());
        shared.going.spawn(supervised_until(shared.stop.clone(), Name("maintenance"), look_after));
        self.share_key(Some(&open));
        if let Store::Shared(store) = &open.store {
            let (knowledge, heard) = (self.clone(), store.heard());
            let hear = move || notices::hear(knowledge.clone(), heard.clone());
            shared.going.spawn(supervised_until(shared.stop.clone(), Name("change_notifications"), hear));
            let (knowledge, store) = (self.clone(), store.clone());
            let share = move || rates::share(knowledge.clone(), store.clone());
            shared.going.spawn(supervised_until(shared.stop.clone(), Name("rate_limit_sync"), share));
        }
        Ok(open)
    }

    /// Periodic maintenance until shutdown.
    async fn look_after(self, open: Open) {
        let Open { store, finder, work, storage } = open;
        let keep = self.0.settings.task_retention.get().max(Duration::from_secs(3600));
        let mut clock = Steady::new();
        for look in 1u32.. {
            tokio::select! {
                () = tokio::time::sleep(LOOK) => {}
                () = self.0.stop.cancelled() => break,
            }
            clock.look();
            let often = async {
                let (stored, worked) = (store.look_after().await, work.look_after().await);
                stored.map_err(Error::from).and(worked)
            };
            let seldom = async {
                if look.is_multiple_of(CATCH_UP_EVERY) {
                    finder.catch_up().await?;
                }
                if look % PRUNE_EVERY == 1 {
                    // Limits by count apply regardless of the clock.
                    let (keep, uploads) = match clock.is_believed() {
                        true => (keep, self.0.settings.upload_retention.get()),
                        false => (Duration::MAX, Duration::MAX),
                    };
                    store.prune_tasks(date::now(), keep).await?;
                    let folder = storage.clone();
                    let named = store.uploads().await?;
                    upload::shared::sweep(&store, uploads, &named).await?;
                    blocking(move || upload::sweep(&folder, uploads, &named)).await?;
                }
                Ok::<_, Error>(())
            };
            // A failure of one step does not skip the other.
            for looked in [often.await, seldom.await] {
                if let Err(error) = looked {
                    tracing::debug!(%error, "the store could not be looked at");
                }
            }
            if look.is_multiple_of(CATCH_UP_EVERY)
                && let Err(error) = finder.save().await
            {
                tracing::warn!(%error, "the files of the index cannot be written; the next start will take longer");
            }
        }
        if let Err(error) = finder.save().await {
            tracing::warn!(%error, "the files of the index cannot be written; the next start will take longer");
        }
    }

    /// Stops new work and waits for the work in progress until the deadline. The next start resumes the rest.
    pub async fn finish(&self, until: Instant) {
        self.0.stop.cancel();
        self.0.going.close();
        let done = async {
            if let Some(open) = self.opened() {
                open.work.finished().await;
                if let Err(error) = open.finder.save().await {
                    tracing::warn!(%error, "the files of the index cannot be written; the next start will take longer");
                }
            }
            self.0.going.wait().await;
        };
        let in_time = tokio::time::timeout_at(until, done).await.is_ok();
        let Some(open) = self.opened() else { return };
        // Bounded, because other instances detect the missing heartbeat anyway if the database is unavailable.
        let handed_back = tokio::time::timeout(HANDING_BACK, open.store.hand_back_tasks()).await;
        match handed_back.unwrap_or_else(|_| Err(store::Error::Away("it does not answer".to_owned()))) {
            Ok(0) => {}
            Ok(tasks) => tracing::info!(tasks, in_time, "documents that are not added yet wait for the next start"),
            Err(error) => {
                tracing::warn!(%error, "unfinished tasks could not be handed back");
                return;
            }
        }
        // The runtime may end the process before the store is dropped.
        let checkpointed = tokio::time::timeout(CHECKPOINT_TIMEOUT, open.store.checkpoint()).await;
        if !matches!(checkpointed, Ok(Ok(()))) {
            tracing::warn!("the write-ahead log was not written back; the next start does it");
        }
    }

    /// Path rules for an origin.
    pub fn rules(&self, whence: Whence) -> Rules {
        let shared = &*self.0;
        let mut rules = Rules::new(&shared.settings.allowed_roots, shared.settings.max_file_bytes());
        if let (true, Ok(storage)) = (!rules.roots.is_empty() || self.needs_roots(whence), self.storage()) {
            // Uploads were authorized when they were received.
            rules = rules.and(&storage.join(UPLOADS));
        }
        rules
    }

    /// Checks a file that is to be added, with bounded concurrency.
    pub async fn check(&self, rules: Rules, path: PathBuf) -> Result<Facts, Error> {
        self.0.checks.check(rules, path).await
    }

    /// Whether a caller may add only uploads because no folders are allowed (S-11).
    pub fn needs_roots(&self, whence: Whence) -> bool {
        let everything = match whence {
            Whence::Here => true,
            Whence::Outside => !self.0.reachable.load(Ordering::Relaxed),
            Whence::Guest => false,
        };
        !everything && self.0.settings.allowed_roots.is_empty()
    }

    /// Completes at shutdown.
    pub(crate) async fn stopping(&self) {
        self.0.stop.cancelled().await;
    }

    /// Runs a supervised task until shutdown. Shutdown waits for it until the deadline.
    pub(crate) fn until_the_end<Work: Future<Output = ()> + Send + 'static>(
        &self,
        name: Name,
        make: impl FnMut() -> Work + Send + 'static,
    ) {
        self.0.going.spawn(supervised_until(self.0.stop.clone(), name, make));
    }

    fn going(&self) -> &TaskTracker {
        &self.0.going
    }

    /// Notifies subscribed clients that the documents have changed.
    pub fn documents_changed(&self) {
        if let Some(server) = self.server() {
            server.publish(Event::ResourcesChanged);
        }
    }
}

/// Subfolder of the storage for uploads.
pub const UPLOADS: &str = "uploads";

/// Runs a blocking or CPU-bound function on a blocking thread.
async fn blocking<T: Send + 'static>(run: impl FnOnce() -> T + Send + 'static) -> Result<T, Error> {
    tokio::task::spawn_blocking(run).await.map_err(|error| Error::Internal(error.to_string()))
}

/// Truncates caller input for an error message.
fn clipped(text: &str) -> String {
    let mut clipped: String = text.chars().take(100).collect();
    if clipped.len() < text.len() {
        clipped.push('…');
    }
    clipped
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

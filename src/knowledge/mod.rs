//! The knowledge base: documents that are kept, searched and asked.
//!
//! [`Knowledge`] is the whole of it for one process. It is opened when it is first needed, and a store that cannot be
//! opened fails the calls that need it and nothing else. `store` is the truth; `finder` finds what is in it; `kept`
//! opens both; `work` are the tasks that add to it, and `ingest` is what they do with one file.

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
pub(crate) use skipped::LEAVING;
use source::{Checks, Facts, Rules};
use steady::Steady;
use store::Store;
use work::Work;

/// The knowledge base of one process. Cheap to clone; all clones are the same.
#[derive(Debug, Clone)]
pub struct Knowledge(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    settings: config::Knowledge,
    pool: Pool,
    inference: Inference,
    describer: Option<Describer>,
    open: OnceCell<Open>,
    /// Tells those who wait for it that it is open.
    is_open: watch::Sender<bool>,
    /// Why it could not be opened the last time.
    failure: Mutex<Option<Error>>,
    /// Who is told what changes.
    server: OnceLock<Server>,
    /// Others than this machine can reach us, so files are added from allowed folders alone (S-11).
    reachable: AtomicBool,
    /// This process is here for a moment, and takes up nobody's tasks.
    leaves_tasks: AtomicBool,
    checks: Checks,
    stop: CancellationToken,
    going: TaskTracker,
}

/// What there is once the store is open.
#[derive(Debug, Clone)]
pub struct Open {
    pub store: Store,
    pub finder: Finder,
    pub work: Work,
    pub storage: PathBuf,
}

/// How long a store may take to hear that nobody goes on with what is not done.
const HANDING_BACK: Duration = Duration::from_secs(5);
/// Maximum duration of the checkpoint at the end of the program.
const CHECKPOINT_TIMEOUT: Duration = Duration::from_secs(3);
/// How often is looked for tasks that others have cancelled, and after how many looks for what has changed unheard, and for
/// what nobody needs any more.
const LOOK: Duration = Duration::from_secs(1);
const CATCH_UP_EVERY: u32 = 5;
const PRUNE_EVERY: u32 = 600;

/// How long is waited before a database is tried again that could not be reached, at first and at most.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(15);

/// Where a wish to add a file comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whence {
    /// The program that started this one, the command line, a watched folder.
    Here,
    /// A listener. If others than this user can reach one, nobody there may name any file.
    Outside,
    /// The holder of a token who is not trusted with everything: files of this machine are not for it, wherever it is.
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
        // The contract names limits of its own for documents that are added.
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

    /// Others than this machine will reach the server.
    pub fn reachable_by_others(&self) {
        self.0.reachable.store(true, Ordering::Relaxed);
    }

    /// Takes up no tasks that others left behind: a command that is here for a moment would not finish them.
    pub fn leave_tasks(&self) {
        self.0.leaves_tasks.store(true, Ordering::Relaxed);
    }

    /// Whom to tell what changes.
    pub fn tell(&self, server: Server) {
        let _ = self.0.server.set(server);
        self.share_key(self.opened());
    }

    /// What clients hold of one instance is good for all that share a store.
    fn share_key(&self, open: Option<&Open>) {
        if let (Some(server), Some(Open { store: Store::Shared(store), .. })) = (self.server(), open) {
            server.share_state_key(store.state_key());
        }
    }

    pub fn server(&self) -> Option<&Server> {
        self.0.server.get()
    }

    /// Everything that it takes; opened with the first call, and after a failure tried again with the next.
    pub async fn open(&self) -> Result<&Open, Error> {
        let opened = self.0.open.get_or_try_init(|| self.begin()).await;
        *locked(&self.0.failure) = opened.as_ref().err().cloned();
        if opened.is_ok() {
            self.0.is_open.send_if_modified(|open| !std::mem::replace(open, true));
        }
        opened
    }

    /// The storage, once it is open; none if it never will be.
    pub(crate) async fn when_open(&self) -> Option<PathBuf> {
        let mut is_open = self.0.is_open.subscribe();
        let opened = is_open.wait_for(|open| *open).await.is_ok();
        self.opened().filter(|_| opened).map(|open| open.storage.clone())
    }

    /// What is open, if anything is.
    pub fn opened(&self) -> Option<&Open> {
        self.0.open.get()
    }

    /// The database that several instances share, once it is open.
    pub(crate) fn shared_store(&self) -> Option<&store::postgres::Store> {
        match &self.opened()?.store {
            Store::Shared(store) => Some(store),
            Store::Embedded(_) => None,
        }
    }

    /// Whether a search would only wait for a database that is known to be away. It is tried by others.
    pub(crate) fn cannot_search(&self) -> bool {
        match self.shared_store() {
            Some(store) => store.is_out_of_reach(),
            None => self.0.settings.store.is_some() && self.failure().is_some_and(|error| error.passes()),
        }
    }

    /// Why it could not be opened the last time it was tried.
    pub fn failure(&self) -> Option<Error> {
        // Of two who try at once, the one that failed may be the last to tell.
        match self.opened() {
            Some(_) => None,
            None => locked(&self.0.failure).clone(),
        }
    }

    /// Opens a store that is there, so that what was left behind goes on; one that is not there can wait.
    pub async fn resume(self) {
        let there = kept::is_there(&self.0.settings);
        if !there && self.0.settings.watch.is_empty() {
            return;
        }
        let mut pause = FIRST_PAUSE;
        while let Err(error) = self.open().await {
            tracing::error!(%error, "the knowledge base cannot be opened");
            // A database comes back by itself; a file that cannot be opened waits for somebody.
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

    /// Boxed, as the way comes back here: documents may ask a model to describe a picture, and models may be asked with
    /// passages of documents.
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
            shared.going.spawn(supervised_until(shared.stop.clone(), Name("taking over"), adopt));
        }
        let running = work.clone();
        shared.going.spawn(supervised_until(shared.stop.clone(), Name("tasks"), move || running.clone().run()));
        let Kept { store, finder, storage } = kept;
        let open = Open { store, finder, work, storage };
        let (knowledge, care) = (self.clone(), open.clone());
        let look_after = move || knowledge.clone().look_after(care.clone());
        shared.going.spawn(supervised_until(shared.stop.clone(), Name("looking after"), look_after));
        self.share_key(Some(&open));
        if let Store::Shared(store) = &open.store {
            let (knowledge, heard) = (self.clone(), store.heard());
            let hear = move || notices::hear(knowledge.clone(), heard.clone());
            shared.going.spawn(supervised_until(shared.stop.clone(), Name("hearing of changes"), hear));
            let (knowledge, store) = (self.clone(), store.clone());
            let share = move || rates::share(knowledge.clone(), store.clone());
            shared.going.spawn(supervised_until(shared.stop.clone(), Name("sharing rates"), share));
        }
        Ok(open)
    }

    /// What is done now and then for as long as the process lives.
    async fn look_after(self, open: Open) {
        let Open { store, finder, work, storage } = open;
        let keep = self.0.settings.keep_tasks.get().max(Duration::from_secs(3600));
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
                    // Bounds of number hold whatever the clock says.
                    let (keep, uploads) = match clock.is_believed() {
                        true => (keep, self.0.settings.keep_uploads.get()),
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
            // One that fails keeps none of the others from being done.
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

    /// Stops taking up work and waits for what is going on, as long as there is time. What is not done by then goes
    /// on with the next start.
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
        // A database that is away is not waited for: others notice that this instance is gone.
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

    /// What may be added by a caller.
    pub fn rules(&self, whence: Whence) -> Rules {
        let shared = &*self.0;
        let mut rules = Rules::new(&shared.settings.allowed_roots, shared.settings.max_file_bytes());
        if let (true, Ok(storage)) = (!rules.roots.is_empty() || self.needs_roots(whence), self.storage()) {
            // What was uploaded was let in by other means.
            rules = rules.and(&storage.join(UPLOADS));
        }
        rules
    }

    /// What is known of a file that may be added, when it is its turn to be looked at.
    pub async fn check(&self, rules: Rules, path: PathBuf) -> Result<Facts, Error> {
        self.0.checks.check(rules, path).await
    }

    /// Whether a caller may add nothing but uploads, since nobody has said from where else (S-11).
    pub fn needs_roots(&self, whence: Whence) -> bool {
        let everything = match whence {
            Whence::Here => true,
            Whence::Outside => !self.0.reachable.load(Ordering::Relaxed),
            Whence::Guest => false,
        };
        !everything && self.0.settings.allowed_roots.is_empty()
    }

    /// Ends when the process is to end.
    pub(crate) async fn stopping(&self) {
        self.0.stop.cancelled().await;
    }

    /// Keeps something going until the process is to end, which waits for it then as long as there is time.
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

    /// Tells everyone who wants to know that there are other documents now.
    pub fn documents_changed(&self) {
        if let Some(server) = self.server() {
            server.publish(Event::ResourcesChanged);
        }
    }
}

/// Where uploads lie in the storage.
pub const UPLOADS: &str = "uploads";

/// Runs what waits for a disk or takes a while.
async fn blocking<T: Send + 'static>(run: impl FnOnce() -> T + Send + 'static) -> Result<T, Error> {
    tokio::task::spawn_blocking(run).await.map_err(|error| Error::Internal(error.to_string()))
}

/// As much of what somebody wrote as an error should repeat.
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

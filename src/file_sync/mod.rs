//! File sync between all instances on one database: the taxonomy and the tokens.
//!
//! Each machine reads its local copy, so an instance starts, classifies and authenticates without the database. A local
//! change becomes a new version in the database, and the other instances are notified. Of two concurrent changes one is
//! first: token files are merged, and of two taxonomies the later one is saved as a numbered backup.
//!
//! A read-only file, such as a mounted one, is managed by another system and is not touched.

mod category_ids;
mod edit_lock;
mod local_copy;
mod sync;
mod sync_loop;
mod sync_state;
mod three_way;

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use local_copy::LocalCopy;
use sync::{LocalEdits, SyncContext, SyncOutcome};
use sync_state::{SyncLock, SyncStateDir};

pub use local_copy::SharedFileKind;
pub use sync_loop::FileChange;

use crate::config::Config;
use crate::config::knowledge;
use crate::knowledge::Knowledge;
use crate::knowledge::store::postgres::{Address, SyncedFiles};
use crate::util::lock::lock;

/// The shared files of one instance. Cheap to clone; all clones share one state.
#[derive(Debug, Clone)]
pub struct FileSync(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    knowledge: Knowledge,
    state: Arc<SyncStateDir>,
    copies: Vec<LocalCopy>,
    /// Why a file is out of sync.
    problem: Mutex<Option<String>>,
}

/// Timeout for the lock held by another local process.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);
const LOCK_RETRY_DELAY: Duration = Duration::from_millis(20);
/// Timeout for the sync at startup.
const STARTUP_TIMEOUT: Duration = Duration::from_secs(3);

impl FileSync {
    /// The shared files of a configuration; `None` if instances share no database.
    pub fn from_config(config: &Config, knowledge: Option<&Knowledge>) -> Option<FileSync> {
        let (knowledge, notes) = (knowledge?.clone(), sync_state_dir(&config.knowledge)?);
        Some(FileSync(Arc::new(Inner {
            knowledge,
            state: notes,
            copies: local_copies(config),
            problem: Mutex::default(),
        })))
    }

    /// Why a file is out of sync, while that lasts.
    pub fn impairment(&self) -> Option<String> {
        lock(&self.0.problem).clone()
    }

    /// The last known category names by index.
    pub fn category_ids(&self) -> Vec<String> {
        let copy = self.0.copies.iter().find(|copy| copy.kind == SharedFileKind::Taxonomy);
        let note = copy.and_then(|copy| self.0.state.read(&copy.state_name()).ok());
        note.and_then(|note| note.agreed).map(|agreed| agreed.places).unwrap_or_default()
    }
}

/// Syncs the files at startup, before the first request. If the database is unreachable, the instance starts with its
/// local copies.
pub async fn sync_at_startup(config: &Config) {
    let until = tokio::time::Instant::now() + STARTUP_TIMEOUT;
    for copy in local_copies(config) {
        let settled = tokio::time::timeout_at(until, sync_now(config, copy.kind)).await;
        let why = match settled {
            Ok(None | Some(Ok(()))) => continue,
            Ok(Some(Err(why))) => why,
            Err(_) => "database timed out".to_owned(),
        };
        let path = copy.path.display();
        tracing::info!(%path, "using the local file; syncing later: {why}");
    }
}

/// Syncs the local copy with the shared version. `None` if instances share no database.
pub async fn sync_now(config: &Config, kind: SharedFileKind) -> Option<Result<(), String>> {
    let notes = sync_state_dir(&config.knowledge)?;
    let copy = local_copies(config).into_iter().find(|copy| copy.kind == kind)?;
    let settled = async {
        let exchange = SyncContext { files: connect(config).await?, state: notes, copy };
        let _held = acquire_lock(&exchange.state).await?;
        match exchange.run(LocalEdits::Publish).await.map_err(|trouble| trouble.to_string())?.outcome {
            SyncOutcome::Deferred => Err("too many concurrent changes; try again".to_owned()),
            SyncOutcome::Unchanged | SyncOutcome::Pulled | SyncOutcome::Pushed => Ok(()),
        }
    };
    Some(settled.await)
}

/// The shared version, for read-only commands. `None` if instances share no database.
pub async fn newest_version(config: &Config, kind: SharedFileKind) -> Option<Result<Option<String>, String>> {
    sync_state_dir(&config.knowledge)?;
    let newest = async {
        let newest = connect(config).await?.latest(kind.name()).await.map_err(|error| error.to_string())?;
        Ok(newest.map(|newest| newest.content))
    };
    Some(newest.await)
}

async fn connect(config: &Config) -> Result<SyncedFiles, String> {
    let address = config.knowledge.store.as_ref().ok_or("`knowledge.store` is not set")?;
    SyncedFiles::connect(&Address::parse(address.expose())?).await.map_err(|error| error.to_string())
}

/// The sync state, if files are shared.
fn sync_state_dir(settings: &knowledge::Knowledge) -> Option<Arc<SyncStateDir>> {
    let is_shared = settings.enabled && settings.store.is_some();
    let storage = settings.storage_dir().filter(|_| is_shared)?;
    Some(Arc::new(SyncStateDir::in_storage(Path::new(&storage))))
}

fn local_copies(config: &Config) -> Vec<LocalCopy> {
    let classification = &config.classification;
    // The categories of an external server are not in the file.
    let stay = match config.external_classifier().is_ok_and(|external| external.is_some()) {
        true => Default::default(),
        false => config.router.restricted_categories.clone(),
    };
    let taxonomy = classification.taxonomy.clone();
    let taxonomy = taxonomy.map(|path| LocalCopy {
        kind: SharedFileKind::Taxonomy,
        path,
        is_watched: classification.watch,
        pinned_local: stay,
    });
    let tokens = config.tokens_file();
    let tokens = tokens.map(|path| LocalCopy {
        kind: SharedFileKind::Tokens,
        path,
        is_watched: true,
        pinned_local: Default::default(),
    });
    taxonomy.into_iter().chain(tokens).collect()
}

/// Acquires the lock among the local processes.
async fn acquire_lock(notes: &SyncStateDir) -> Result<SyncLock, String> {
    let until = tokio::time::Instant::now() + LOCK_TIMEOUT;
    loop {
        match notes.try_lock()? {
            Some(held) => return Ok(held),
            None if tokio::time::Instant::now() < until => tokio::time::sleep(LOCK_RETRY_DELAY).await,
            None => return Err("another local process is syncing the shared files; try again".to_owned()),
        }
    }
}

//! File sync between all instances on one database: the taxonomy and the tokens.
//!
//! Each machine reads its local copy, so an instance starts, classifies and authenticates without the database. A local
//! change becomes a new version in the database, and the other instances are notified. Of two concurrent changes one is
//! first: token files are merged, and of two taxonomies the later one is saved as a numbered backup.
//!
//! A read-only file, such as a mounted one, is managed by another system and is not touched.

mod exchange;
mod follow;
mod notes;
mod own_copy;
mod places;
mod step;
mod turn;

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use exchange::{Edits, Exchange, Outcome};
use notes::{Held, Notes};
use own_copy::OwnCopy;

pub use follow::Change;
pub use own_copy::Kind;
pub use turn::{NoTurn, Turn};

use crate::config::Config;
use crate::config::knowledge;
use crate::knowledge::Knowledge;
use crate::knowledge::store::postgres::{Address, Files};
use crate::locked::locked;

/// The shared files of one instance. Cheap to clone; all clones share one state.
#[derive(Debug, Clone)]
pub struct SharedFiles(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    knowledge: Knowledge,
    notes: Arc<Notes>,
    copies: Vec<OwnCopy>,
    /// Why a file is out of sync.
    trouble: Mutex<Option<String>>,
}

/// Timeout for the lock held by another local process.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(20);
/// Timeout for the sync at startup.
const START: Duration = Duration::from_secs(3);

impl SharedFiles {
    /// The shared files of a configuration; `None` if instances share no database.
    pub fn of(config: &Config, knowledge: Option<&Knowledge>) -> Option<SharedFiles> {
        let (knowledge, notes) = (knowledge?.clone(), notes(&config.knowledge)?);
        Some(SharedFiles(Arc::new(Shared { knowledge, notes, copies: copies(config), trouble: Mutex::default() })))
    }

    /// Why a file is out of sync, while that lasts.
    pub fn impaired(&self) -> Option<String> {
        locked(&self.0.trouble).clone()
    }

    /// The last known category names by index.
    pub fn places(&self) -> Vec<String> {
        let copy = self.0.copies.iter().find(|copy| copy.kind == Kind::Taxonomy);
        let note = copy.and_then(|copy| self.0.notes.read(&copy.note_name()).ok());
        note.and_then(|note| note.agreed).map(|agreed| agreed.places).unwrap_or_default()
    }
}

/// Syncs the files at startup, before the first request. If the database is unreachable, the instance starts with its
/// local copies.
pub async fn bring(config: &Config) {
    let until = tokio::time::Instant::now() + START;
    for copy in copies(config) {
        let settled = tokio::time::timeout_at(until, settle(config, copy.kind)).await;
        let why = match settled {
            Ok(None | Some(Ok(()))) => continue,
            Ok(Some(Err(why))) => why,
            Err(_) => "the database does not answer in time".to_owned(),
        };
        let path = copy.path.display();
        tracing::info!(%path, "is taken as it is here, and compared later: {why}");
    }
}

/// Syncs the local copy with the shared version. `None` if instances share no database.
pub async fn settle(config: &Config, kind: Kind) -> Option<Result<(), String>> {
    let notes = notes(&config.knowledge)?;
    let copy = copies(config).into_iter().find(|copy| copy.kind == kind)?;
    let settled = async {
        let exchange = Exchange { files: files(config).await?, notes, copy };
        let _held = hold(&exchange.notes).await?;
        match exchange.run(Edits::Count).await.map_err(|trouble| trouble.to_string())?.outcome {
            Outcome::Waits => Err("others change it all the time; try again".to_owned()),
            Outcome::Same | Outcome::Brought | Outcome::Sent => Ok(()),
        }
    };
    Some(settled.await)
}

/// The shared version, for read-only commands. `None` if instances share no database.
pub async fn newest(config: &Config, kind: Kind) -> Option<Result<Option<String>, String>> {
    notes(&config.knowledge)?;
    let newest = async {
        let newest = files(config).await?.newest(kind.name()).await.map_err(|error| error.to_string())?;
        Ok(newest.map(|newest| newest.content))
    };
    Some(newest.await)
}

async fn files(config: &Config) -> Result<Files, String> {
    let address = config.knowledge.store.as_ref().ok_or("`knowledge.store` is not set")?;
    Files::connect(&Address::parse(address.expose())?).await.map_err(|error| error.to_string())
}

/// The sync state, if files are shared.
fn notes(settings: &knowledge::Knowledge) -> Option<Arc<Notes>> {
    let is_shared = settings.enabled && settings.store.is_some();
    let storage = settings.storage().filter(|_| is_shared)?;
    Some(Arc::new(Notes::in_storage(Path::new(&storage))))
}

fn copies(config: &Config) -> Vec<OwnCopy> {
    let classification = &config.classification;
    // The categories of an external server are not in the file.
    let stay = match config.external_classifier().is_ok_and(|external| external.is_some()) {
        true => Default::default(),
        false => config.router.restricted_categories.clone(),
    };
    let taxonomy = classification.taxonomy.clone();
    let taxonomy = taxonomy.map(|path| OwnCopy { kind: Kind::Taxonomy, path, is_watched: classification.watch, stay });
    let tokens = config.tokens_file();
    let tokens = tokens.map(|path| OwnCopy { kind: Kind::Tokens, path, is_watched: true, stay: Default::default() });
    taxonomy.into_iter().chain(tokens).collect()
}

/// Acquires the lock among the local processes.
async fn hold(notes: &Notes) -> Result<Held, String> {
    let until = tokio::time::Instant::now() + PATIENCE;
    loop {
        match notes.hold()? {
            Some(held) => return Ok(held),
            None if tokio::time::Instant::now() < until => tokio::time::sleep(PAUSE).await,
            None => return Err("another process of this machine keeps the shared files; try again".to_owned()),
        }
    }
}

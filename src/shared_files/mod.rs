//! Files that all instances on one database follow: the taxonomy and the tokens.
//!
//! Each machine has its own copy, and that is the one that is read: an instance starts, classifies and knows its callers
//! with the database away. What is changed in one place is a new version in the database, of which the others hear. Of two
//! changes at once one is first; tokens that were made and revoked in two places come together, and of two taxonomies the
//! later one is kept beside the file.
//!
//! A file that cannot be written is somebody else's to give out, as a mounted one is, and is left alone.

mod agreed;
mod copy;
mod exchange;
mod follow;
mod places;
mod step;
mod turn;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use agreed::{Held, Place};
use copy::Copy;
use exchange::exchange;

pub use copy::Kind;
pub use follow::Change;
pub use turn::Turn;

use crate::config::Config;
use crate::config::knowledge;
use crate::knowledge::Knowledge;
use crate::knowledge::store::postgres::{Address, Files};

/// The files of one instance. Cheap to clone; all clones are the same.
#[derive(Debug, Clone)]
pub struct SharedFiles(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    knowledge: Knowledge,
    place: Arc<Place>,
    copies: Vec<Copy>,
}

/// How long another process of this machine may be at it.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(20);

impl SharedFiles {
    /// Those that the settings name; none where instances share nothing.
    pub fn of(config: &Config, knowledge: Option<&Knowledge>) -> Option<SharedFiles> {
        let place = place(&config.knowledge)?;
        Some(SharedFiles(Arc::new(Shared { knowledge: knowledge?.clone(), place, copies: copies(config) })))
    }
}

/// For a command: has the copy of this machine say what all instances say. None where they share nothing.
pub async fn settle(config: &Config, kind: Kind) -> Option<Result<(), String>> {
    let place = place(&config.knowledge)?;
    let copy = copies(config).into_iter().find(|copy| copy.kind == kind)?;
    let address = config.knowledge.store.as_ref()?;
    let settled = async {
        let files = Files::connect(&Address::parse(address.expose())?).await.map_err(|error| error.to_string())?;
        let _held = hold(&place).await?;
        exchange(&files, &place, &copy, true).await.map_err(|trouble| trouble.to_string())?;
        Ok(())
    };
    Some(settled.await)
}

/// Where it is noted what was agreed on, if anything is to be.
fn place(settings: &knowledge::Knowledge) -> Option<Arc<Place>> {
    let is_shared = settings.enabled && settings.store.is_some();
    let storage = settings.storage().filter(|_| is_shared)?;
    Some(Arc::new(Place::in_storage(Path::new(&storage))))
}

fn copies(config: &Config) -> Vec<Copy> {
    let taxonomy = config.classification.taxonomy.clone().map(|path| Copy { kind: Kind::Taxonomy, path });
    let tokens = config.tokens_file().map(|path| Copy { kind: Kind::Tokens, path });
    taxonomy.into_iter().chain(tokens).collect()
}

/// Waits for its turn among the processes of this machine.
async fn hold(place: &Place) -> Result<Held, String> {
    let until = tokio::time::Instant::now() + PATIENCE;
    loop {
        match place.hold() {
            Ok(Some(held)) => return Ok(held),
            Ok(None) if tokio::time::Instant::now() < until => tokio::time::sleep(PAUSE).await,
            Ok(None) => return Err("another process of this machine keeps the shared files; try again".to_owned()),
            Err(error) => return Err(format!("the storage cannot be written: {error}")),
        }
    }
}

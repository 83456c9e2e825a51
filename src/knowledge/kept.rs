//! Opens what a knowledge base is kept in: the one place that knows which kinds there are.

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::finder::Finder;
use super::library::{Library, files};
use super::shared::Shared;
use super::store::postgres::{self, Address};
use super::store::{self, Options, Store, sqlite};
use super::{Error, UPLOADS, blocking, hex};
use crate::config::knowledge as config;
use crate::config::secret::SecretLine;
use crate::folder_access;
use crate::inference::Inference;
use crate::private_folder::private_folder;

/// What everything is kept in, and what finds it.
#[derive(Debug, Clone)]
pub struct Kept {
    pub store: Store,
    pub finder: Finder,
    /// The folder for all that is in files.
    pub storage: PathBuf,
}

impl Kept {
    pub async fn open(settings: &config::Knowledge, storage: PathBuf, inference: &Inference) -> Result<Kept, Error> {
        prepare(&storage).await?;
        if let Some(index) = &settings.vector_db_path {
            prepare(index).await?;
        }
        if let Some(address) = &settings.store {
            let store = shared(settings, address).await?;
            make_uploads(&storage).await?;
            let (model, dimension) = shape(inference).await;
            let finder = Finder::Shared(Shared::open(store.clone(), model, dimension).await?);
            return Ok(Kept { store: store.into(), finder, storage });
        }
        let store = embedded(settings, &storage).await?;
        make_uploads(&storage).await?;
        let (model, dimension) = shape(inference).await;
        let index = index(settings, &storage, &store, &model);
        let library = Library::open(store.clone(), index, model, dimension).await?;
        Ok(Kept { store: store.into(), finder: Finder::Library(library), storage })
    }
}

/// Whether there is a store already; to open one that is not there makes it.
pub(crate) fn is_there(settings: &config::Knowledge) -> bool {
    settings.store.is_some() || settings.storage().is_some_and(|storage| sqlite::Store::exists(&storage))
}

/// The store alone, without what finds anything in it.
pub(crate) async fn store(settings: &config::Knowledge, storage: &Path) -> Result<Store, store::Error> {
    match &settings.store {
        Some(address) => Ok(shared(settings, address).await?.into()),
        None => Ok(embedded(settings, storage).await?.into()),
    }
}

async fn shared(settings: &config::Knowledge, address: &SecretLine) -> Result<postgres::Store, store::Error> {
    let read = |address: &SecretLine| Address::parse(address.expose()).map_err(store::Error::Internal);
    let replicas = settings.store_replicas.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    postgres::Store::connect(&read(address)?, &replicas, shared_options(settings)).await
}

fn shared_options(settings: &config::Knowledge) -> Options {
    Options { max_tasks: settings.max_waiting_tasks as u64, ..Options::default() }
}

/// Options of a store in a folder.
pub(crate) fn embedded_options(settings: &config::Knowledge, storage: &Path) -> Options {
    Options {
        migration_copy: settings.migration_copy,
        index: index_there(settings, storage),
        ..shared_options(settings)
    }
}

/// The folder of the index, if it has files of one.
pub(crate) fn index_there(settings: &config::Knowledge, storage: &Path) -> Option<PathBuf> {
    Some(settings.index(storage)).filter(|index| files::holds_segments(index))
}

async fn embedded(settings: &config::Knowledge, storage: &Path) -> Result<sqlite::Store, store::Error> {
    let (folder, settings) = (storage.to_owned(), settings.clone());
    let opening = tokio::task::spawn_blocking(move || {
        let options = embedded_options(&settings, &folder);
        sqlite::Store::open(&folder, options)
    });
    opening.await.map_err(|error| store::Error::Internal(error.to_string()))?
}

/// What others could put into these folders would be taken for ours.
async fn prepare(folder: &Path) -> Result<(), Error> {
    let folder = folder.to_owned();
    Ok(blocking(move || folder_access::prepare(&folder)).await?.map_err(store::Error::folder)?)
}

/// Uploads are files of this machine, whatever documents are kept in.
async fn make_uploads(storage: &Path) -> Result<(), Error> {
    let uploads = storage.join(UPLOADS);
    let made = blocking(move || private_folder(&uploads)).await?;
    made.map_err(|error| Error::Storage {
        code: "storage_unavailable",
        message: format!("no folder for uploads can be made: {error}"),
    })
}

/// The name of the model that makes vectors, and how many numbers they have. Without a model, what is there is found by
/// its words; what was made with one waits for it.
async fn shape(inference: &Inference) -> (String, usize) {
    match inference.shape().await {
        Ok((model, dimension)) => (model.to_string(), dimension),
        Err(error) => {
            tracing::error!(%error, "the embedding model cannot be used; documents are found by their words alone");
            (format!("without {}", inference.planned()), 0)
        }
    }
}

/// A restored store numbers its chunks anew, and vectors of another model say nothing: what was derived from either is of
/// no use.
fn index(settings: &config::Knowledge, storage: &Path, store: &sqlite::Store, model: &str) -> PathBuf {
    let made_for = Sha256::digest(format!("{} {model}", store.history()));
    settings.index(storage).join(hex(&made_for[..8]))
}

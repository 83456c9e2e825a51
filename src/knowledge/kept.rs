//! Opens the configured store backend and its retriever. The only module that knows all backends.

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

/// An open backend.
#[derive(Debug, Clone)]
pub struct Kept {
    pub store: Store,
    pub finder: Finder,
    /// Storage folder for local files.
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
        store.bind_index(&settings.index(&storage)).await?;
        let index = index(settings, &storage, &store, &model);
        let library = Library::open(store.clone(), index, model, dimension).await?;
        Ok(Kept { store: store.into(), finder: Finder::Library(library), storage })
    }
}

/// Whether a store exists. Opening a missing one would create it.
pub(crate) fn is_there(settings: &config::Knowledge) -> bool {
    settings.store.is_some() || settings.storage().is_some_and(|storage| sqlite::Store::exists(&storage))
}

/// Opens the store without a retriever.
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
    Options { max_tasks: settings.max_queued_tasks as u64, ..Options::default() }
}

/// Options of an embedded store.
pub(crate) fn embedded_options(settings: &config::Knowledge, storage: &Path) -> Options {
    Options {
        migration_copy: settings.migration_copy,
        index: index_there(settings, storage),
        ..shared_options(settings)
    }
}

/// The index folder, if it contains segments.
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

/// Ensures that other users cannot write to these folders, because their content is trusted.
async fn prepare(folder: &Path) -> Result<(), Error> {
    let folder = folder.to_owned();
    Ok(blocking(move || folder_access::prepare(&folder)).await?.map_err(store::Error::folder)?)
}

/// Uploads are local files for every backend.
async fn make_uploads(storage: &Path) -> Result<(), Error> {
    let uploads = storage.join(UPLOADS);
    let made = blocking(move || private_folder(&uploads)).await?;
    made.map_err(|error| Error::Storage {
        code: "upload_storage_failed",
        message: format!("no folder for uploads can be made: {error}"),
    })
}

/// Name and dimension of the embedding model. Without a model, search is lexical only, and existing vectors are kept
/// for when the model is available again.
async fn shape(inference: &Inference) -> (String, usize) {
    match inference.shape().await {
        Ok((model, dimension)) => (model.to_string(), dimension),
        Err(error) => {
            tracing::error!(%error, "the embedding model cannot be used; documents are found by their words alone");
            (format!("without {}", inference.planned()), 0)
        }
    }
}

/// Folder of the index for this store and model. A restored store assigns new chunk keys, and vectors of another model
/// are not comparable, so each combination has a separate index.
fn index(settings: &config::Knowledge, storage: &Path, store: &sqlite::Store, model: &str) -> PathBuf {
    let made_for = Sha256::digest(format!("{} {model}", store.history()));
    settings.index(storage).join(hex(&made_for[..8]))
}

//! Opens the configured store backend and its retriever. The only module that knows all backends.

use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::local_index::{LocalIndex, segment_files};
use super::postgres_retriever::PostgresRetriever;
use super::retriever::Retriever;
use super::store::postgres::{self, Address};
use super::store::{self, Options, Store, sqlite};
use super::{Error, UPLOAD_DIR, hex, run_blocking};
use corbie_classify::inference::Inference;
use corbie_config::knowledge as config;
use corbie_config::secret::SecretLine;
use corbie_util::fs::dir_permissions::{self, create_private_subdir};

/// An open backend.
#[derive(Debug, Clone)]
pub struct StorageBackend {
    pub store: Store,
    pub retriever: Retriever,
    /// Storage folder for local files.
    pub storage: PathBuf,
}

impl StorageBackend {
    pub async fn open(
        settings: &config::Knowledge,
        storage: PathBuf,
        inference: &Inference,
    ) -> Result<StorageBackend, Error> {
        prepare(&storage).await?;
        if let Some(index) = &settings.vector_db_path {
            prepare(index).await?;
        }
        if let Some(address) = &settings.store {
            let store = open_postgres(settings, address).await?;
            create_upload_dir(&storage).await?;
            let (model, dimension) = embedding_shape(inference).await;
            let finder = Retriever::Shared(PostgresRetriever::open(store.clone(), model, dimension).await?);
            return Ok(StorageBackend { store: store.into(), retriever: finder, storage });
        }
        let store = open_sqlite(settings, &storage).await?;
        create_upload_dir(&storage).await?;
        let (model, dimension) = embedding_shape(inference).await;
        // The operator named `vector_db_path`, which may be a link, as the storage folder may.
        if settings.vector_db_path.is_none() {
            let index = settings.index_dir(&storage);
            run_blocking(move || create_private_subdir(&index)).await?.map_err(store::Error::folder)?;
        }
        store.bind_index(&settings.index_dir(&storage)).await?;
        let index = index_dir(settings, &storage, &store, &model);
        let library = LocalIndex::open(store.clone(), index, model, dimension).await?;
        Ok(StorageBackend { store: store.into(), retriever: Retriever::Embedded(library), storage })
    }
}

/// Whether a store exists. Opening a missing one would create it.
pub fn exists(settings: &config::Knowledge) -> bool {
    settings.store.is_some() || settings.storage_dir().is_some_and(|storage| sqlite::Store::exists(&storage))
}

/// Checks that a missing store can be created, and creates nothing itself.
pub async fn check_creatable(settings: &config::Knowledge, storage: &Path) -> Result<(), Error> {
    let folders: Vec<PathBuf> = [storage.to_owned()].into_iter().chain(settings.vector_db_path.clone()).collect();
    let checked = run_blocking(move || folders.iter().try_for_each(|folder| check_folder(folder)));
    Ok(checked.await?.map_err(store::Error::folder)?)
}

/// Checks that a folder can be used, or that it can be created in the nearest folder that exists.
fn check_folder(folder: &Path) -> Result<(), dir_permissions::Error> {
    let at = |folder: &Path, error| dir_permissions::Error::Io { folder: folder.to_owned(), error };
    let mut existing = folder;
    while let Err(error) = existing.symlink_metadata() {
        let is_missing = matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory);
        match existing.parent().filter(|_| is_missing) {
            Some(parent) if parent != Path::new("") => existing = parent,
            _ => return Err(at(existing, error)),
        }
    }
    if existing == folder {
        dir_permissions::prepare(folder)?;
    }
    // Permission bits do not reveal a read-only disk. The file has no name, so nothing is left behind.
    tempfile::tempfile_in(existing).map(drop).map_err(|error| at(existing, error))
}

/// Opens the store without a retriever.
pub async fn open_store(settings: &config::Knowledge, storage: &Path) -> Result<Store, store::Error> {
    match &settings.store {
        Some(address) => Ok(open_postgres(settings, address).await?.into()),
        None => Ok(open_sqlite(settings, storage).await?.into()),
    }
}

async fn open_postgres(settings: &config::Knowledge, address: &SecretLine) -> Result<postgres::Store, store::Error> {
    let read = |address: &SecretLine| Address::parse(address.expose()).map_err(store::Error::Internal);
    let replicas = settings.store_replicas.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    postgres::Store::connect(&read(address)?, &replicas, shared_options(settings)).await
}

fn shared_options(settings: &config::Knowledge) -> Options {
    Options { max_tasks: settings.max_queued_tasks as u64, ..Options::default() }
}

/// Options of an embedded store.
pub fn embedded_options(settings: &config::Knowledge, storage: &Path) -> Options {
    Options {
        migration_copy: settings.migration_copy,
        index: index_there(settings, storage),
        ..shared_options(settings)
    }
}

/// The index folder, if it contains segments.
pub fn index_there(settings: &config::Knowledge, storage: &Path) -> Option<PathBuf> {
    Some(settings.index_dir(storage)).filter(|index| segment_files::holds_segments(index))
}

async fn open_sqlite(settings: &config::Knowledge, storage: &Path) -> Result<sqlite::Store, store::Error> {
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
    Ok(run_blocking(move || dir_permissions::prepare(&folder)).await?.map_err(store::Error::folder)?)
}

/// Uploads are local files for every backend.
async fn create_upload_dir(storage: &Path) -> Result<(), Error> {
    let uploads = storage.join(UPLOAD_DIR);
    let made = run_blocking(move || create_private_subdir(&uploads)).await?;
    made.map_err(|error| match error {
        dir_permissions::Error::Io { error, .. } => Error::Storage {
            code: "upload_storage_failed",
            message: format!("cannot create the uploads folder: {error}"),
        },
        exposed => store::Error::folder(exposed).into(),
    })
}

/// Name and dimension of the embedding model. Without a model, search is lexical only, and existing vectors are kept
/// for when the model is available again.
async fn embedding_shape(inference: &Inference) -> (String, usize) {
    match inference.id_and_dimension().await {
        Ok((model, dimension)) => (model.to_string(), dimension),
        Err(error) => {
            tracing::error!(%error, "embedding model unavailable; using keyword search only");
            (format!("without {}", inference.configured_model()), 0)
        }
    }
}

/// Folder of the index for this store and model. A restored store assigns new chunk keys, and vectors of another model
/// are not comparable, so each combination has a separate index.
fn index_dir(settings: &config::Knowledge, storage: &Path, store: &sqlite::Store, model: &str) -> PathBuf {
    let made_for = Sha256::digest(format!("{} {model}", store.history()));
    settings.index_dir(storage).join(hex(&made_for[..8]))
}

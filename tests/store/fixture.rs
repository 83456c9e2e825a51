//! Temporary stores in directories and databases, and documents to put there.

use std::path::Path;
use std::time::Duration;

use corbie::knowledge::document::{
    BaseName, CharSpan, DocumentId, DocumentPage, NewChunk, NewDocument, Origin, PutOutcome, Status, WrittenDocument,
};
use corbie::knowledge::store::{Options, Store, sqlite};
use corbie::knowledge::task::{NewTask, TaskId, TaskKind, TaskLink, TaskRecord};
use serde_json::{Map, Value, json};
use tempfile::TempDir;

use crate::database::Database;

/// Test timeout; far longer than any operation needs.
const TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// Location of a store for the duration of a test.
pub(crate) enum StoreLocation {
    Folder(TempDir),
    Database(Database),
}

/// A location for the backend under test.
pub(crate) fn store_location() -> StoreLocation {
    match Database::if_configured() {
        Some(database) => StoreLocation::Database(database),
        None => StoreLocation::Folder(temp_folder()),
    }
}

impl StoreLocation {
    /// Opens the store as a separate process would.
    pub(crate) async fn open(&self) -> Store {
        self.open_with(Options::default()).await
    }

    pub(crate) async fn open_with(&self, options: Options) -> Store {
        match self {
            StoreLocation::Folder(folder) => sqlite::Store::open(folder.path(), options).unwrap().into(),
            StoreLocation::Database(database) => Store::connect(&database.url(), options).await.unwrap(),
        }
    }

    /// Path or URL, for another process.
    pub(crate) fn address(&self) -> String {
        match self {
            StoreLocation::Folder(folder) => folder.path().to_str().unwrap().to_owned(),
            StoreLocation::Database(database) => database.url(),
        }
    }
}

pub(crate) fn temp_folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

/// Opens an embedded store.
pub(crate) fn open_sqlite(folder: &Path) -> sqlite::Store {
    sqlite::Store::open(folder, Options::default()).unwrap()
}

pub(crate) fn default_base() -> BaseName {
    BaseName::default()
}

pub(crate) fn base_named(name: &str) -> BaseName {
    name.parse().unwrap()
}

pub(crate) fn metadata(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

/// A document with this many chunks, each on its own page. Different names give different contents.
pub(crate) fn document(filename: &str, chunks: usize) -> NewDocument {
    let mut sha256 = [0; 32];
    for (place, byte) in filename.bytes().enumerate() {
        sha256[place % 32] ^= byte.wrapping_mul(place as u8 + 1);
    }
    NewDocument {
        replaces: None,
        id: DocumentId::random(),
        base: default_base(),
        filename: filename.to_owned(),
        path: Some(format!("/home/ada/{filename}")),
        origin: Origin::Added,
        title: Some(format!("On {filename}")),
        format: "pdf".to_owned(),
        size_bytes: 1000 + chunks as u64,
        sha256,
        status: Status::Completed,
        method: "text_extraction".to_owned(),
        metadata: metadata(json!({"author": "Ada", "tags": ["engine", "notes"]})),
        model: "minilm".to_owned(),
        warning: None,
        pages: (1..=chunks as u32).map(page).collect(),
        chunks: (1..=chunks as u32).map(|number| chunk(filename, number)).collect(),
    }
}

fn page(number: u32) -> DocumentPage {
    DocumentPage { number, label: Some(format!("p. {number}")), text: format!("All that stands on page {number}.") }
}

fn chunk(filename: &str, number: u32) -> NewChunk {
    NewChunk {
        text: format!("Chunk {number} of {filename}. ").repeat(40),
        pages: (number, number),
        spans: vec![CharSpan { page: number, start: 4, end: 20, in_chunk: Some(number), windows: 1 }],
        headings: vec!["Notes".to_owned(), format!("Part {number}")],
        tokens: 240,
        vectors: vec![vector(number, 0), vector(number, 1)],
    }
}

/// A unit vector resembling an embedding.
pub(crate) fn vector(seed: u32, window: u32) -> Vec<f32> {
    let numbers =
        (0..384_u32).map(|place| ((place * 7919 + seed * 104_729 + window * 1_299_709) % 1000) as f32 / 500.0 - 1.0);
    let numbers: Vec<f32> = numbers.collect();
    let length = numbers.iter().map(|number| number * number).sum::<f32>().sqrt();
    numbers.iter().map(|number| number / length).collect()
}

/// Puts a document; panics on a conflict.
pub(crate) async fn put(store: &(impl Clone + Into<Store>), new: NewDocument) -> WrittenDocument {
    let store: Store = store.clone().into();
    match store.put_document(new, TaskLink::Standalone).await.unwrap() {
        PutOutcome::Written(written) => written,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn task(filename: &str) -> NewTask {
    NewTask {
        id: TaskId::random(),
        base: default_base(),
        owner: "ada".to_owned(),
        kind: TaskKind::Add,
        request: json!({"file_path": format!("/home/ada/{filename}")}),
        document: Some(DocumentId::random()),
        filename: Some(filename.to_owned()),
        format: Some("pdf".to_owned()),
        size_bytes: Some(1234),
    }
}

/// Adopts the tasks of ended processes. The detection delay depends on the backend.
pub(crate) async fn adopt_orphans(store: &Store) -> Vec<TaskRecord> {
    eventually("tasks to adopt", async || {
        Some(store.adopt_orphaned_tasks().await.unwrap()).filter(|tasks| !tasks.is_empty())
    })
    .await
}

/// Polls until there is a value.
pub(crate) async fn eventually<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let asking = async {
        loop {
            if let Some(answer) = ask().await {
                return answer;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(TEST_TIMEOUT, asking).await.unwrap_or_else(|_| panic!("still waiting for {what}"))
}

use std::path::Path;

use corbie_index::{Mode, Query};
use serde_json::Map;
use tempfile::TempDir;

use super::*;
use crate::document::{DocumentId, NewChunk, NewDocument, Origin, PutOutcome, Status};
use crate::store;
use crate::task::TaskLink;

const MODEL: &str = "minilm";

/// A store and a folder for its index.
struct IndexFixture {
    folder: TempDir,
    store: Store,
}

impl IndexFixture {
    fn new() -> IndexFixture {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("store"), store::Options::default()).unwrap();
        IndexFixture { folder, store }
    }

    fn index(&self) -> PathBuf {
        self.folder.path().join("index/00112233aabbccdd")
    }

    async fn library(&self) -> LocalIndex {
        LocalIndex::open(self.store.clone(), self.index(), MODEL.into(), 2).await.unwrap()
    }

    async fn put(&self, base: &str, filename: &str, text: &str, model: &str) -> DocumentId {
        let mut sha256 = [0; 32];
        // The texts here are shorter than 32 bytes, so different texts have different digests.
        sha256.iter_mut().zip(text.bytes()).for_each(|(into, byte)| *into = byte);
        let chunk = NewChunk {
            text: text.into(),
            pages: (0, 0),
            spans: vec![],
            headings: vec![],
            tokens: 3,
            vectors: vec![vec![1.0, 0.0]],
        };
        let new = NewDocument {
            replaces: None,
            id: DocumentId::random(),
            base: base.parse().unwrap(),
            filename: filename.into(),
            path: Some(format!("/documents/{base}/{filename}")),
            origin: Origin::Added,
            title: None,
            format: "txt".into(),
            size_bytes: 9,
            sha256,
            status: Status::Completed,
            method: "text_extraction".into(),
            metadata: Map::new(),
            model: model.into(),
            warning: None,
            pages: Vec::new(),
            chunks: vec![chunk],
        };
        match self.store.put_document(new, TaskLink::Standalone).await.unwrap() {
            PutOutcome::Written(written) => written.id,
            other => panic!("{other:?}"),
        }
    }

    /// Whether a word occurs in any index file.
    fn is_on_disk(&self, word: &str) -> bool {
        fn any(folder: &Path, word: &str) -> bool {
            fs::read_dir(folder).unwrap().flatten().any(|entry| match entry.path() {
                path if path.is_dir() => any(&path, word),
                path => fs::read(path).unwrap().windows(word.len()).any(|bytes| bytes == word.as_bytes()),
            })
        }
        any(&self.folder.path().join("index"), word)
    }
}

async fn finds(library: &LocalIndex, word: &str) -> usize {
    let snapshot = library.base_snapshot(&BaseName::default()).await.unwrap().unwrap();
    snapshot.search(&Query { text: word, vector: None, filter: None, top: 10, mode: Mode::Words }).len()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_another_process_wrote_is_found_by_everybody_who_asks_afterwards() {
    let place = IndexFixture::new();
    let library = place.library().await;
    let another = IndexFixture {
        folder: tempfile::tempdir().unwrap(),
        store: Store::open(&place.folder.path().join("store"), store::Options::default()).unwrap(),
    };
    for number in 1..=100 {
        another.put("default", &format!("{number}.txt"), &format!("number {number} of many"), MODEL).await;
        let ask = |_| {
            let library = library.clone();
            tokio::spawn(async move { library.base_snapshot(&BaseName::default()).await.unwrap().unwrap().documents() })
        };
        let asked: Vec<_> = (0..4).map(ask).collect();
        for asks in asked {
            assert_eq!(asks.await.unwrap(), number);
        }
    }
}

#[tokio::test]
async fn k74_words_of_a_removed_document_are_gone_from_files_with_the_next_save() {
    let place = IndexFixture::new();
    let library = place.library().await;
    // One of many documents, so that the segment survives.
    for number in 0..20 {
        place.put("default", &format!("{number}.txt"), &format!("number {number} of many"), MODEL).await;
    }
    let secret = place.put("default", "secret.txt", "the zyzzyva whispers", MODEL).await;
    library.catch_up().await.unwrap();
    library.save().await.unwrap();
    assert!(place.is_on_disk("zyzzyva"));
    place.store.remove_document(&BaseName::default(), secret).await.unwrap();
    library.catch_up().await.unwrap();
    library.save().await.unwrap();
    assert!(!place.is_on_disk("zyzzyva"));
    assert!(place.is_on_disk("number"));
    assert_eq!(*lock(&library.0.purge_owed_since), None);
}

#[tokio::test]
async fn k74_what_was_removed_before_the_program_ended_is_gone_after_the_next_start() {
    let place = IndexFixture::new();
    let library = place.library().await;
    place.put("default", "kept.txt", "the heron stays", MODEL).await;
    let secret = place.put("default", "secret.txt", "the zyzzyva whispers", MODEL).await;
    place.put("cleared", "other.txt", "the quagga sleeps", MODEL).await;
    library.catch_up().await.unwrap();
    library.save().await.unwrap();
    assert!(place.is_on_disk("zyzzyva") && place.is_on_disk("quagga"));
    drop(library);
    place.store.remove_document(&BaseName::default(), secret).await.unwrap();
    place.store.clear(&"cleared".parse().unwrap()).await.unwrap();
    let library = place.library().await;
    library.save().await.unwrap();
    assert!(!place.is_on_disk("zyzzyva") && !place.is_on_disk("quagga"));
    assert_eq!(finds(&library, "heron").await, 1);
}

#[tokio::test]
async fn indexes_of_another_store_or_model_are_taken_away_and_nothing_else() {
    let place = IndexFixture::new();
    let index = place.folder.path().join("index");
    let file = |path: &str| {
        let path = index.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "zyzzyva").unwrap();
        path
    };
    let swept = [file("ffeeddccbbaa9988/base-default/01.segment"), file("ffeeddccbbaa9988/base-b/.new-x")];
    let kept = [
        file("0123456789abcdef/base-default/notes.txt"),
        file("photographs/base-default/01.segment"),
        file("0123456789abcdef0/base-default/01.segment"),
        file("ffee.segment"),
    ];
    place.library().await;
    assert!(swept.iter().all(|path| !path.exists()) && !index.join("ffeeddccbbaa9988").exists());
    assert!(kept.iter().all(|path| path.exists()));
}

#[tokio::test]
async fn a_file_that_was_never_finished_goes_when_it_is_old() {
    let place = IndexFixture::new();
    let library = place.library().await;
    place.put("default", "kept.txt", "the heron stays", MODEL).await;
    library.catch_up().await.unwrap();
    let folder = library.folder_of(&BaseName::default());
    fs::create_dir_all(&folder).unwrap();
    let [old, fresh] = ["old", "fresh"].map(|name| folder.join(format!(".new-{name}")));
    fs::write(&fresh, "being written").unwrap();
    let long_ago = std::time::SystemTime::now() - Duration::from_secs(2 * 3600);
    fs::File::create(&old).unwrap().set_modified(long_ago).unwrap();
    library.save().await.unwrap();
    assert_eq!((old.exists(), fresh.exists()), (false, true));
}

#[tokio::test]
async fn a_document_is_found_by_its_new_name_and_not_by_its_old_one() {
    let place = IndexFixture::new();
    let library = place.library().await;
    let id = place.put("default", "quokka.txt", "the heron stays", MODEL).await;
    library.catch_up().await.unwrap();
    library.save().await.unwrap();
    assert_eq!((finds(&library, "quokka").await, finds(&library, "wombat").await), (1, 0));
    let moved = Some("/documents/default/wombat.txt".to_owned());
    let base = BaseName::default();
    place.store.update_metadata(&base, id, Map::new(), moved, TaskLink::Standalone).await.unwrap().unwrap();
    library.catch_up().await.unwrap();
    assert_eq!((finds(&library, "quokka").await, finds(&library, "wombat").await), (0, 1));
    // The same holds for an index that reads the previously saved files.
    let library = place.library().await;
    assert_eq!((finds(&library, "quokka").await, finds(&library, "wombat").await), (0, 1));
}

#[tokio::test]
async fn documents_of_another_model_are_counted_in_their_own_base() {
    let place = IndexFixture::new();
    let (one, other): (BaseName, BaseName) = ("one".parse().unwrap(), "other".parse().unwrap());
    place.put("one", "a.txt", "the heron stays", "another").await;
    let library = place.library().await;
    let counted = async || {
        (
            library.documents_of_other_models(&one).await.unwrap(),
            library.documents_of_other_models(&other).await.unwrap(),
        )
    };
    assert_eq!(counted().await, (1, 0));
    let id = place.put("other", "b.txt", "the quagga sleeps", "another").await;
    place.put("other", "c.txt", "the zyzzyva whispers", MODEL).await;
    library.catch_up().await.unwrap();
    assert_eq!(counted().await, (1, 1));
    place.store.clear(&one).await.unwrap();
    library.catch_up().await.unwrap();
    assert_eq!(counted().await, (0, 1));
    place.store.remove_document(&other, id).await.unwrap();
    library.catch_up().await.unwrap();
    assert_eq!(counted().await, (0, 0));
}

//! Disk space: released when free, and a full disk.

use std::fs;

use corbie::knowledge::store::sqlite::Store;
use corbie::knowledge::store::{Error, Options};
use corbie::knowledge::task::TaskLink;

use crate::fixture::{default_base, document, open_sqlite, put, temp_folder};

#[tokio::test]
async fn k74_the_space_of_a_removed_document_is_given_back() {
    let folder = temp_folder();
    let store = open_sqlite(folder.path());
    put(&store, document("small.pdf", 5)).await;
    let large = document("large.pdf", 800);
    put(&store, large.clone()).await;
    put(&store, document("after.pdf", 5)).await;
    let size = || fs::metadata(folder.path().join("knowledge.db")).unwrap().len();
    let before = store.cached_size();
    store.remove_document(&default_base(), large.id).await.unwrap();
    assert!(size() < 300_000, "{} of {before}", size());
    assert!(store.check().await.unwrap().is_consistent());
}

#[tokio::test]
async fn k91_a_clear_tells_by_how_much_the_files_shrank() {
    let folder = temp_folder();
    let store = open_sqlite(folder.path());
    for number in 0..10 {
        put(&store, document(&format!("{number}.pdf"), 80)).await;
    }
    let cleared = store.clear(&default_base()).await.unwrap();
    let after = store.cached_size();
    assert!(cleared.freed_bytes > 1_000_000, "{cleared:?}");
    assert!(after < 300_000, "{after}");
}

#[tokio::test]
async fn a_full_disk_loses_nothing() {
    let folder = temp_folder();
    let options = Options { max_bytes: Some(1_000_000), ..Options::default() };
    let store = Store::open(folder.path(), options).unwrap();
    let mut kept = 0;
    let error = loop {
        match store.put_document(document(&format!("{kept}.pdf"), 40), TaskLink::Standalone).await {
            Ok(_) => kept += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, Error::Full), "{error}");
    assert_eq!((error.kind(), error.is_retryable()), ("storage_full", false));
    assert!(kept > 1);
    let report = store.check().await.unwrap();
    assert!(report.is_consistent(), "{report:?}");
    assert_eq!((report.documents, report.chunks, store.sequence().await.unwrap()), (kept, kept * 40, kept));
    for path in ["/home/ada/0.pdf", "/home/ada/1.pdf"] {
        let id = store.document_by_path(&default_base(), path).await.unwrap().unwrap().id;
        store.remove_document(&default_base(), id).await.unwrap().unwrap();
    }
    put(&store, document("again.pdf", 40)).await;
}

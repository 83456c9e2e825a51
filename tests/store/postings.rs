//! Posting lists in a database: they are removed with their documents.

use crate::fixture::{StoreLocation, base_named, default_base, document, eventually, put, store_location};

#[tokio::test]
async fn a_base_that_is_cleared_leaves_no_lists() {
    let home = store_location();
    let store = home.open().await;
    let StoreLocation::Database(database) = &home else { return };
    for number in 0..5 {
        put(&store, document(&format!("{number}.pdf"), 2)).await;
    }
    let mut kept = document("kept.pdf", 1);
    kept.base = base_named("kept");
    put(&store, kept).await;
    store.clear(&default_base()).await.unwrap();
    for table in ["writings", "batches"] {
        assert_eq!(database.query(&format!("SELECT count(*) FROM corbie.{table}")), ["1"], "{table}");
    }
    assert_eq!(database.query("SELECT count(DISTINCT batch) FROM corbie.postings"), ["1"]);
    assert!(store.check().await.unwrap().is_consistent());
    put(&store, document("0.pdf", 2)).await;
    assert_eq!(store.totals(&default_base()).await.unwrap().documents, 1);
}

#[tokio::test]
async fn a_large_batch_goes_once_enough_of_it_is_dead() {
    let home = store_location();
    let store = home.open().await;
    let StoreLocation::Database(database) = &home else { return };
    let gone = put(&store, document("gone.pdf", 1)).await;
    put(&store, document("kept.pdf", 1)).await;
    store.remove_document(&default_base(), gone.id).await.unwrap();
    // As if the batch were large and the writing dead for a quarter of an hour.
    database.query("UPDATE corbie.batches SET level = 4");
    database.query("UPDATE corbie.writings SET dead = dead - 900000 WHERE dead IS NOT NULL");
    let counted = "SELECT count(*) FROM corbie.writings";
    eventually("the words to go", async || (database.query(counted) == ["1"]).then_some(())).await;
    assert!(store.check().await.unwrap().is_consistent());
}

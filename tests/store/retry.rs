//! Idempotent retries of writes with a lost acknowledgement, and indexes built with different tokenizer rules.

use corbie::knowledge::store::postgres::{Address, Store};
use corbie::knowledge::store::{self, Options};

use crate::fixture::{StoreLocation, default_base, document, put, store_location};

#[tokio::test]
async fn a_document_that_is_put_again_with_its_id_is_the_one_that_was_written() {
    let home = store_location();
    let store::Store::Shared(store) = home.open().await else { return };
    let new = document("engine.pdf", 2);
    let first = put(&store, new.clone()).await;
    let again = put(&store, new).await;
    assert_eq!((again.key, again.id, again.chunks), (first.key, first.id, first.chunks));
    assert_eq!(store.totals(&default_base()).await.unwrap().documents, 1);
}

#[tokio::test]
async fn lists_of_words_that_were_made_by_other_rules_are_refused() {
    let home = store_location();
    drop(home.open().await);
    let StoreLocation::Database(database) = &home else { return };
    assert_eq!(database.query("SELECT value FROM corbie.meta WHERE name = 'words'"), ["1"]);
    drop(home.open().await);
    database.query("UPDATE corbie.meta SET value = '0' WHERE name = 'words'");
    let address = Address::parse(&database.url()).unwrap();
    let refused = Store::connect(&address, &[], Options::default()).await.unwrap_err().to_string();
    assert!(refused.contains("tokenizer version 0") && refused.contains("`corbie knowledge migrate`"), "{refused}");
}

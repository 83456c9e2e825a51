//! Migration of a store that is in use.

use std::sync::OnceLock;

use corbie::knowledge::store::Store;
use corbie::knowledge::store::migration::{MigrationReport, MigrationStep, migrate};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use crate::fixture::{StoreLocation, document, open_sqlite, put, store_location, temp_folder};

/// Migrates everything into an embedded store and runs a function before the last step.
async fn migrate_while(from: &Store, meanwhile: impl Fn()) -> MigrationReport {
    let target = temp_folder();
    let to: Store = open_sqlite(target.path()).into();
    let tell = |step| {
        if step == MigrationStep::Comparing {
            tokio::task::block_in_place(&meanwhile);
        }
    };
    migrate(from, &to, &CancellationToken::new(), tell).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_written_while_it_is_moved_is_told() {
    let home = store_location();
    let from = home.open().await;
    put(&from, document("before.pdf", 1)).await;
    assert_eq!(migrate_while(&from, || {}).await.problems, [] as [&str; 0]);
    let runtime = Handle::current();
    let write = || {
        runtime.block_on(put(&from, document("meanwhile.pdf", 1)));
    };
    let problems = migrate_while(&from, write).await.problems;
    assert!(problems.iter().any(|problem| problem.contains("was modified during the migration")), "{problems:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_begins_to_use_what_is_moved_is_told() {
    let home = store_location();
    let from = home.open().await;
    // An embedded store is locked during the migration.
    let StoreLocation::Database(_) = &home else { return };
    let (runtime, other) = (Handle::current(), OnceLock::new());
    let problems = migrate_while(&from, || drop(other.set(runtime.block_on(home.open())))).await.problems;
    assert!(problems.iter().any(|problem| problem.starts_with("other instances")), "{problems:?}");
}

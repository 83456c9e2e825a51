//! Migration of a store that is in use.

use std::sync::OnceLock;

use corbie::knowledge::store::Store;
use corbie::knowledge::store::moved::{Moved, Step, migrate};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use crate::fixture::{Home, document, folder, home, open, put};

/// Migrates everything into an embedded store and runs a function before the last step.
async fn moved(from: &Store, meanwhile: impl Fn()) -> Moved {
    let target = folder();
    let to: Store = open(target.path()).into();
    let tell = |step| {
        if step == Step::Comparing {
            tokio::task::block_in_place(&meanwhile);
        }
    };
    migrate(from, &to, &CancellationToken::new(), tell).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_written_while_it_is_moved_is_told() {
    let home = home();
    let from = home.open().await;
    put(&from, document("before.pdf", 1)).await;
    assert_eq!(moved(&from, || {}).await.problems, [] as [&str; 0]);
    let runtime = Handle::current();
    let write = || {
        runtime.block_on(put(&from, document("meanwhile.pdf", 1)));
    };
    let problems = moved(&from, write).await.problems;
    assert!(problems.iter().any(|problem| problem.contains("was written to meanwhile")), "{problems:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_begins_to_use_what_is_moved_is_told() {
    let home = home();
    let from = home.open().await;
    // An embedded store is locked during the migration.
    let Home::Database(_) = &home else { return };
    let (runtime, other) = (Handle::current(), OnceLock::new());
    let problems = moved(&from, || drop(other.set(runtime.block_on(home.open())))).await.problems;
    assert!(problems.iter().any(|problem| problem.starts_with("other instances")), "{problems:?}");
}

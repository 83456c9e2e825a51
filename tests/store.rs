#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
//! The knowledge base store through its public API. The common guarantees of all backends are tested on the embedded
//! one, and on PostgreSQL with `CORBIE_TEST_STORE=postgres tests/postgres/server -- cargo nextest run --test store`.

#[path = "store/again.rs"]
mod again;
#[path = "durability/chance.rs"]
mod chance;
#[path = "store/concurrency.rs"]
mod concurrency;
#[path = "postgres/database.rs"]
mod database;
#[path = "store/decisions.rs"]
mod decisions;
#[path = "store/documents.rs"]
mod documents;
#[path = "store/door.rs"]
mod door;
#[path = "store/embedded.rs"]
mod embedded;
#[path = "store/fixture.rs"]
mod fixture;
#[path = "store/instances.rs"]
mod instances;
#[path = "store/killed.rs"]
mod killed;
#[path = "store/listing.rs"]
mod listing;
#[path = "store/lists.rs"]
mod lists;
#[path = "store/moved.rs"]
mod moved;
#[path = "store/notices.rs"]
mod notices;
#[path = "store/replicas.rs"]
mod replicas;
#[path = "store/searches.rs"]
mod searches;
#[path = "store/tasks.rs"]
mod tasks;
#[path = "store/text.rs"]
mod text;
#[path = "store/tls.rs"]
mod tls;
#[path = "store/waits.rs"]
mod waits;
#[path = "store/watched.rs"]
mod watched;

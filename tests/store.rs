#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
//! The knowledge base store through its public API. The common guarantees of all backends are tested on the embedded
//! one, and on PostgreSQL with `CORBIE_TEST_STORE=postgres tests/postgres/server -- cargo nextest run --test store`.

#[path = "store/change_notifications.rs"]
mod change_notifications;
#[path = "store/concurrency.rs"]
mod concurrency;
#[path = "store/crash.rs"]
mod crash;
#[path = "postgres/database.rs"]
mod database;
#[path = "store/database_proxy.rs"]
mod database_proxy;
#[path = "store/decision_log.rs"]
mod decision_log;
#[path = "store/documents.rs"]
mod documents;
#[path = "store/embedded.rs"]
mod embedded;
#[path = "store/fixture.rs"]
mod fixture;
#[path = "store/instances.rs"]
mod instances;
#[path = "store/listing.rs"]
mod listing;
#[path = "store/migration.rs"]
mod migration;
#[path = "store/postings.rs"]
mod postings;
#[path = "store/replicas.rs"]
mod replicas;
#[path = "store/retry.rs"]
mod retry;
#[path = "store/searches.rs"]
mod searches;
#[path = "store/tasks.rs"]
mod tasks;
#[path = "store/text.rs"]
mod text;
#[path = "store/timeouts.rs"]
mod timeouts;
#[path = "store/tls.rs"]
mod tls;
#[path = "store/watched_files.rs"]
mod watched_files;

use corbie_test_support::seeded_rng as rng;

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
//! The store of the knowledge base, as those who use it meet it.

#[path = "store/care.rs"]
mod care;
#[path = "store/changes.rs"]
mod changes;
#[path = "store/concurrency.rs"]
mod concurrency;
#[path = "store/documents.rs"]
mod documents;
#[path = "store/files.rs"]
mod files;
#[path = "store/fixture.rs"]
mod fixture;
#[path = "store/listing.rs"]
mod listing;
#[path = "store/loading.rs"]
mod loading;
#[path = "store/processes.rs"]
mod processes;
#[path = "store/room.rs"]
mod room;
#[path = "store/speed.rs"]
mod speed;
#[path = "store/tasks.rs"]
mod tasks;
#[path = "store/text.rs"]
mod text;
#[path = "store/versions.rs"]
mod versions;
#[path = "store/versions_each.rs"]
mod versions_each;
#[path = "store/watched.rs"]
mod watched;

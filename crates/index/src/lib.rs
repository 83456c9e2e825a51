//! Hybrid search over document chunks: full text and vectors, filters, snapshots.
//!
//! The index is derived data. The owner has the source of truth: it passes changes to the [`Index`] and may save
//! segments as files to load them after a restart. This crate has no blocking I/O, no files and no clock.
//!
//! An index is a list of immutable segments. A change adds a small segment and marks removed documents; small
//! segments are merged from time to time. Searches run on a [`Snapshot`], which is immutable.

pub mod apart;
mod bitmap;
mod bm25;
mod candidate;
mod change;
mod dictionary;
mod file;
mod filter;
mod fuse;
#[cfg(all(test, target_os = "linux"))]
#[path = "../../../tests/guarded/mod.rs"]
mod guarded;
mod index;
mod kernel;
mod language;
mod part;
mod postings;
mod query;
mod relevance;
mod segment;
mod sketches;
mod snapshot;
mod spelling;
mod stop;
mod terms;
mod tidy;
mod tokens;
mod top;
mod vectors;
mod weight;
mod words;

pub use change::{Change, Chunk, Document, Facet, LiveDocument};
pub use file::Damage;
pub use index::{Index, Refused, Restored, Saved};
pub use query::{Filter, Hit, Mode, Query};
pub use segment::SegmentId;
pub use snapshot::Snapshot;

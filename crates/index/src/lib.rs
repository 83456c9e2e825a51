//! Hybrid search over chunks of documents: words and vectors, filters, snapshots.
//!
//! All of it is derived. The truth about documents lies with the owner, who tells the [`Index`] what changes and may
//! keep its segments as files, to have them back after a start. There is no waiting, no file and no clock in here.
//!
//! An index is a list of immutable segments. A change adds a small one and marks what is gone; small ones are joined
//! from time to time. Searches run on a [`Snapshot`], which stays as it is.

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

//! Hybrid search over document chunks: full text and vectors, filters, snapshots.
//!
//! The index is derived data. The owner has the source of truth: it passes changes to the [`Index`] and may save
//! segments as files to load them after a restart. This crate has no blocking I/O, no files and no clock.
//!
//! An index is a list of immutable segments. A change adds a small segment and marks removed documents; small
//! segments are merged from time to time. Searches run on a [`Snapshot`], which is immutable.

mod binary_quantization;
mod bitmap;
mod bm25;
mod candidate;
mod dictionary;
pub mod external;
mod filter;
mod fusion;
mod index;
mod inverted_index;
mod kernel;
mod language;
mod live_segment;
mod merge_policy;
mod postings;
mod query;
mod query_terms;
mod relevance;
mod segment;
mod segment_file;
mod sentence_match;
mod snapshot;
mod spelling;
mod stop_words;
mod term_weight;
mod tokenizer;
mod top_k;
mod update;
mod vectors;

pub use index::{Index, RejectedSegment, RestoreReport, SegmentsToSave};
pub use query::{Filter, Hit, Mode, Query};
pub use relevance::{HitFeatures, INPUTS as RELEVANCE_INPUTS};
pub use segment::SegmentId;
pub use segment_file::SegmentError;
pub use sentence_match::match_sentences;
pub use snapshot::Snapshot;
pub use update::{Chunk, Document, Facet, IndexUpdate, LiveDocument};

#[cfg(all(test, target_os = "linux"))]
#[global_allocator]
static ALLOCATOR: corbie_test_support::guard_page::GuardPageAllocator =
    corbie_test_support::guard_page::GuardPageAllocator;

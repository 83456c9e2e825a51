//! Search over external posting lists, statistics and vectors, such as those in a database.
//!
//! This module does no I/O. The owner stores the output of [`analyze`] for each document, fetches the data that a query
//! requests, and gets the same answer as from an index of the same documents:
//!
//! 1. [`ExternalQuery::new`] analyzes the query text. The owner fetches the lists of [`ExternalQuery::forms`].
//! 2. [`ExternalQuery::unknown_words`] returns the words that may be misspelt. The owner fetches terms that may be near ([`FuzzyLookup`]
//!    describes the filter), [`group_by_distance`] selects and orders them, and the owner fetches the lists of the nearest.
//!    [`ExternalQuery::correct`] accepts terms that occur in any live chunk.
//! 3. [`ExternalQuery::score`] scores the chunks. If the filter is not evaluated yet, the owner evaluates it for the best chunks,
//!    and [`ScoredQuery::retain`] drops the rest.
//! 4. The owner fetches the [`depth`] nearest chunks by vector. [`ScoredQuery::candidates`] selects the chunks to rerank, and
//!    the owner fetches the missing cosines.
//! 5. [`ScoredQuery::hits`] ranks them.
//!
//! Terms, weights, ranks and relevance are identical to the index. There are two differences. Lists store the length
//! of each chunk next to its count, because there is no array of lengths. And terms of removed documents become
//! unknown immediately, whereas a segment has them until it is merged: misspelt words get the same corrections as in
//! a fully merged index.

mod analyze;
mod corpus_stats;
mod fuzzy;
#[cfg(test)]
mod parity_tests;
mod postings;
mod query;
mod score;
mod scored_query;

pub use analyze::{AnalyzedDocument, analyze};
pub use corpus_stats::CorpusStats;
pub use fuzzy::{FuzzyLookup, FuzzyMatch, group_by_distance, term_signature};
pub use postings::{InvalidPostingsError, Posting, encode, for_each_posting, has_any, merge_lists};
pub use query::ExternalQuery;
pub use scored_query::{ExternalHit, RerankCandidate, ScoredQuery, VectorMatch};

/// Version of the analysis. Stored with the lists; it changes when the same text would give other terms, lengths or
/// lists.
pub const VERSION: i32 = 1;

/// Number of chunks that each search returns for `top` hits.
pub fn depth(top: usize) -> usize {
    crate::fusion::depth(top)
}

/// Maximum number of candidates to rerank for `top` hits.
pub fn pool(top: usize) -> usize {
    crate::fusion::max_candidates(top)
}

//! Search over external posting lists, statistics and vectors, such as those in a database.
//!
//! This module does no I/O. The owner stores the output of [`words`] for each document, fetches the data that a query
//! requests, and gets the same answer as from an index of the same documents:
//!
//! 1. [`Asked::new`] analyzes the query text. The owner fetches the lists of [`Asked::forms`].
//! 2. [`Asked::unknown`] returns the words that may be misspelt. The owner fetches terms that may be near ([`Misspelt`]
//!    describes the filter), [`nearest_first`] selects and orders them, and the owner fetches the lists of the nearest.
//!    [`Asked::mend`] accepts terms that occur in any live chunk.
//! 3. [`Asked::weigh`] scores the chunks. If the filter is not evaluated yet, the owner evaluates it for the best chunks,
//!    and [`Weighed::keep`] drops the rest.
//! 4. The owner fetches the [`depth`] nearest chunks by vector. [`Weighed::candidates`] selects the chunks to rerank, and
//!    the owner fetches the missing cosines.
//! 5. [`Weighed::hits`] ranks them.
//!
//! Terms, weights, ranks and relevance are identical to the index. There are two differences. Lists store the length
//! of each chunk next to its count, because there is no array of lengths. And terms of removed documents become
//! unknown immediately, whereas a segment has them until it is merged: misspelt words get the same corrections as in
//! a fully merged index.

#[cfg(test)]
mod agrees;
mod asked;
mod lists;
mod misspelt;
mod read;
mod score;
mod sums;
mod weighed;

pub use asked::Asked;
pub use lists::{Damage, Posting, each, encode, has_any, join};
pub use misspelt::{Close, Misspelt, nearest_first, signs};
pub use read::{Read, words};
pub use sums::Sums;
pub use weighed::{Candidate, Hit, Near, Weighed};

/// Version of the analysis. Stored with the lists; it changes when the same text would give other terms, lengths or
/// lists.
pub const VERSION: i32 = 1;

/// Number of chunks that each search returns for `top` hits.
pub fn depth(top: usize) -> usize {
    crate::fuse::depth(top)
}

/// Maximum number of candidates to rerank for `top` hits.
pub fn pool(top: usize) -> usize {
    crate::fuse::pool(top)
}

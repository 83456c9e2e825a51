//! The same search for a store that keeps lists, sums and vectors elsewhere, such as in a database.
//!
//! Nothing is read or waited for in here. The owner stores what [`words`] reads from a document, brings what a question
//! asks for, and gets what the index would have answered for the same documents:
//!
//! 1. [`Asked::new`] makes words of the question. The owner brings the lists of [`Asked::forms`].
//! 2. [`Asked::unknown`] tells which words may be misspelt. The owner brings terms that may be near ([`Misspelt`] says
//!    how to choose them), [`nearest_first`] tells which of them are, and the owner brings the lists of the nearest;
//!    [`Asked::mend`] takes those that any chunk has.
//! 3. [`Asked::weigh`] scores the chunks. Where it is not known yet which of them a filter allows, the owner asks about
//!    the best, and [`Weighed::keep`] leaves out the others.
//! 4. The owner brings the [`depth`] nearest chunks by vectors; [`Weighed::candidates`] tells which chunks are looked at
//!    closely. The owner brings the cosines that are missing.
//! 5. [`Weighed::hits`] puts them in order.
//!
//! Terms, weights, ranks and relevance are those of the index. Two things differ. Lists have the length of each chunk
//! beside its count, as there is no place to look it up. And words of removed documents are unknown at once, whereas a
//! segment holds them until it is tidied: misspelt words stand for what they would in an index that is tidy.

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

/// Changes when the same text would give other terms, lengths or lists. Stored beside them.
pub const VERSION: i32 = 1;

/// How many chunks each search looks for, where `top` are wanted.
pub fn depth(top: usize) -> usize {
    crate::fuse::depth(top)
}

/// How many chunks are looked at closely at most, where `top` are wanted.
pub fn pool(top: usize) -> usize {
    crate::fuse::pool(top)
}

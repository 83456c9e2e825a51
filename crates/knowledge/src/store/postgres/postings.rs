//! Inverted index: posting lists and the levels of their batches. Merges are in `postings_merge.rs`.
//!
//! Each document writes a batch of posting lists, one per term, over its own chunks. A term in ten thousand documents
//! would then have ten thousand lists. Batches of about the same size are therefore merged in the background into one
//! batch of the next level. A term then has at most [`MERGE_FACTOR`] lists per level, and one per batch of the top level.
//!
//! A list may contain removed chunks. Their content versions are marked dead (tombstones), and readers skip them. A
//! merge or a later purge drops their postings. When a whole base is cleared, its batches are dropped.

use corbie_index::external;
use tokio_postgres::types::Type;

use super::copy_in::{self, CopyRow};
use super::session::Session;
use super::{ORDINAL_BITS, rows};
use crate::store::Error;

/// Number of batches per merge.
pub(super) const MERGE_FACTOR: i64 = 8;
/// Maximum number of postings in a batch of level 0; each level holds up to [`MERGE_FACTOR`] times as many as the one below.
const MAX_LEVEL_0_POSTINGS: u64 = 4096;
/// Batches of this level are not merged any further: a merge holds all its lists in memory.
pub(super) const MAX_LEVEL: i16 = 4;

/// Checks the analyzer version. Posting lists are only usable with the analyzer that produced them. The first start
/// records its version.
pub(super) async fn check_analyzer_version(session: &Session) -> Result<(), Error> {
    let known = external::VERSION.to_string();
    let note = "INSERT INTO meta (name, value) VALUES ('words', $1) ON CONFLICT (name) DO NOTHING";
    let find = "SELECT value FROM meta WHERE name = 'words'";
    if session.opt_row(find, &[]).await?.is_none() {
        session.execute(note, &[&known]).await?;
    }
    let found: String = rows::get(&session.row(find, &[]).await?, 0)?;
    match found == known {
        true => Ok(()),
        false => Err(Error::Internal(format!(
            "the database was indexed with tokenizer version {found}, but this version of corbie uses {known}; with \
             the previous version, migrate the documents to a file, and with this version, from there to an empty \
             database (`corbie knowledge migrate`)"
        ))),
    }
}

/// Writes the posting lists of a document.
pub(super) async fn write_postings(
    session: &Session,
    base: i64,
    writing: i64,
    words: &external::AnalyzedDocument,
) -> Result<(), Error> {
    let first = (writing as u64) << ORDINAL_BITS;
    let lists = words.terms.iter().map(|(term, postings)| {
        let moved: Vec<external::Posting> =
            postings.iter().map(|posting| external::Posting { key: first | posting.key, ..*posting }).collect();
        (term.clone(), external::encode(&moved))
    });
    insert(session, base, writing, lists.collect()).await?;
    let count: usize = words.terms.iter().map(|(_, postings)| postings.len()).sum();
    record_batch(session, base, writing, count as u64).await?;
    let sql = "INSERT INTO writings (key, base, batch) VALUES ($1, $2, $1)";
    session.execute(sql, &[&writing, &base]).await?;
    Ok(())
}

pub(super) async fn insert(
    session: &Session,
    base: i64,
    batch: i64,
    lists: Vec<(String, Vec<u8>)>,
) -> Result<(), Error> {
    let columns = [
        ("base", Type::INT8),
        ("term", Type::TEXT),
        ("batch", Type::INT8),
        ("signs", Type::INT8),
        ("list", Type::BYTEA),
    ];
    let lines = lists.into_iter().map(|(term, list)| -> CopyRow<'static> {
        let signs = external::term_signature(&term);
        vec![Box::new(base), Box::new(term), Box::new(batch), Box::new(signs), Box::new(list)]
    });
    copy_in::copy_rows(session, "postings", &columns, lines.collect()).await
}

pub(super) async fn record_batch(session: &Session, base: i64, batch: i64, postings: u64) -> Result<(), Error> {
    let sql = "INSERT INTO batches (key, base, level, postings) VALUES ($1, $2, $3, $4)";
    session.execute(sql, &[&batch, &base, &level(postings), &rows::to_i64(postings)]).await?;
    Ok(())
}

/// The level of a batch by its size.
fn level(postings: u64) -> i16 {
    let mut level = 0;
    let mut most = MAX_LEVEL_0_POSTINGS;
    while postings > most && level < MAX_LEVEL {
        most *= MERGE_FACTOR as u64;
        level += 1;
    }
    level
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_of_a_size_make_one_of_the_next() {
        assert_eq!(
            [
                level(0),
                level(MAX_LEVEL_0_POSTINGS),
                level(MAX_LEVEL_0_POSTINGS + 1),
                level(MAX_LEVEL_0_POSTINGS * 8),
                level(MAX_LEVEL_0_POSTINGS * 8 + 1)
            ],
            [0, 0, 1, 1, 2]
        );
        assert_eq!(level(u64::MAX), MAX_LEVEL);
    }
}

//! Posting lists of the query terms, and spelling correction of unknown terms.

use std::collections::HashMap;
use std::sync::Arc;

use corbie_index::external::{self, ExternalQuery, FuzzyLookup, FuzzyMatch};
use tokio_postgres::Row;

use super::super::session::Session;
use super::super::{rows, run_blocking};
use super::scope::SearchScope;
use crate::store::Error;

/// Posting lists by term. Each term has several, from different batches.
pub(super) type PostingLists = HashMap<String, Vec<Vec<u8>>>;

/// Maximum number of terms to compare with a misspelled one: the ones that share the most characters with it.
const MAX_COMPARED_TERMS: i64 = 10_000;
/// Maximum number of equally close terms to load lists for: the most frequent ones.
const MAX_CORRECTIONS: i64 = 64;

/// The posting lists of some terms.
pub(super) async fn posting_lists(session: &Session, base: i64, forms: &[String]) -> Result<PostingLists, Error> {
    if forms.is_empty() {
        return Ok(PostingLists::new());
    }
    let sql = "SELECT term, list FROM postings WHERE base = $1 AND term = ANY($2)";
    by_term(&session.rows(sql, &[&base, &forms]).await?)
}

fn by_term(rows: &[Row]) -> Result<PostingLists, Error> {
    let mut lists = PostingLists::new();
    for row in rows {
        lists.entry(rows::get(row, 0)?).or_default().push(rows::get(row, 1)?);
    }
    Ok(lists)
}

/// Corrects query terms that occur in no document. Spelling is compared before any list is loaded, and only the
/// closest terms are used; more distant ones only if no live chunk contains a closer one.
pub(super) async fn correct_spelling(
    session: &Session,
    held: &Arc<SearchScope>,
    asked: &mut ExternalQuery,
    mut lists: PostingLists,
) -> Result<PostingLists, Error> {
    // Scoring reports a list that cannot be decoded.
    let has_live = |list: &Vec<u8>| external::has_any(list, |key| held.is_live(key)).unwrap_or(true);
    let unknown = asked.unknown_words(|form| lists.get(form).is_some_and(|lists| lists.iter().any(has_live)));
    if unknown.is_empty() {
        return Ok(lists);
    }
    let terms = similar_terms(session, held.base, &unknown).await?;
    let compare = move || external::group_by_distance(&unknown, terms.iter().map(String::as_str));
    for step in run_blocking(compare).await? {
        let step: Vec<FuzzyMatch> = step.into_iter().filter(|close| !asked.is_corrected(close)).collect();
        if step.is_empty() {
            continue;
        }
        let found = frequent_lists(session, held.base, &step).await?;
        let held = held.clone();
        let count = move || {
            let counted = step.into_iter().map(|close| {
                let count = found.get(&close.term).map_or(0, |lists| count_live(lists, &held));
                (close, count)
            });
            (counted.collect::<Vec<_>>(), found)
        };
        let (counted, found) = run_blocking(count).await?;
        asked.correct(&counted);
        lists.extend(found);
    }
    Ok(lists)
}

/// Terms of a base that may be close to misspelled ones, in a deterministic order. One scan of the terms covers all
/// misspelled ones.
async fn similar_terms(session: &Session, base: i64, unknown: &[FuzzyLookup]) -> Result<Vec<String>, Error> {
    let sql = "WITH misspelt AS MATERIALIZED (SELECT * FROM unnest($2::bigint[], $3::bigint[], $4::int[], $5::int[]) \
               WITH ORDINALITY AS m (signs, differing, least, most, form)), \
               terms AS (SELECT term, signs FROM postings WHERE base = $1 AND signs <> 0 \
               AND char_length(term) BETWEEN $6 AND $7 GROUP BY 1, 2), \
               compared AS (SELECT t.term, row_number() OVER (PARTITION BY m.form \
               ORDER BY bit_count((t.signs # m.signs)::bit(64)), t.term) AS place FROM terms AS t JOIN misspelt AS m \
               ON char_length(t.term) BETWEEN m.least AND m.most AND bit_count((t.signs # m.signs)::bit(64)) <= m.differing) \
               SELECT DISTINCT term FROM compared WHERE place <= $8";
    let signs: Vec<i64> = unknown.iter().map(|word| word.signature).collect();
    let differing: Vec<i64> = unknown.iter().map(|word| i64::from(word.max_differing_bits)).collect();
    let least: Vec<i32> = unknown.iter().map(|word| word.min_length.cast_signed()).collect();
    let most: Vec<i32> = unknown.iter().map(|word| word.max_length.cast_signed()).collect();
    let (shortest, longest) = (least.iter().min().copied().unwrap_or(0), most.iter().max().copied().unwrap_or(0));
    let rows = session
        .rows(sql, &[&base, &signs, &differing, &least, &most, &shortest, &longest, &MAX_COMPARED_TERMS])
        .await?;
    rows.iter().map(|row| rows::get(row, 0)).collect()
}

/// The lists of equally close terms. If there are many, the ones with the longest lists are loaded.
async fn frequent_lists(session: &Session, base: i64, step: &[FuzzyMatch]) -> Result<PostingLists, Error> {
    let sql = "WITH frequent AS MATERIALIZED (SELECT term FROM postings WHERE base = $1 AND term = ANY($2) GROUP BY term \
               ORDER BY sum(octet_length(list)) DESC, term LIMIT $3) \
               SELECT p.term, p.list FROM postings AS p JOIN frequent AS f ON f.term = p.term WHERE p.base = $1";
    let terms: Vec<&str> = step.iter().map(|close| close.term.as_str()).collect();
    by_term(&session.rows(sql, &[&base, &terms, &MAX_CORRECTIONS]).await?)
}

/// Number of live chunks in these lists.
fn count_live(lists: &[Vec<u8>], held: &SearchScope) -> u64 {
    let mut count = 0;
    for list in lists {
        // Scoring reports a list that cannot be decoded.
        let _ = external::for_each_posting(list, |posting| count += u64::from(held.is_live(posting.key)));
    }
    count
}

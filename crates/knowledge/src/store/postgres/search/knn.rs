//! k-nearest-neighbour search and similarity of given chunks.

use std::collections::HashMap;

use corbie_index::external::{self, RerankCandidate, VectorMatch};
use pgvector::HalfVector;

use super::super::models::ModelRow;
use super::super::session::Session;
use super::super::{chunks, rows};
use super::SearchQuery;
use super::filter::{AllowedVersions, Values};
use super::scope::SearchScope;
use crate::store::Error;

/// The HNSW index is faster if the square of the number of candidates exceeds this many times the number of stored
/// vectors. Comparing one vector takes about a microsecond. The index takes as long as four thousand comparisons, and
/// proportionally longer the more vectors it has to skip because of the filter or because they belong to other bases.
const INDEX_SCAN_COST: u64 = 4_000;

/// The nearest chunks, nearest first.
pub(super) async fn nearest_chunks(
    session: &Session,
    held: &SearchScope,
    model: ModelRow,
    direction: Option<&HalfVector>,
    sought: SearchQuery<'_>,
) -> Result<Vec<VectorMatch>, Error> {
    let Some(direction) = direction else { return Ok(Vec::new()) };
    let depth = external::depth(sought.top_k).min(usize::try_from(held.searchable_chunks).unwrap_or(usize::MAX));
    // A chunk may have several windows; the best one counts.
    let windows = (held.vectors as usize).div_ceil(held.stats.chunks.max(1) as usize).max(1);
    let candidates = held.searchable_chunks.max(1).saturating_mul(windows as u64);
    let is_exact = is_full_scan_faster(candidates, held.total_vectors);
    let mut limit = depth * windows + depth / 4;
    loop {
        let mut found = query_neighbours(session, held, model, direction, is_exact, limit).await?;
        // If the index scan stopped early, the result is incomplete, and a full scan follows.
        let wanted = limit.min(usize::try_from(candidates).unwrap_or(usize::MAX) / windows.max(1));
        if !is_exact && found.len() < wanted.min(limit) {
            found = query_neighbours(session, held, model, direction, true, limit).await?;
        }
        let is_all = found.len() < limit;
        let best = best_windows(found);
        if best.len() >= depth || is_all {
            return Ok(best.into_iter().take(depth).collect());
        }
        limit *= 2;
    }
}

async fn query_neighbours(
    session: &Session,
    held: &SearchScope,
    model: ModelRow,
    direction: &HalfVector,
    is_exact: bool,
    limit: usize,
) -> Result<Vec<VectorMatch>, Error> {
    let ModelRow { key, dimensions } = model;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let these: Vec<i64>;
    let mut given: Values = vec![&held.base, direction, &limit];
    // The planner uses the index only for exactly this ORDER BY expression; adding 0 prevents it.
    let apart = match is_exact {
        true => "(v.direction <=> $2) + 0".to_owned(),
        false => format!("v.direction::halfvec({dimensions}) <=> $2"),
    };
    // For lookups by content version, this keeps the planner from reading the whole base for each one, even if its
    // statistics are outdated.
    let unindexed = match (&held.allowed, is_exact) {
        (AllowedVersions::Set(_), true) => " + 0",
        _ => "",
    };
    // The model key is a literal: the index is partial, and a parameter would hide the match from the planner.
    let all = format!(
        "SELECT v.writing, v.ordinal, {apart} AS apart FROM vectors AS v WHERE v.base{unindexed} = $1 \
         AND v.model{unindexed} = {key}"
    );
    let found = match &held.allowed {
        AllowedVersions::All => all,
        AllowedVersions::Set(writings) => {
            these = writings.iter().copied().collect();
            given.push(&these);
            restrict_to_versions(&all, is_exact)
        }
        AllowedVersions::Matching(condition) => {
            let passing = condition.sql(&mut given);
            format!("{all} AND EXISTS (SELECT 1 FROM documents AS d WHERE d.writing = v.writing AND {passing})")
        }
    };
    // In a subquery, so that the distance is computed only once per vector.
    let sql = format!(
        "SELECT writing, ordinal, (1 - apart)::real FROM ({found} ORDER BY apart LIMIT $3) AS near ORDER BY apart"
    );
    let rows = session.rows(&sql, &given).await?;
    let near = rows.iter().map(|row| {
        Ok(VectorMatch {
            key: chunks::join_key(rows::get(row, 0)?, rows::get(row, 1)?),
            similarity: rows::get(row, 2)?,
        })
    });
    near.collect()
}

/// Restricts the search to some content versions. Neither form makes the planner compare each row with all of them: `=
/// ANY` would cost more than the search. The exact form fetches few versions one by one instead of reading all; the
/// index form looks up each row that the index returns.
fn restrict_to_versions(all: &str, is_exact: bool) -> String {
    match is_exact {
        true => format!(
            "SELECT v.* FROM unnest($4::bigint[]) AS these (writing) \
             CROSS JOIN LATERAL ({all} AND v.writing = these.writing OFFSET 0) AS v"
        ),
        false => format!("{all} AND (v.writing IN (SELECT unnest($4::bigint[]))) IS TRUE"),
    }
}

/// Whether a full scan of the candidates is faster than an index scan over all stored vectors.
fn is_full_scan_faster(candidates: u64, stored: u64) -> bool {
    candidates.saturating_mul(candidates) <= stored.max(candidates).saturating_mul(INDEX_SCAN_COST)
}

/// Keeps the best window of each chunk; ties are in key order.
fn best_windows(found: Vec<VectorMatch>) -> Vec<VectorMatch> {
    let mut best: HashMap<u64, f32> = HashMap::with_capacity(found.len());
    for near in found {
        let similarity = best.entry(near.key).or_insert(near.similarity);
        *similarity = similarity.max(near.similarity);
    }
    let mut best: Vec<VectorMatch> =
        best.into_iter().map(|(key, similarity)| VectorMatch { key, similarity }).collect();
    best.sort_by(|a, b| b.similarity.total_cmp(&a.similarity).then(a.key.cmp(&b.key)));
    best
}

/// Similarities of chunks that only the lexical search found.
pub(super) async fn similarities(
    session: &Session,
    model: ModelRow,
    direction: Option<&HalfVector>,
    candidates: &[RerankCandidate],
) -> Result<HashMap<u64, f32>, Error> {
    let missing = candidates.iter().filter(|candidate| candidate.similarity.is_none());
    let (writings, ordinals): (Vec<i64>, Vec<i32>) = missing.map(|candidate| chunks::split_key(candidate.key)).unzip();
    let Some(direction) = direction.filter(|_| !writings.is_empty()) else { return Ok(HashMap::new()) };
    let sql = "SELECT v.writing, v.ordinal, max(1 - (v.direction <=> $1))::real FROM vectors AS v \
               JOIN unnest($2::bigint[], $3::int[]) AS k (writing, ordinal) ON k.writing = v.writing AND k.ordinal = v.ordinal \
               WHERE v.model = $4 GROUP BY 1, 2";
    let rows = session.rows(sql, &[direction, &writings, &ordinals, &model.key]).await?;
    let similarities =
        rows.iter().map(|row| Ok((chunks::join_key(rows::get(row, 0)?, rows::get(row, 1)?), rows::get(row, 2)?)));
    similarities.collect()
}

/// Similarities of all windows of these chunks, in order.
pub(super) async fn window_similarities(
    session: &Session,
    model: ModelRow,
    direction: Option<&HalfVector>,
    keys: &[u64],
) -> Result<HashMap<u64, Vec<f32>>, Error> {
    let Some(direction) = direction.filter(|_| !keys.is_empty()) else { return Ok(HashMap::new()) };
    let (writings, ordinals): (Vec<i64>, Vec<i32>) = keys.iter().map(|key| chunks::split_key(*key)).unzip();
    let sql = "SELECT v.writing, v.ordinal, (1 - (v.direction <=> $1))::real FROM vectors AS v \
               JOIN unnest($2::bigint[], $3::int[]) AS k (writing, ordinal) ON k.writing = v.writing AND k.ordinal = v.ordinal \
               WHERE v.model = $4 ORDER BY v.writing, v.ordinal, v.place";
    let mut found: HashMap<u64, Vec<f32>> = HashMap::with_capacity(keys.len());
    for row in session.rows(sql, &[direction, &writings, &ordinals, &model.key]).await? {
        let key = chunks::join_key(rows::get(&row, 0)?, rows::get(&row, 1)?);
        found.entry(key).or_default().push(rows::get(&row, 2)?);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::is_full_scan_faster;

    #[test]
    fn few_are_compared_one_by_one_and_more_of_them_the_more_an_index_would_pass_by() {
        assert!(is_full_scan_faster(4_000, 4_000));
        assert!(!is_full_scan_faster(10_000, 10_000));
        assert!(is_full_scan_faster(10_000, 100_000));
        assert!(!is_full_scan_faster(50_000, 100_000));
        assert!(is_full_scan_faster(50_000, 1_000_000));
        assert!(is_full_scan_faster(1_000, 0), "nobody has counted yet");
    }
}

//! The neighbours of a direction, and how near others are.

use std::collections::HashMap;

use corbie_index::apart::{self, Candidate, Near};
use pgvector::HalfVector;

use super::super::models::Model;
use super::super::session::Session;
use super::super::{chunks, rows};
use super::Sought;
use super::allowed::{Allowed, Values};
use super::held::Held;
use crate::knowledge::store::Error;

/// The index pays where the square of those that may be found is more than this many times those that it goes through.
/// Comparing one takes about a microsecond. The index takes as long as four thousand of these, and as many times longer as
/// it passes by others: what a filter leaves out, and what is in other bases.
const PAYS: u64 = 4_000;

/// The chunks whose direction is nearest, nearest first.
pub(super) async fn near(
    session: &Session,
    held: &Held,
    model: Model,
    direction: Option<&HalfVector>,
    sought: Sought<'_>,
) -> Result<Vec<Near>, Error> {
    let Some(direction) = direction else { return Ok(Vec::new()) };
    let depth = apart::depth(sought.top).min(usize::try_from(held.searched).unwrap_or(usize::MAX));
    // A chunk may have several windows, of which the best counts.
    let windows = (held.vectors as usize).div_ceil(held.sums.chunks.max(1) as usize).max(1);
    let candidates = held.searched.max(1).saturating_mul(windows as u64);
    let is_exact = is_quicker_one_by_one(candidates, held.stored);
    let mut limit = depth * windows + depth / 4;
    loop {
        let mut found = nearest(session, held, model, direction, is_exact, limit).await?;
        // An index that gave up early has not found what there is; then every one is looked at.
        let wanted = limit.min(usize::try_from(candidates).unwrap_or(usize::MAX) / windows.max(1));
        if !is_exact && found.len() < wanted.min(limit) {
            found = nearest(session, held, model, direction, true, limit).await?;
        }
        let is_all = found.len() < limit;
        let best = best_windows(found);
        if best.len() >= depth || is_all {
            return Ok(best.into_iter().take(depth).collect());
        }
        limit *= 2;
    }
}

async fn nearest(
    session: &Session,
    held: &Held,
    model: Model,
    direction: &HalfVector,
    is_exact: bool,
    limit: usize,
) -> Result<Vec<Near>, Error> {
    let Model { key, dimensions } = model;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let these: Vec<i64>;
    let mut given: Values = vec![&held.base, direction, &limit];
    // The planner takes the index for an order by this expression, and not for one that is a little more than it.
    let apart = match is_exact {
        true => "(v.direction <=> $2) + 0".to_owned(),
        false => format!("v.direction::halfvec({dimensions}) <=> $2"),
    };
    // Where writings are looked up one after the other, all of their base are not to be read for each, whatever the planner
    // knows of tables that were just filled.
    let unindexed = match (&held.allowed, is_exact) {
        (Allowed::These(_), true) => " + 0",
        _ => "",
    };
    // The model stands in the text: the index is of those vectors alone, and a parameter would hide that from the planner.
    let all = format!(
        "SELECT v.writing, v.ordinal, {apart} AS apart FROM vectors AS v WHERE v.base{unindexed} = $1 \
         AND v.model{unindexed} = {key}"
    );
    let found = match &held.allowed {
        Allowed::All => all,
        Allowed::These(writings) => {
            these = writings.iter().copied().collect();
            given.push(&these);
            among_these(&all, is_exact)
        }
        Allowed::Passing(condition) => {
            let passing = condition.sql(&mut given);
            format!("{all} AND EXISTS (SELECT 1 FROM documents AS d WHERE d.writing = v.writing AND {passing})")
        }
    };
    // Within, so that it is reckoned once for each vector and not again for what is told.
    let sql = format!(
        "SELECT writing, ordinal, (1 - apart)::real FROM ({found} ORDER BY apart LIMIT $3) AS near ORDER BY apart"
    );
    let rows = session.rows(&sql, &given).await?;
    let near = rows.iter().map(|row| {
        Ok(Near { key: chunks::key(rows::get(row, 0)?, rows::get(row, 1)?), similarity: rows::get(row, 2)? })
    });
    near.collect()
}

/// Those of some writings. Neither way has the planner look at each of them: `= ANY` would cost more than the search. Few are
/// fetched one after the other, in the place of reading all and leaving out most; where the index is gone through, each
/// that it finds is looked up.
fn among_these(all: &str, is_exact: bool) -> String {
    match is_exact {
        true => format!(
            "SELECT v.* FROM unnest($4::bigint[]) AS these (writing) \
             CROSS JOIN LATERAL ({all} AND v.writing = these.writing OFFSET 0) AS v"
        ),
        false => format!("{all} AND (v.writing IN (SELECT unnest($4::bigint[]))) IS TRUE"),
    }
}

/// Whether candidates are sooner compared one by one than found with an index over all that is stored.
fn is_quicker_one_by_one(candidates: u64, stored: u64) -> bool {
    candidates.saturating_mul(candidates) <= stored.max(candidates).saturating_mul(PAYS)
}

/// Each chunk once, by its best window; equal ones in the order of their keys.
fn best_windows(found: Vec<Near>) -> Vec<Near> {
    let mut best: HashMap<u64, f32> = HashMap::with_capacity(found.len());
    for near in found {
        let similarity = best.entry(near.key).or_insert(near.similarity);
        *similarity = similarity.max(near.similarity);
    }
    let mut best: Vec<Near> = best.into_iter().map(|(key, similarity)| Near { key, similarity }).collect();
    best.sort_by(|a, b| b.similarity.total_cmp(&a.similarity).then(a.key.cmp(&b.key)));
    best
}

/// How near those are that only words have found.
pub(super) async fn similarities(
    session: &Session,
    model: Model,
    direction: Option<&HalfVector>,
    candidates: &[Candidate],
) -> Result<HashMap<u64, f32>, Error> {
    let missing = candidates.iter().filter(|candidate| candidate.similarity.is_none());
    let (writings, ordinals): (Vec<i64>, Vec<i32>) = missing.map(|candidate| chunks::parts(candidate.key)).unzip();
    let Some(direction) = direction.filter(|_| !writings.is_empty()) else { return Ok(HashMap::new()) };
    let sql = "SELECT v.writing, v.ordinal, max(1 - (v.direction <=> $1))::real FROM vectors AS v \
               JOIN unnest($2::bigint[], $3::int[]) AS k (writing, ordinal) ON k.writing = v.writing AND k.ordinal = v.ordinal \
               WHERE v.model = $4 GROUP BY 1, 2";
    let rows = session.rows(sql, &[direction, &writings, &ordinals, &model.key]).await?;
    let similarities =
        rows.iter().map(|row| Ok((chunks::key(rows::get(row, 0)?, rows::get(row, 1)?), rows::get(row, 2)?)));
    similarities.collect()
}

#[cfg(test)]
mod tests {
    use super::is_quicker_one_by_one;

    #[test]
    fn few_are_compared_one_by_one_and_more_of_them_the_more_an_index_would_pass_by() {
        assert!(is_quicker_one_by_one(4_000, 4_000));
        assert!(!is_quicker_one_by_one(10_000, 10_000));
        assert!(is_quicker_one_by_one(10_000, 100_000));
        assert!(!is_quicker_one_by_one(50_000, 100_000));
        assert!(is_quicker_one_by_one(50_000, 1_000_000));
        assert!(is_quicker_one_by_one(1_000, 0), "nobody has counted yet");
    }
}

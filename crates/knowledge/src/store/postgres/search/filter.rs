//! Search filter.
//!
//! If few content versions pass the filter, their keys are loaded. If many do, the filter stays in the database: it is
//! applied to the neighbours there, and only the best lexical results are checked against it.

use std::collections::HashSet;

use corbie_index::Filter;
use corbie_index::external::{self, ScoredQuery, VectorMatch};
use tokio_postgres::types::ToSql;

use super::super::session::Session;
use super::super::{ORDINAL_BITS, rows, run_blocking};
use crate::store::Error;

/// Maximum number of content versions to load.
const MAX_LOADED_VERSIONS: i64 = 10_000;
/// Number of lexical results to check first, per requested result, and the growth factor if these are not enough.
const INITIAL_FACTOR: usize = 4;
const GROWTH_FACTOR: usize = 4;

/// The content versions that may be found.
#[derive(Debug)]
pub(super) enum AllowedVersions {
    All,
    Set(HashSet<i64>),
    /// Too many to load.
    Matching(Condition),
}

/// The filter as a condition on documents.
#[derive(Debug)]
pub(super) struct Condition {
    base: i64,
    added_from: i64,
    added_to: i64,
    /// Each group needs at least one match.
    facets: Vec<Vec<i64>>,
}

/// Parameters of a statement under construction.
pub(super) type Values<'v> = Vec<&'v (dyn ToSql + Sync)>;

impl AllowedVersions {
    /// Applies a filter to a base. Also returns the number of matching documents and chunks.
    pub(super) async fn of(
        session: &Session,
        base: i64,
        filter: &Filter,
    ) -> Result<(AllowedVersions, u64, u64), Error> {
        let condition = Condition::of(base, filter);
        let mut values: Values = vec![&MAX_LOADED_VERSIONS];
        let passing = condition.sql(&mut values);
        let sql = format!(
            "SELECT count(*), coalesce(sum(chunk_count), 0)::bigint, array_agg(writing) FILTER (WHERE place <= $1) FROM \
             (SELECT d.writing, d.chunk_count, row_number() OVER () AS place FROM documents AS d WHERE {passing}) AS p"
        );
        let row = session.row(&sql, &values).await?;
        let (documents, chunks) = (rows::get_u64(&row, 0)?, rows::get_u64(&row, 1)?);
        let few: Option<Vec<i64>> = rows::get(&row, 2)?;
        let few: HashSet<i64> = few.unwrap_or_default().into_iter().collect();
        let allowed = match few.len() as u64 == documents {
            true => AllowedVersions::Set(few),
            false => AllowedVersions::Matching(condition),
        };
        Ok((allowed, documents, chunks))
    }

    /// Whether a chunk may be found, as far as it can be decided without the database.
    pub(super) fn allows(&self, key: u64) -> bool {
        match self {
            AllowedVersions::Set(writings) => writings.contains(&content_version(key)),
            AllowedVersions::All | AllowedVersions::Matching(_) => true,
        }
    }
}

impl Condition {
    fn of(base: i64, filter: &Filter) -> Condition {
        let numbers = |(key, values): &(String, Vec<String>)| {
            values.iter().map(|value| rows::facet_hash(key, value)).collect::<Vec<i64>>()
        };
        Condition {
            base,
            added_from: filter.added_from.unwrap_or(i64::MIN),
            added_to: filter.added_to.unwrap_or(i64::MAX),
            facets: filter.all.iter().map(numbers).collect(),
        }
    }

    /// SQL condition on `documents AS d`.
    pub(super) fn sql<'v>(&'v self, values: &mut Values<'v>) -> String {
        let mut value = |value: &'v (dyn ToSql + Sync)| {
            values.push(value);
            values.len()
        };
        let (base, from, to) = (value(&self.base), value(&self.added_from), value(&self.added_to));
        let mut sql = format!("d.base = ${base} AND d.date_added BETWEEN ${from} AND ${to}");
        for numbers in &self.facets {
            sql += &format!(" AND d.facets && ${}", value(numbers));
        }
        sql
    }

    /// Drops lexical results that do not pass the filter. Neighbours have already passed it.
    pub(super) async fn filter_results(
        &self,
        session: &Session,
        mut weighed: ScoredQuery,
        near: &[VectorMatch],
        top: usize,
    ) -> Result<ScoredQuery, Error> {
        let wanted = external::depth(top);
        let (mut asked, mut passing) = (HashSet::new(), HashSet::new());
        let mut most = INITIAL_FACTOR * wanted;
        loop {
            let best = move || {
                let keys = weighed.best(most);
                (weighed, keys)
            };
            let keys;
            (weighed, keys) = run_blocking(best).await?;
            let new = keys.iter().map(|key| content_version(*key)).filter(|writing| asked.insert(*writing)).collect();
            passing.extend(self.matching(session, new).await?);
            let found = keys.iter().filter(|key| passing.contains(&content_version(**key))).count();
            if found >= wanted || keys.len() < most {
                break;
            }
            most *= GROWTH_FACTOR;
        }
        let near: HashSet<u64> = near.iter().map(|near| near.key).collect();
        let keep = move || {
            weighed.retain(|key| passing.contains(&content_version(key)) || near.contains(&key));
            weighed
        };
        run_blocking(keep).await
    }

    /// Returns the content versions that pass.
    async fn matching(&self, session: &Session, writings: Vec<i64>) -> Result<Vec<i64>, Error> {
        let mut values: Values = vec![&writings];
        let passing = self.sql(&mut values);
        let sql = format!("SELECT array_agg(d.writing) FROM documents AS d WHERE d.writing = ANY($1) AND {passing}");
        let passing: Option<Vec<i64>> = rows::get(&session.row(&sql, &values).await?, 0)?;
        Ok(passing.unwrap_or_default())
    }
}

fn content_version(key: u64) -> i64 {
    (key >> ORDINAL_BITS) as i64
}

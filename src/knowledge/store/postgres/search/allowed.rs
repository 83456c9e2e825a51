//! Search filter.
//!
//! If few content versions pass the filter, their keys are loaded. If many do, the filter stays in the database: it is
//! applied to the neighbours there, and only the best lexical results are checked against it.

use std::collections::HashSet;

use corbie_index::Filter;
use corbie_index::apart::{self, Near, Weighed};
use tokio_postgres::types::ToSql;

use super::super::session::Session;
use super::super::{KEYS, aside, facets, rows};
use crate::knowledge::store::Error;

/// Maximum number of content versions to load.
const FEW: i64 = 10_000;
/// Number of lexical results to check first, per requested result, and the growth factor if these are not enough.
const AT_FIRST: usize = 4;
const MORE: usize = 4;

/// The content versions that may be found.
#[derive(Debug)]
pub(super) enum Allowed {
    All,
    These(HashSet<i64>),
    /// Too many to load.
    Passing(Condition),
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

impl Allowed {
    /// Applies a filter to a base. Also returns the number of matching documents and chunks.
    pub(super) async fn of(session: &Session, base: i64, filter: &Filter) -> Result<(Allowed, u64, u64), Error> {
        let condition = Condition::of(base, filter);
        let mut values: Values = vec![&FEW];
        let passing = condition.sql(&mut values);
        let sql = format!(
            "SELECT count(*), coalesce(sum(chunk_count), 0)::bigint, array_agg(writing) FILTER (WHERE place <= $1) FROM \
             (SELECT d.writing, d.chunk_count, row_number() OVER () AS place FROM documents AS d WHERE {passing}) AS p"
        );
        let row = session.row(&sql, &values).await?;
        let (documents, chunks) = (rows::number(&row, 0)?, rows::number(&row, 1)?);
        let few: Option<Vec<i64>> = rows::get(&row, 2)?;
        let few: HashSet<i64> = few.unwrap_or_default().into_iter().collect();
        let allowed = match few.len() as u64 == documents {
            true => Allowed::These(few),
            false => Allowed::Passing(condition),
        };
        Ok((allowed, documents, chunks))
    }

    /// Whether a chunk may be found, as far as it can be decided without the database.
    pub(super) fn allows(&self, key: u64) -> bool {
        match self {
            Allowed::These(writings) => writings.contains(&writing(key)),
            Allowed::All | Allowed::Passing(_) => true,
        }
    }
}

impl Condition {
    fn of(base: i64, filter: &Filter) -> Condition {
        let numbers = |(key, values): &(String, Vec<String>)| {
            values.iter().map(|value| facets::facet_number(key, value)).collect::<Vec<i64>>()
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
    pub(super) async fn sift(
        &self,
        session: &Session,
        mut weighed: Weighed,
        near: &[Near],
        top: usize,
    ) -> Result<Weighed, Error> {
        let wanted = apart::depth(top);
        let (mut asked, mut passing) = (HashSet::new(), HashSet::new());
        let mut most = AT_FIRST * wanted;
        loop {
            let best = move || {
                let keys = weighed.best(most);
                (weighed, keys)
            };
            let keys;
            (weighed, keys) = aside(best).await?;
            let new = keys.iter().map(|key| writing(*key)).filter(|writing| asked.insert(*writing)).collect();
            passing.extend(self.passing(session, new).await?);
            let found = keys.iter().filter(|key| passing.contains(&writing(**key))).count();
            if found >= wanted || keys.len() < most {
                break;
            }
            most *= MORE;
        }
        let near: HashSet<u64> = near.iter().map(|near| near.key).collect();
        let keep = move || {
            weighed.keep(|key| passing.contains(&writing(key)) || near.contains(&key));
            weighed
        };
        aside(keep).await
    }

    /// Returns the content versions that pass.
    async fn passing(&self, session: &Session, writings: Vec<i64>) -> Result<Vec<i64>, Error> {
        let mut values: Values = vec![&writings];
        let passing = self.sql(&mut values);
        let sql = format!("SELECT array_agg(d.writing) FROM documents AS d WHERE d.writing = ANY($1) AND {passing}");
        let passing: Option<Vec<i64>> = rows::get(&session.row(&sql, &values).await?, 0)?;
        Ok(passing.unwrap_or_default())
    }
}

fn writing(key: u64) -> i64 {
    (key >> KEYS) as i64
}

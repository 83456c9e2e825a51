//! Search scope: statistics of a base and its filter, loaded before the search starts.

use std::collections::HashSet;

use corbie_index::Filter;
use corbie_index::apart::Sums;
use tokio_postgres::types::ToSql;

use super::super::session::Session;
use super::super::{KEYS, rows, sums};
use super::allowed::Allowed;
use crate::knowledge::document::BaseName;
use crate::knowledge::store::Error;

/// Statistics of a base, and the part of it to search.
pub(super) struct Held {
    pub(super) base: i64,
    pub(super) sums: Sums,
    pub(super) vectors: u64,
    /// Estimated number of vectors in all bases.
    pub(super) stored: u64,
    dead: HashSet<i64>,
    pub(super) allowed: Allowed,
    /// Number of chunks that may be found.
    pub(super) searched: u64,
}

impl Held {
    pub(super) async fn of(session: &Session, base: &BaseName, filter: Option<&Filter>) -> Result<Option<Held>, Error> {
        let Some(base) = rows::base(session, base).await? else { return Ok(None) };
        let dead = "SELECT array_agg(key) FROM writings WHERE base = $1 AND dead IS NOT NULL";
        let given: [&(dyn ToSql + Sync); 1] = [&base];
        let allowed = async {
            match filter {
                Some(filter) => Allowed::of(session, base, filter).await.map(Some),
                None => Ok(None),
            }
        };
        let (sums, spoken, dead, stored, allowed) = tokio::try_join!(
            session.row(sums::WEIGHED, &given),
            session.rows(sums::SPOKEN, &given),
            session.row(dead, &given),
            rows::about_how_many(session, "vectors"),
            allowed,
        )?;
        let (chunks, vectors, documents) = (rows::number(&sums, 0)?, rows::number(&sums, 1)?, rows::number(&sums, 3)?);
        if documents == 0 {
            return Ok(None);
        }
        let languages =
            spoken.iter().map(|row| Ok((rows::small(row, 0)? as u8, rows::get::<i64>(row, 1)?.max(0) as u64)));
        let (allowed, searched) = match allowed {
            // A filter that every document passes is dropped.
            Some((allowed, passing, chunks)) if passing < documents => (allowed, chunks),
            _ => (Allowed::All, chunks),
        };
        let dead: Option<Vec<i64>> = rows::get(&dead, 0)?;
        Ok(Some(Held {
            base,
            sums: Sums { chunks, length: rows::number(&sums, 2)?, languages: languages.collect::<Result<_, Error>>()? },
            vectors,
            stored: stored.max(vectors),
            dead: dead.unwrap_or_default().into_iter().collect(),
            allowed,
            searched,
        }))
    }

    /// Whether a chunk has not been removed.
    pub(super) fn is_live(&self, key: u64) -> bool {
        !self.dead.contains(&((key >> KEYS) as i64))
    }
}

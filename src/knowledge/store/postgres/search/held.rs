//! What a base holds, and what of it may be found: all that is known before anything is looked for.

use std::collections::HashSet;

use corbie_index::Filter;
use corbie_index::apart::Sums;
use tokio_postgres::types::ToSql;

use super::super::session::Session;
use super::super::{KEYS, put, rows, sums};
use crate::knowledge::document::BaseName;
use crate::knowledge::store::Error;

/// What a base holds, and what of it may be found.
pub(super) struct Held {
    pub(super) base: i64,
    pub(super) sums: Sums,
    pub(super) vectors: u64,
    pub(super) dead: HashSet<i64>,
    /// Writings that pass the filter, if there is one.
    pub(super) allowed: Option<HashSet<i64>>,
    /// Chunks that may be found.
    pub(super) searched: u64,
}

impl Held {
    /// Whether a chunk is still there.
    pub(super) fn is_live(&self, key: u64) -> bool {
        !self.dead.contains(&((key >> KEYS) as i64))
    }

    /// Whether the filter lets a chunk be found.
    pub(super) fn allows(&self, key: u64) -> bool {
        self.allowed.as_ref().is_none_or(|allowed| allowed.contains(&((key >> KEYS) as i64)))
    }

    pub(super) async fn of(session: &Session, base: &BaseName, filter: Option<&Filter>) -> Result<Option<Held>, Error> {
        let Some(base) = rows::base(session, base).await? else { return Ok(None) };
        let dead = "SELECT key FROM writings WHERE base = $1 AND dead IS NOT NULL";
        let given: [&(dyn ToSql + Sync); 1] = [&base];
        let (sums, spoken, dead, allowed) = tokio::try_join!(
            session.rows(sums::WEIGHED, &given),
            session.rows(sums::SPOKEN, &given),
            session.rows(dead, &given),
            allowed(session, base, filter),
        )?;
        let Some(row) = sums.first().filter(|row| row.get::<_, i64>(3) > 0) else { return Ok(None) };
        let chunks = rows::number(row, 0)?;
        let languages =
            spoken.iter().map(|row| Ok((rows::small(row, 0)? as u8, rows::get::<i64>(row, 1)?.max(0) as u64)));
        let sums = Sums { chunks, length: rows::number(row, 2)?, languages: languages.collect::<Result<_, Error>>()? };
        let searched = allowed.as_ref().map_or(chunks, |(_, chunks)| *chunks);
        Ok(Some(Held {
            base,
            sums,
            vectors: rows::number(row, 1)?,
            dead: dead.iter().map(|row| rows::get(row, 0)).collect::<Result<_, _>>()?,
            allowed: allowed.map(|(writings, _)| writings),
            searched,
        }))
    }
}

/// The writings that a filter lets pass, and how many chunks they have.
async fn allowed(session: &Session, base: i64, filter: Option<&Filter>) -> Result<Option<(HashSet<i64>, u64)>, Error> {
    let Some(filter) = filter else { return Ok(None) };
    let (from, to) = (filter.added_from.unwrap_or(i64::MIN), filter.added_to.unwrap_or(i64::MAX));
    let any = filter.all.iter().map(|(key, values)| values.iter().map(|value| put::facet_number(key, value)).collect());
    let any: Vec<Vec<i64>> = any.collect();
    let mut sql =
        "SELECT writing, chunk_count FROM documents WHERE base = $1 AND date_added BETWEEN $2 AND $3".to_owned();
    let mut given: Vec<&(dyn ToSql + Sync)> = vec![&base, &from, &to];
    for numbers in &any {
        given.push(numbers);
        sql += &format!(" AND facets && ${}", given.len());
    }
    let (mut writings, mut chunks) = (HashSet::new(), 0);
    for row in session.rows(&sql, &given).await? {
        writings.insert(rows::get(&row, 0)?);
        chunks += u64::from(rows::small(&row, 1)?);
    }
    Ok(Some((writings, chunks)))
}

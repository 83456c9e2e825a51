//! The lists of a question's words, and what was meant by those that nobody has written.

use std::collections::HashMap;

use corbie_index::apart::{self, Asked, Misspelt};

use super::super::session::Session;
use super::super::{KEYS, rows};
use super::held::Held;
use crate::knowledge::store::Error;

/// The most words that a misspelt one is compared with.
const MOST_NEAR: i64 = 500;

/// The lists of some words.
pub(super) async fn lists(
    session: &Session,
    base: i64,
    forms: &[String],
) -> Result<HashMap<String, Vec<Vec<u8>>>, Error> {
    let mut lists: HashMap<String, Vec<Vec<u8>>> = HashMap::new();
    if forms.is_empty() {
        return Ok(lists);
    }
    let sql = "SELECT term, list FROM postings WHERE base = $1 AND term = ANY($2)";
    for row in session.rows(sql, &[&base, &forms]).await? {
        lists.entry(rows::get(&row, 0)?).or_default().push(rows::get(&row, 1)?);
    }
    Ok(lists)
}

/// Finds what was meant by words that nobody has written.
pub(super) async fn mend(
    session: &Session,
    held: &Held,
    asked: &mut Asked,
    lists: &mut HashMap<String, Vec<Vec<u8>>>,
) -> Result<(), Error> {
    let is_live = |key: u64| !held.dead.contains(&((key >> KEYS) as i64));
    let counted = |list: &Vec<Vec<u8>>| -> u64 {
        let mut count = 0;
        for part in list {
            // One that cannot be read is told by whoever weighs it.
            let _ = apart::each(part, |posting| count += u64::from(is_live(posting.key)));
        }
        count
    };
    let unknown = asked.unknown(|form| lists.get(form).is_some_and(|list| counted(list) > 0));
    if unknown.is_empty() {
        return Ok(());
    }
    let mut near: Vec<(Misspelt, Vec<(String, u64)>)> = Vec::new();
    for misspelt in unknown {
        let (signs, differing) = (misspelt.signs, i64::from(misspelt.most_differing));
        let (least, most) = (misspelt.least_length.cast_signed(), misspelt.most_length.cast_signed());
        let sql = "SELECT term FROM postings WHERE base = $1 AND signs <> 0 AND char_length(term) BETWEEN $2 AND $3 \
                   AND bit_count((signs # $4)::bit(64)) <= $5 GROUP BY term, signs \
                   ORDER BY bit_count((signs # $4)::bit(64)), term LIMIT $6";
        let rows = session.rows(sql, &[&held.base, &least, &most, &signs, &differing, &MOST_NEAR]).await?;
        let terms = rows.iter().map(|row| rows::get(row, 0)).collect::<Result<Vec<String>, _>>()?;
        let found = self::lists(session, held.base, &terms).await?;
        near.push((misspelt, found.iter().map(|(term, list)| (term.clone(), counted(list))).collect()));
        lists.extend(found);
    }
    asked.mend(&near);
    Ok(())
}

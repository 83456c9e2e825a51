//! Looks for passages in the database: lists of words and neighbours of a direction, weighed here by the rules of the index.
//!
//! All of a search sees the database as it was at one moment. It takes three messages there and back, and a fourth where a
//! word may be misspelt: what the base holds; lists and neighbours; how near those are that only words have found.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use corbie_index::apart::{self, Asked, Candidate, Hit, Misspelt, Near, Sums};
use corbie_index::{Filter, Mode};
use pgvector::HalfVector;
use tokio_postgres::types::ToSql;

use super::models::Model;
use super::session::Session;
use super::{KEYS, Store, chunks, put, rows, sums};
use crate::knowledge::document::BaseName;
use crate::knowledge::store::Error;

/// What is looked for in a base.
#[derive(Debug, Clone, Copy)]
pub(in crate::knowledge) struct Sought<'a> {
    pub(in crate::knowledge) text: &'a str,
    pub(in crate::knowledge) vector: Option<&'a [f32]>,
    pub(in crate::knowledge) filter: Option<&'a Filter>,
    pub(in crate::knowledge) top: usize,
}

/// Up to so many vectors are compared one by one: that finds all there is, and takes some milliseconds.
const EXACT: u64 = 10_000;
/// And so many where they are a small share of those that an index would have to go through.
const EXACT_AMONG_MANY: u64 = 100_000;
/// Where one of so many vectors may be found, the index still finds enough of them.
const SMALL_SHARE: u64 = 20;
/// The most words that a misspelt one is compared with.
const MOST_NEAR: i64 = 500;

impl Store {
    /// The best hits in a base, best first; none where it holds nothing.
    pub(in crate::knowledge) async fn find(
        &self,
        base: &BaseName,
        model: Model,
        sought: Sought<'_>,
    ) -> Result<Option<Vec<Hit>>, Error> {
        let session = self.searching().await?;
        let found = look(&session, base, model, sought).await?;
        session.leave().await?;
        Ok(found)
    }

    /// The vector part of a search alone, and how long that took: for measures. Chunks are told by their writing and place.
    #[doc(hidden)]
    pub async fn nearest_alone(
        &self,
        base: &BaseName,
        (name, dimensions): (&str, usize),
        vector: &[f32],
        filter: Option<&Filter>,
        top: usize,
    ) -> Result<(Vec<(i64, i32)>, Duration), Error> {
        let model = self.prepare_model(name, dimensions).await?;
        let session = self.searching().await?;
        let Some(held) = Held::of(&session, base, filter).await? else { return Ok(Default::default()) };
        let direction = HalfVector::from_f32_slice(vector);
        let began = Instant::now();
        let sought = Sought { text: "", vector: Some(vector), filter, top };
        let near = near(&session, &held, model, Some(&direction), sought).await?;
        let took = began.elapsed();
        session.leave().await?;
        Ok((near.iter().map(|near| chunks::parts(near.key)).collect(), took))
    }
}

/// What a base holds, and what of it may be found.
struct Held {
    base: i64,
    sums: Sums,
    vectors: u64,
    dead: HashSet<i64>,
    /// Writings that pass the filter, if there is one.
    allowed: Option<HashSet<i64>>,
    /// Chunks that may be found.
    searched: u64,
}

async fn look(session: &Session, base: &BaseName, model: Model, sought: Sought<'_>) -> Result<Option<Vec<Hit>>, Error> {
    let Some(held) = Held::of(session, base, sought.filter).await? else { return Ok(None) };
    if held.searched == 0 || sought.top == 0 {
        return Ok(Some(Vec::new()));
    }
    let mut asked = Asked::new(sought.text, Mode::Hybrid, &held.sums);
    let vector =
        sought.vector.filter(|vector| vector.len() == model.dimensions && vector.iter().any(|part| *part != 0.0));
    let direction = vector.map(HalfVector::from_f32_slice);
    let forms: Vec<String> = asked.forms().into_iter().map(str::to_owned).collect();
    let (lists, near) =
        tokio::try_join!(lists(session, held.base, &forms), near(session, &held, model, direction.as_ref(), sought))?;
    let mut lists = lists;
    mend(session, &held, &mut asked, &mut lists).await?;
    let is_live = |key: u64| !held.dead.contains(&((key >> KEYS) as i64));
    let is_allowed = |key: u64| held.allowed.as_ref().is_none_or(|allowed| allowed.contains(&((key >> KEYS) as i64)));
    let weighed = asked.weigh(&lists, is_live, is_allowed, &held.sums, held.searched, sought.top);
    let weighed = weighed.map_err(|_| Error::unreadable("list of words"))?;
    let candidates = weighed.candidates(&near);
    let similarities = similarities(session, model, direction.as_ref(), &candidates).await?;
    Ok(Some(weighed.hits(candidates, &similarities)))
}

impl Held {
    async fn of(session: &Session, base: &BaseName, filter: Option<&Filter>) -> Result<Option<Held>, Error> {
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

/// The lists of some words.
async fn lists(session: &Session, base: i64, forms: &[String]) -> Result<HashMap<String, Vec<Vec<u8>>>, Error> {
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
async fn mend(
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

/// The chunks whose direction is nearest, nearest first.
async fn near(
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
    let share = held.searched.max(1);
    let candidates = share * windows as u64;
    let is_exact = candidates <= EXACT
        || (candidates <= EXACT_AMONG_MANY && held.allowed.is_some() && candidates * SMALL_SHARE < held.vectors);
    let allowed: Option<Vec<i64>> = held.allowed.as_ref().map(|allowed| allowed.iter().copied().collect());
    let mut limit = depth * windows + depth / 4;
    loop {
        let mut found = nearest(session, held, model, direction, allowed.as_deref(), is_exact, limit).await?;
        // An index that gave up early has not found what there is; then every one is looked at.
        let wanted = limit.min(usize::try_from(candidates).unwrap_or(usize::MAX) / windows.max(1));
        if !is_exact && found.len() < wanted.min(limit) {
            found = nearest(session, held, model, direction, allowed.as_deref(), true, limit).await?;
        }
        let is_all = found.len() < limit;
        let best = best_windows(found);
        if best.len() >= depth || is_all {
            return Ok(best.into_iter().take(depth).collect());
        }
        limit *= 2;
    }
}

#[allow(clippy::too_many_arguments, reason = "each narrows what is looked for")]
async fn nearest(
    session: &Session,
    held: &Held,
    model: Model,
    direction: &HalfVector,
    allowed: Option<&[i64]>,
    is_exact: bool,
    limit: usize,
) -> Result<Vec<Near>, Error> {
    let Model { key, dimensions } = model;
    let narrowed = if allowed.is_some() { " AND writing = ANY($4)" } else { "" };
    // The planner takes the index for an order by this expression, and not for one that is a little more than it.
    let order = if is_exact { "(direction <=> $2) + 0" } else { "direction::halfvec(DIMENSIONS) <=> $2" };
    let order = order.replace("DIMENSIONS", &dimensions.to_string());
    // The model stands in the text: the index is of those vectors alone, and a parameter would hide that from the planner.
    let sql = format!(
        "SELECT writing, ordinal, (1 - (direction <=> $2))::real FROM vectors WHERE base = $1 AND model = {key}{narrowed} \
         ORDER BY {order} LIMIT $3"
    );
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut given: Vec<&(dyn ToSql + Sync)> = vec![&held.base, direction, &limit];
    if let Some(allowed) = &allowed {
        given.push(allowed);
    }
    let rows = session.rows(&sql, &given).await?;
    let near = rows.iter().map(|row| {
        Ok(Near { key: chunks::key(rows::get(row, 0)?, rows::get(row, 1)?), similarity: rows::get(row, 2)? })
    });
    near.collect()
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
async fn similarities(
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

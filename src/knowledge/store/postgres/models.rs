//! The models that vectors are of.
//!
//! Directions of two models say nothing about each other, and may have other lengths. So each model has a key, and an index
//! of its own over the vectors with that key.

use super::Store;
use super::rows;
use super::session::Session;
use crate::knowledge::document::BaseName;
use crate::knowledge::store::Error;

/// More numbers than these cannot be indexed; such vectors are compared one by one.
const MOST_DIMENSIONS: usize = 4000;
/// Any number that nobody else locks.
const LOCK: i64 = 0x636f_7262_6966;
/// How an index is made: twice as well connected as by default while it is built, so that few neighbours are missed.
const HOW: &str = "m = 16, ef_construction = 128";

/// A model as the tables know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Model {
    pub(super) key: i32,
    pub(super) dimensions: usize,
}

impl Store {
    /// The model in use, with an index for its vectors.
    pub async fn prepare_model(&self, name: &str, dimensions: usize) -> Result<Model, Error> {
        let session = self.writing().await?;
        let model = known(&session, name, dimensions).await?;
        session.commit().await?;
        // Asked first: making one needs more rights than searching, and waits for writers.
        if !(1..=MOST_DIMENSIONS).contains(&dimensions) || has_index(&self.plain().await?, model).await? {
            return Ok(model);
        }
        let session = self.writing().await?;
        let turn = session.row("SELECT pg_try_advisory_xact_lock($1)", &[&LOCK]).await?;
        if !rows::get::<bool>(&turn, 0)? {
            // Somebody makes it at this moment. Until it is there, vectors are compared one by one.
            session.leave().await?;
            return Ok(model);
        }
        let index = index_of(model);
        if !has_index(&session, model).await? {
            let Model { key, .. } = model;
            session.batch("SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0").await?;
            let make = format!(
                "CREATE INDEX {index} ON vectors USING hnsw ((direction::halfvec({dimensions})) halfvec_cosine_ops) \
                 WITH ({HOW}) WHERE model = {key}"
            );
            session.unhurried(&make).await?;
        }
        session.commit().await?;
        Ok(model)
    }

    /// How many documents of a base have vectors of another model.
    pub(in crate::knowledge) async fn foreign(&self, base: &BaseName, model: &str) -> Result<usize, Error> {
        let sql = "SELECT count(*) FROM documents AS d JOIN bases AS b ON b.key = d.base JOIN models AS m ON m.key = d.model \
                   WHERE b.name = $1 AND m.name <> $2";
        let row = self.plain().await?.row(sql, &[&base.as_str(), &rows::text(model)]).await?;
        Ok(rows::number(&row, 0)? as usize)
    }
}

fn index_of(model: Model) -> String {
    format!("vectors_model_{}", model.key)
}

async fn has_index(session: &Session, model: Model) -> Result<bool, Error> {
    let find = "SELECT 1 FROM pg_class WHERE relname = $1 AND relkind = 'I' AND relnamespace = 'corbie'::regnamespace";
    Ok(session.maybe(find, &[&index_of(model)]).await?.is_some())
}

/// A model, which is made known where it is not.
pub(super) async fn known(session: &Session, name: &str, dimensions: usize) -> Result<Model, Error> {
    let (name, length) = (rows::text(name), rows::count(dimensions)?);
    let find = "SELECT key FROM models WHERE name = $1 AND dimensions = $2";
    if let Some(row) = session.maybe(find, &[&name, &length]).await? {
        return Ok(Model { key: rows::get(&row, 0)?, dimensions });
    }
    let make = "INSERT INTO models (name, dimensions) VALUES ($1, $2) ON CONFLICT DO NOTHING";
    session.execute(make, &[&name, &length]).await?;
    let row = session.row(find, &[&name, &length]).await?;
    Ok(Model { key: rows::get(&row, 0)?, dimensions })
}

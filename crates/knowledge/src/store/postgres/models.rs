//! Embedding models of the stored vectors.
//!
//! Vectors of different models are not comparable and may have different lengths. Each model therefore has a key and a
//! separate index over the vectors with that key (see `hnsw`).

use super::Store;
use super::rows;
use super::session::Session;
use crate::document::BaseName;
use crate::store::Error;

/// A model row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelRow {
    pub(super) key: i32,
    pub(super) dimensions: usize,
}

impl Store {
    /// Registers the model in use. If its vectors have no index, one is built, in the background if there are many.
    pub async fn prepare_model(&self, name: &str, dimensions: usize) -> Result<ModelRow, Error> {
        let session = self.begin_write().await?;
        let model = get_or_insert(&session, name, dimensions).await?;
        session.commit().await?;
        self.ensure_index(model).await?;
        Ok(model)
    }

    /// Number of documents of a base with vectors of another model.
    pub(crate) async fn documents_of_other_models(&self, base: &BaseName, model: &str) -> Result<usize, Error> {
        let sql = "SELECT count(*) FROM documents AS d JOIN bases AS b ON b.key = d.base JOIN models AS m ON m.key = d.model \
                   WHERE b.name = $1 AND m.name <> $2";
        let row = self.autocommit().await?.row(sql, &[&base.as_str(), &rows::without_nul(model)]).await?;
        Ok(rows::get_u64(&row, 0)? as usize)
    }
}

/// Returns the model; inserts it if it does not exist.
pub(super) async fn get_or_insert(session: &Session, name: &str, dimensions: usize) -> Result<ModelRow, Error> {
    let (name, length) = (rows::without_nul(name), rows::to_i32(dimensions)?);
    let find = "SELECT key FROM models WHERE name = $1 AND dimensions = $2";
    if let Some(row) = session.opt_row(find, &[&name, &length]).await? {
        return Ok(ModelRow { key: rows::get(&row, 0)?, dimensions });
    }
    let make = "INSERT INTO models (name, dimensions) VALUES ($1, $2) ON CONFLICT DO NOTHING";
    session.execute(make, &[&name, &length]).await?;
    let row = session.row(find, &[&name, &length]).await?;
    Ok(ModelRow { key: rows::get(&row, 0)?, dimensions })
}

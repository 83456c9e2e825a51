//! Uploads that tasks reference: pending ones, and ones that are no longer needed.

use std::collections::HashSet;

use serde_json::Value;

use super::{Store, rows};
use crate::knowledge::store::{Error, Uploads};

/// Requests of unfinished tasks that may refer to an upload.
const WANTED: &str = "SELECT request FROM tasks WHERE state IN ('queued', 'running') AND kind = 'add' \
     AND strpos(request, '\"uploaded\"') > 0";
/// Retained parts of requests that referred to an upload.
const DONE: &str = "SELECT request FROM tasks WHERE state IN ('completed', 'cancelled') AND request <> '{}'";

impl Store {
    /// The uploads that tasks reference, from one snapshot.
    pub async fn uploads(&self) -> Result<Uploads, Error> {
        let session = self.reading().await?;
        let (mut wanted, mut done) = (HashSet::new(), HashSet::new());
        for row in session.rows(WANTED, &[]).await? {
            let request: Value = rows::json(&row, 0)?;
            let add = &request["add"];
            wanted.extend(add["file_path"].as_str().filter(|_| add["origin"] == "uploaded").map(str::to_owned));
        }
        for row in session.rows(DONE, &[]).await? {
            let left: Value = rows::json(&row, 0)?;
            done.extend(left["upload"].as_str().map(str::to_owned));
        }
        session.leave().await?;
        Ok(Uploads { wanted, done })
    }
}

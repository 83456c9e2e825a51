//! Uploads that tasks reference: pending ones, and ones that are no longer needed.

use std::collections::HashSet;

use serde_json::Value;

use super::{Store, rows};
use crate::knowledge::store::{Error, UploadRefs};

/// Requests of unfinished tasks that may refer to an upload.
const PENDING_SQL: &str = "SELECT request FROM tasks WHERE state IN ('queued', 'running') AND kind = 'add' \
     AND strpos(request, '\"uploaded\"') > 0";
/// Retained parts of requests that referred to an upload.
const FINISHED_SQL: &str = "SELECT request FROM tasks WHERE state IN ('completed', 'cancelled') AND request <> '{}'";

impl Store {
    /// The uploads that tasks reference, from one snapshot.
    pub async fn upload_refs(&self) -> Result<UploadRefs, Error> {
        let session = self.begin_read().await?;
        let (mut wanted, mut done) = (HashSet::new(), HashSet::new());
        for row in session.rows(PENDING_SQL, &[]).await? {
            let request: Value = rows::get_json(&row, 0)?;
            let add = &request["add"];
            wanted.extend(add["file_path"].as_str().filter(|_| add["origin"] == "uploaded").map(str::to_owned));
        }
        for row in session.rows(FINISHED_SQL, &[]).await? {
            let left: Value = rows::get_json(&row, 0)?;
            done.extend(left["upload"].as_str().map(str::to_owned));
        }
        session.rollback().await?;
        Ok(UploadRefs { pending: wanted, finished: done })
    }
}

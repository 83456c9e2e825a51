//! Uploads that tasks reference: pending ones, and ones that are no longer needed.

use std::collections::HashSet;
use std::path::Path;

use super::Store;
use crate::knowledge::store::{Error, KeptUpload, Uploads};

/// No-ops: all processes that share the file also share the upload folder.
impl Store {
    pub async fn keep_upload(&self, _: &str, _: &Path) -> Result<(), Error> {
        Ok(())
    }

    pub async fn bring_upload(&self, _: &str, _: &Path) -> Result<bool, Error> {
        Ok(false)
    }

    pub async fn drop_upload(&self, _: &str) -> Result<(), Error> {
        Ok(())
    }

    pub async fn kept_uploads(&self) -> Result<Vec<KeptUpload>, Error> {
        Ok(Vec::new())
    }
}

impl Store {
    /// The uploads that tasks reference.
    pub async fn uploads(&self) -> Result<Uploads, Error> {
        self.read(|transaction| {
            let paths = |sql: &str| -> Result<HashSet<String>, Error> {
                let mut statement = transaction.prepare_cached(sql)?;
                let rows = statement.query_map([], |row| row.get(0))?;
                Ok(rows.collect::<Result<_, _>>()?)
            };
            Ok(Uploads {
                wanted: paths(
                    "SELECT json_extract(request, '$.add.file_path') FROM tasks WHERE state IN ('queued', 'running') \
                     AND kind = 'add' AND json_extract(request, '$.add.origin') = 'uploaded'",
                )?,
                done: paths(
                    "SELECT json_extract(request, '$.upload') FROM tasks WHERE state IN ('completed', 'cancelled') \
                     AND json_extract(request, '$.upload') IS NOT NULL",
                )?,
            })
        })
        .await
    }
}

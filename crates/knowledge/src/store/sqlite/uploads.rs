//! Uploads that tasks reference, pending ones and ones that are no longer needed. Storing uploads is a no-op here.

use std::collections::HashSet;
use std::path::Path;

use super::Store;
use crate::store::{Error, StoredUpload, UploadRefs};

/// No-ops: all processes that share the file also share the upload folder.
impl Store {
    pub async fn store_upload(&self, _: &str, _: &Path) -> Result<(), Error> {
        Ok(())
    }

    pub async fn fetch_upload(&self, _: &str, _: &Path) -> Result<bool, Error> {
        Ok(false)
    }

    pub async fn delete_upload(&self, _: &str) -> Result<(), Error> {
        Ok(())
    }

    pub async fn stored_uploads(&self) -> Result<Vec<StoredUpload>, Error> {
        Ok(Vec::new())
    }
}

impl Store {
    /// The uploads that tasks reference.
    pub async fn upload_refs(&self) -> Result<UploadRefs, Error> {
        self.read(|transaction| {
            let paths = |sql: &str| -> Result<HashSet<String>, Error> {
                let mut statement = transaction.prepare_cached(sql)?;
                let rows = statement.query_map([], |row| row.get(0))?;
                Ok(rows.collect::<Result<_, _>>()?)
            };
            Ok(UploadRefs {
                pending: paths(
                    "SELECT json_extract(request, '$.add.file_path') FROM tasks WHERE state IN ('queued', 'running') \
                     AND kind = 'add' AND json_extract(request, '$.add.origin') = 'uploaded'",
                )?,
                finished: paths(
                    "SELECT json_extract(request, '$.upload') FROM tasks WHERE state IN ('completed', 'cancelled') \
                     AND json_extract(request, '$.upload') IS NOT NULL",
                )?,
            })
        })
        .await
    }
}

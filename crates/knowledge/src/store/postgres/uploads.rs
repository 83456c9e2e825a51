//! Uploaded files stored in pieces, so that every instance can read a file that one instance received, and the uploads
//! that tasks reference.

use std::collections::HashSet;
use std::path::Path;

use serde_json::Value;
use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{Store, rows};
use crate::store::{Error, StoredUpload, UploadRefs};

/// Maximum number of bytes per piece.
const MAX_PIECE_BYTES: usize = 1 << 20;
/// Requests of unfinished tasks that may refer to an upload.
const PENDING_SQL: &str = "SELECT request FROM tasks WHERE state IN ('queued', 'running') AND kind = 'add' \
     AND strpos(request, '\"uploaded\"') > 0";
/// Retained parts of requests that referred to an upload.
const FINISHED_SQL: &str = "SELECT request FROM tasks WHERE state IN ('completed', 'cancelled') AND request <> '{}'";

impl Store {
    /// Stores a file under its unique folder name.
    pub async fn store_upload(&self, folder: &str, path: &Path) -> Result<(), Error> {
        let mut file = File::open(path).await.map_err(Error::io(path))?;
        let session = self.begin_write().await?;
        let sql = "INSERT INTO uploads (folder, path, size_bytes) VALUES ($1, $2, 0)";
        session.execute(sql, &[&folder, &rows::without_nul(&path.to_string_lossy())]).await?;
        let (mut place, mut size, mut piece) = (0_i32, 0_i64, Vec::with_capacity(MAX_PIECE_BYTES));
        loop {
            piece.clear();
            let read =
                (&mut file).take(MAX_PIECE_BYTES as u64).read_to_end(&mut piece).await.map_err(Error::io(path))?;
            if read == 0 {
                break;
            }
            let sql = "INSERT INTO upload_pieces (folder, place, piece) VALUES ($1, $2, $3)";
            session.execute(sql, &[&folder, &place, &piece]).await?;
            (place, size) = (place + 1, size + read as i64);
        }
        session.execute("UPDATE uploads SET size_bytes = $2 WHERE folder = $1", &[&folder, &size]).await?;
        session.commit().await
    }

    /// Writes a stored file to a path that does not exist yet. Returns false if there is no such file.
    pub async fn fetch_upload(&self, folder: &str, to: &Path) -> Result<bool, Error> {
        let session = self.begin_read().await?;
        let Some(row) = session.opt_row("SELECT size_bytes FROM uploads WHERE folder = $1", &[&folder]).await? else {
            session.rollback().await?;
            return Ok(false);
        };
        let size = rows::get_u64(&row, 0)?;
        let mut file = File::create_new(to).await.map_err(Error::io(to))?;
        let mut written = 0;
        for place in 0_i32.. {
            let sql = "SELECT piece FROM upload_pieces WHERE folder = $1 AND place = $2";
            let Some(row) = session.opt_row(sql, &[&folder, &place]).await? else { break };
            let piece: &[u8] = rows::get(&row, 0)?;
            file.write_all(piece).await.map_err(Error::io(to))?;
            written += piece.len() as u64;
        }
        session.rollback().await?;
        file.sync_all().await.map_err(Error::io(to))?;
        match written == size {
            true => Ok(true),
            false => Err(Error::unreadable("upload")),
        }
    }

    /// Deletes a file. It may already be deleted.
    pub async fn delete_upload(&self, folder: &str) -> Result<(), Error> {
        self.query_with_retry("DELETE FROM uploads WHERE folder = $1", &[&folder]).await.map(drop)
    }

    /// All stored files.
    pub async fn stored_uploads(&self) -> Result<Vec<StoredUpload>, Error> {
        let sql = "SELECT folder, size_bytes, extract(epoch FROM now() - created)::bigint FROM uploads";
        let kept = self.query_with_retry(sql, &[]).await?;
        let kept = kept.iter().map(|row| {
            let seconds = rows::get::<i64>(row, 2)?.max(0).cast_unsigned();
            let age = std::time::Duration::from_secs(seconds);
            Ok(StoredUpload { folder: rows::get(row, 0)?, size: rows::get_u64(row, 1)?, age })
        });
        kept.collect()
    }

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

//! Uploads to a store that several instances share.
//!
//! The receiving instance writes a file to its local folder and then to the database before it responds. The call that
//! adds the file may reach another instance, or another instance may adopt the task. Each instance fetches the file
//! when it needs it. The folder name is random, so it is unique and cannot be guessed.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{folder_of, safe_name};
use crate::store::{Store, UploadRefs};
use crate::{Error, UPLOAD_DIR, run_blocking};
use corbie_util::fs::dir_permissions::create_private_subdir;

/// Local path of an upload. Fetches the file from the store if necessary. Other paths are returned unchanged.
pub async fn ensure_local(store: &Store, storage: &Path, path: PathBuf) -> Result<PathBuf, Error> {
    let Some((folder, name)) = split_path(&path).filter(|_| matches!(store, Store::Shared(_))) else { return Ok(path) };
    let own = storage.join(UPLOAD_DIR).join(&folder);
    let file = own.join(&name);
    // The file may exist at the given path if another instance on this machine received it. That copy is not used
    // because its owner may delete it at any time.
    if exists(&file).await {
        return Ok(file);
    }
    let (uploads, made) = (storage.join(UPLOAD_DIR), own.clone());
    let coming = own.join(format!("{}.part", uuid::Uuid::new_v4()));
    let made = run_blocking(move || create_private_subdir(&uploads).and_then(|()| create_private_subdir(&made)));
    made.await?.map_err(super::quota::folder_error)?;
    let brought = store.fetch_upload(&folder, &coming).await;
    if !matches!(brought, Ok(true)) {
        let _ = tokio::fs::remove_file(&coming).await;
        let _ = tokio::fs::remove_dir(&own).await;
        return Ok(brought.map(|_| path)?);
    }
    tokio::fs::rename(&coming, &file).await.map_err(|error| super::quota::write_error(&error))?;
    Ok(file)
}

/// Deletes an upload from the store, unless a pending task references it.
pub async fn remove_unreferenced(store: &Store, path: &Path, named: &UploadRefs) -> Result<(), Error> {
    let Some((folder, _)) = split_path(path) else { return Ok(()) };
    let is_wanted =
        named.pending.iter().any(|wanted| split_path(Path::new(wanted)).is_some_and(|(of, _)| of == folder));
    match is_wanted {
        true => Ok(()),
        false => Ok(store.delete_upload(&folder).await?),
    }
}

/// Deletes uploads that no task will read, like [`sweep`](super::sweep) for the local folder.
pub async fn sweep(store: &Store, keep: Duration, named: &UploadRefs) -> Result<(), Error> {
    let (wanted, done) = (folders(&named.pending), folders(&named.finished));
    for kept in store.stored_uploads().await? {
        if !wanted.contains(&kept.folder) && (kept.age > keep || done.contains(&kept.folder)) {
            store.delete_upload(&kept.folder).await?;
        }
    }
    Ok(())
}

fn folders(paths: &HashSet<String>) -> HashSet<String> {
    paths.iter().filter_map(|path| split_path(Path::new(path))).map(|(folder, _)| folder).collect()
}

/// Folder and file name of an upload, if the path has the form of one.
pub(super) fn split_path(path: &Path) -> Option<(String, String)> {
    let folder = folder_of(path)?.to_str()?;
    let is_ours = folder.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
    let name = path.file_name()?.to_str()?;
    (is_ours && safe_name(name).as_deref() == Ok(name)).then(|| (folder.to_owned(), name.to_owned()))
}

async fn exists(path: &Path) -> bool {
    tokio::fs::try_exists(path).await.unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_looks_like_an_upload_is_taken_for_one() {
        let of = |path: &str| split_path(Path::new(path));
        assert_eq!(of("/x/uploads/upload-1a-b2/a b.pdf"), Some(("upload-1a-b2".into(), "a b.pdf".into())));
        for other in
            ["/x/uploads/other/a.pdf", "a.pdf", "/", "/upload-1/..", "/upload-..%2f/a.pdf", "/upload-1\n/a.pdf"]
        {
            assert_eq!(of(other), None, "{other}");
        }
    }
}

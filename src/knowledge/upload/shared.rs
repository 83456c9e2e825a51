//! Uploads of a knowledge base that several instances share.
//!
//! A file is written to the folder of the instance that took it, and then to the database, before its caller hears of it.
//! The call that adds it may come to another instance, and its task may be taken over by one; each brings itself the file
//! when it needs it. The name of its folder is by chance, so that nobody has the same, nor guesses it.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{folder_of, safe_name};
use crate::knowledge::store::{Store, Uploads};
use crate::knowledge::{Error, UPLOADS, blocking};
use crate::private_folder::private_folder;

/// Where an upload lies on this machine, to which it is brought if need be. Any other path stays what it is.
pub async fn here(store: &Store, storage: &Path, path: PathBuf) -> Result<PathBuf, Error> {
    let Some((folder, name)) = parts(&path).filter(|_| matches!(store, Store::Shared(_))) else { return Ok(path) };
    let own = storage.join(UPLOADS).join(&folder);
    let file = own.join(&name);
    // An instance beside this one may have it at the path that was told; that is its own, and goes when it likes.
    if is_there(&file).await {
        return Ok(file);
    }
    let (made, coming) = (own.clone(), own.join(format!("{}.part", uuid::Uuid::new_v4())));
    blocking(move || private_folder(&made)).await?.map_err(|error| super::room::unwritten(&error))?;
    let brought = store.bring_upload(&folder, &coming).await;
    if !matches!(brought, Ok(true)) {
        let _ = tokio::fs::remove_file(&coming).await;
        let _ = tokio::fs::remove_dir(&own).await;
        return Ok(brought.map(|_| path)?);
    }
    tokio::fs::rename(&coming, &file).await.map_err(|error| super::room::unwritten(&error))?;
    Ok(file)
}

/// Forgets an upload in the store, unless a task waits for it.
pub async fn forget(store: &Store, path: &Path, named: &Uploads) -> Result<(), Error> {
    let Some((folder, _)) = parts(path) else { return Ok(()) };
    let is_wanted = named.wanted.iter().any(|wanted| parts(Path::new(wanted)).is_some_and(|(of, _)| of == folder));
    match is_wanted {
        true => Ok(()),
        false => Ok(store.drop_upload(&folder).await?),
    }
}

/// Forgets what nobody will read, as [`sweep`](super::sweep) does in the folder.
pub async fn sweep(store: &Store, keep: Duration, named: &Uploads) -> Result<(), Error> {
    let (wanted, done) = (folders(&named.wanted), folders(&named.done));
    for kept in store.kept_uploads().await? {
        if !wanted.contains(&kept.folder) && (kept.age > keep || done.contains(&kept.folder)) {
            store.drop_upload(&kept.folder).await?;
        }
    }
    Ok(())
}

fn folders(paths: &HashSet<String>) -> HashSet<String> {
    paths.iter().filter_map(|path| parts(Path::new(path))).map(|(folder, _)| folder).collect()
}

/// The folder of an upload and its name, if a path looks like one.
pub(super) fn parts(path: &Path) -> Option<(String, String)> {
    let folder = folder_of(path)?.to_str()?;
    let is_ours = folder.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
    let name = path.file_name()?.to_str()?;
    (is_ours && safe_name(name).as_deref() == Ok(name)).then(|| (folder.to_owned(), name.to_owned()))
}

async fn is_there(path: &Path) -> bool {
    tokio::fs::try_exists(path).await.unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_looks_like_an_upload_is_taken_for_one() {
        let of = |path: &str| parts(Path::new(path));
        assert_eq!(of("/x/uploads/upload-1a-b2/a b.pdf"), Some(("upload-1a-b2".into(), "a b.pdf".into())));
        for other in
            ["/x/uploads/other/a.pdf", "a.pdf", "/", "/upload-1/..", "/upload-..%2f/a.pdf", "/upload-1\n/a.pdf"]
        {
            assert_eq!(of(other), None, "{other}");
        }
    }
}

//! `POST /files`: upload of a file by a caller that shares no file system with this machine (K-41).
//!
//! The body is streamed to a private folder, up to the size limit for files. The response contains a path for
//! `knowledge-add`. The file is deleted when its document is stored, when it turns out to be unreadable, and when the
//! task is cancelled, unless another task references it. After other failures it is retained so that it can be added
//! again. An upload that is never added expires.

mod quota;
pub mod shared_store;

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fs::DirEntry;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Extension, Router as Routes};
use corbie_mcp::{Caller, TrustLevel};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tokio::fs::File;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::time::Instant;

use super::path_policy::format_of;
use super::store::UploadRefs;
use super::{Error, Knowledge, UPLOAD_DIR, run_blocking};
use corbie_util::fs::dir_permissions;
use corbie_util::sanitize::without_folders;
use quota::{Quota, QuotaTracker};

/// Callers without permission for this tool may not upload.
const REQUIRED_TOOL: &str = "knowledge-add";
/// Idle timeout between two frames of a body.
const FRAME_TIMEOUT: Duration = Duration::from_secs(30);
/// Minimum average throughput of a body in bytes per second. Slower uploads are aborted because they reserve quota.
const MIN_BYTES_PER_SECOND: u64 = 32 << 10;
/// Prefix of the folder names of uploads. The owner and a random part follow.
const DIR_PREFIX: &str = "upload-";
/// Maximum length of a file name.
const MAX_FILENAME_BYTES: usize = 200;

/// The route, for mounting behind the server's middleware.
pub fn routes(knowledge: Knowledge) -> Routes {
    Routes::new().route("/files", post(receive)).with_state((knowledge, QuotaTracker::default()))
}

async fn receive(
    State((knowledge, room)): State<(Knowledge, QuotaTracker)>,
    Extension(caller): Extension<Caller>,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> Response {
    if !caller.may_use(REQUIRED_TOOL) {
        let message = "The caller's token does not permit adding documents".into();
        return error_response(StatusCode::FORBIDDEN, &Error::Storage { code: "permission_denied", message });
    }
    if caller.trust < TrustLevel::Verified {
        let error = Error::Storage { code: "not_trusted", message: "Uploads require trust level `verified`".into() };
        return error_response(StatusCode::FORBIDDEN, &error);
    }
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if kind.starts_with("multipart/") {
        let message = "multipart forms are not supported; send the raw file: curl --data-binary @report.pdf \
             '…/files?filename=report.pdf'";
        return error_response(StatusCode::UNSUPPORTED_MEDIA_TYPE, &Error::invalid("Content-Type", message));
    }
    let length = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    let name = query_filename(&uri).or_else(|| disposition_filename(&headers)).unwrap_or_default();
    match store_upload(&knowledge, &room, &caller, &name, length, body).await {
        Ok((path, size)) => {
            let reply = json!({ "success": true, "file_path": path, "filename": name, "size_bytes": size });
            json_response(StatusCode::CREATED, &reply)
        }
        Err(error) => error_response(http_status(&error), &error),
    }
}

async fn store_upload(
    knowledge: &Knowledge,
    room: &QuotaTracker,
    caller: &Caller,
    name: &str,
    length: Option<u64>,
    body: Body,
) -> Result<(PathBuf, u64), Error> {
    let name = safe_name(name)?;
    format_of(Path::new(&name))?;
    let settings = knowledge.settings();
    let most = settings.max_file_bytes();
    if let Some(found) = length.filter(|length| *length > most) {
        return Err(Error::FileTooLarge { found, most_mb: most >> 20 });
    }
    let open = knowledge.open().await?;
    let (uploads, all) = (open.storage.join(UPLOAD_DIR), settings.max_uploads_mb << 20);
    let quota = Quota { total: all, per_caller: all.min(settings.max_uploads_mb_per_caller << 20) };
    let kept = open.store.stored_uploads().await?;
    // Without a Content-Length, the maximum file size is reserved.
    let (room, bytes) = (room.clone(), length.unwrap_or(most.min(quota.per_caller)));
    let identity = caller.identity.clone();
    let place = run_blocking(move || room.reserve(&uploads, &kept, &identity, bytes, quota)).await??;
    let path = place.dir.path().join(&name);
    let mut file = File::create_new(&path).await.map_err(|error| quota::write_error(&error))?;
    let size = copy_body(&mut file, body, bytes).await?;
    if size == 0 {
        return Err(Error::EmptyFile(name));
    }
    file.sync_all().await.map_err(|error| quota::write_error(&error))?;
    if let Some((folder, _)) = shared_store::split_path(&path) {
        open.store.store_upload(&folder, &path).await?;
    }
    // From here on it is retained until its task has ended or it expires.
    Ok((place.persist().join(name), size))
}

async fn copy_body(file: &mut (impl AsyncWrite + Unpin), mut body: Body, most: u64) -> Result<u64, Error> {
    let began = Instant::now();
    let mut size = 0;
    loop {
        let slowest = began + FRAME_TIMEOUT + Duration::from_secs(size / MIN_BYTES_PER_SECOND);
        let frame = tokio::time::timeout_at(slowest.min(Instant::now() + FRAME_TIMEOUT), body.frame()).await;
        let frame = frame.map_err(|_| Error::invalid("body", "upload timed out"))?;
        let Some(frame) = frame else { break };
        let frame = frame.map_err(|_| Error::invalid("body", "upload is incomplete"))?;
        let Ok(bytes) = frame.into_data() else { continue };
        size += bytes.len() as u64;
        if size > most {
            return Err(Error::FileTooLarge { found: size, most_mb: most >> 20 });
        }
        file.write_all(&bytes).await.map_err(|error| quota::write_error(&error))?;
    }
    file.flush().await.map_err(|error| quota::write_error(&error))?;
    Ok(size)
}

/// Deletes uploads that no task will read: expired ones that were never added, those of finished tasks, and empty
/// folders. An upload that a pending task references is retained regardless of its age. Other folders are left alone,
/// and so is the target of a link in the place of the upload folder.
pub fn sweep(storage: &Path, keep: Duration, named: &UploadRefs) {
    let uploads = storage.join(UPLOAD_DIR);
    if let Err(error) = dir_permissions::refuse_link(&uploads) {
        return tracing::warn!(%error, "cannot delete expired uploads");
    }
    let Ok(entries) = std::fs::read_dir(uploads) else { return };
    let folders = |paths: &HashSet<String>| -> HashSet<OsString> {
        paths.iter().filter_map(|path| Some(folder_of(Path::new(path))?.to_owned())).collect()
    };
    let (wanted, done) = (folders(&named.pending), folders(&named.finished));
    let is_upload =
        |entry: &DirEntry| is_upload_dir(&entry.file_name()) && entry.file_type().is_ok_and(|kind| kind.is_dir());
    let unreferenced = |entry: &DirEntry| is_upload(entry) && !wanted.contains(&entry.file_name());
    for entry in entries.flatten().filter(unreferenced) {
        let folder = entry.path();
        let modified = folder.metadata().and_then(|metadata| metadata.modified());
        let age = modified.ok().and_then(|modified| SystemTime::now().duration_since(modified).ok());
        let is_old = age.is_some_and(|age| age > keep);
        // The folder of an upload in progress is empty only briefly.
        let is_left = age.is_some_and(|age| age > Duration::from_secs(60))
            && std::fs::read_dir(&folder).is_ok_and(|mut files| files.next().is_none());
        if is_old || is_left || done.contains(&entry.file_name()) {
            let _ = std::fs::remove_dir_all(&folder);
        }
    }
}

/// Deletes an upload with its folder, unless a pending task references it. A path outside the upload folder has no
/// effect.
pub fn discard(storage: &Path, path: &Path, named: &UploadRefs) {
    let Some(folder) = folder_of(path) else { return };
    let is_wanted = named.pending.iter().any(|wanted| folder_of(Path::new(wanted)) == Some(folder));
    let uploads = storage.join(UPLOAD_DIR);
    if !is_wanted && dir_permissions::refuse_link(&uploads).is_ok() {
        // It may already be deleted.
        let _ = std::fs::remove_dir_all(uploads.join(folder));
    }
}

/// Name of the folder that contains only this upload.
fn folder_of(path: &Path) -> Option<&OsStr> {
    path.parent()?.file_name().filter(|folder| is_upload_dir(folder))
}

/// Whether a folder name is one that corbie gives to uploads.
fn is_upload_dir(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(DIR_PREFIX.as_bytes())
}

/// The file name without directory components and control characters.
fn safe_name(name: &str) -> Result<String, Error> {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default().trim();
    let clean: String = last.chars().filter(|letter| !letter.is_control()).collect();
    let is_named = !clean.is_empty() && clean != "." && clean != "..";
    if !is_named {
        let message = "file name is missing; use POST /files?filename=report.pdf, or a Content-Disposition header";
        return Err(Error::invalid("filename", message));
    }
    if clean.len() > MAX_FILENAME_BYTES {
        return Err(Error::invalid("filename", format!("file name is longer than {MAX_FILENAME_BYTES} bytes")));
    }
    Ok(clean)
}

/// `?filename=report.pdf`.
fn query_filename(uri: &Uri) -> Option<String> {
    let mut members = url::form_urlencoded::parse(uri.query()?.as_bytes());
    members.find(|(name, _)| name == "filename").map(|(_, value)| value.into_owned())
}

/// `attachment; filename="report.pdf"`.
fn disposition_filename(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(header::CONTENT_DISPOSITION)?.to_str().ok()?;
    let parts = value.split(';').map(str::trim);
    let name = parts.filter_map(|part| part.strip_prefix("filename=")).next()?;
    Some(name.trim_matches('"').to_owned())
}

fn http_status(error: &Error) -> StatusCode {
    match error.code() {
        "file_too_large" => StatusCode::PAYLOAD_TOO_LARGE,
        "unsupported_format" => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "storage_full" => StatusCode::INSUFFICIENT_STORAGE,
        "too_many_uploads" => StatusCode::TOO_MANY_REQUESTS,
        "invalid_parameter" | "empty_file" => StatusCode::BAD_REQUEST,
        _ => StatusCode::SERVICE_UNAVAILABLE,
    }
}

fn error_response(status: StatusCode, error: &Error) -> Response {
    let mut members = error.to_json_members();
    // The caller may be untrusted, so the message must not contain paths of this machine.
    members.insert("message".into(), without_folders(&error.to_string()).into());
    json_response(status, &Value::Object(members))
}

fn json_response(status: StatusCode, body: &Value) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_task_waits_for_stays_and_what_tasks_are_done_with_goes() {
        let storage = tempfile::tempdir().unwrap();
        let upload = |name: &str| {
            let folder = storage.path().join(UPLOAD_DIR).join(name);
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join("a.txt"), "a").unwrap();
            folder.join("a.txt")
        };
        let path = |path: &Path| path.to_str().unwrap().to_owned();
        let (wanted, done, both, fresh) =
            (upload("upload-wanted"), upload("upload-done"), upload("upload-both"), upload("upload-fresh"));
        let named = UploadRefs {
            pending: [path(&wanted), path(&both)].into(),
            finished: [path(&done), path(&both), "/elsewhere/upload-gone/a.txt".into()].into(),
        };
        sweep(storage.path(), Duration::from_secs(3600), &named);
        assert_eq!([&wanted, &done, &both, &fresh].map(|path| path.exists()), [true, false, true, true]);
        // With a retention of zero, everything has expired.
        sweep(storage.path(), Duration::ZERO, &named);
        assert_eq!([&wanted, &both, &fresh].map(|path| path.exists()), [true, true, false]);
    }

    /// Root uses the storage of another user, who links the upload folder to one that only root can delete from.
    #[cfg(unix)]
    #[test]
    fn s14_a_link_in_the_place_of_the_upload_folder_deletes_nothing_in_its_target() {
        let (storage, foreign) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let file = |folder: &str| foreign.path().join(folder).join("a.txt");
        for folder in ["documents", "upload-old", "upload-empty"] {
            std::fs::create_dir(foreign.path().join(folder)).unwrap();
            std::fs::write(file(folder), "a").unwrap();
        }
        std::os::unix::fs::symlink(foreign.path(), storage.path().join(UPLOAD_DIR)).unwrap();
        let finished = [storage.path().join(UPLOAD_DIR).join("upload-old/a.txt").to_str().unwrap().to_owned()];
        sweep(storage.path(), Duration::ZERO, &UploadRefs { finished: finished.into(), ..UploadRefs::default() });
        discard(storage.path(), Path::new("/uploads/upload-old/a.txt"), &UploadRefs::default());
        assert!(["documents", "upload-old", "upload-empty"].map(file).iter().all(|file| file.exists()));
    }

    /// The root folder of a disk that is mounted there has folders such as `lost+found`.
    #[test]
    fn s14_folders_that_are_no_uploads_are_not_swept() {
        let storage = tempfile::tempdir().unwrap();
        let uploads = storage.path().join(UPLOAD_DIR);
        for folder in ["documents", "lost+found", "upload-old"] {
            std::fs::create_dir_all(uploads.join(folder)).unwrap();
            std::fs::write(uploads.join(folder).join("a.txt"), "a").unwrap();
        }
        sweep(storage.path(), Duration::ZERO, &UploadRefs::default());
        let stays = ["documents", "lost+found", "upload-old"].map(|folder| uploads.join(folder).exists());
        assert_eq!(stays, [true, true, false]);
    }

    #[test]
    fn only_uploads_are_discarded() {
        let storage = tempfile::tempdir().unwrap();
        let other = storage.path().join("index/a.txt");
        std::fs::create_dir_all(other.parent().unwrap()).unwrap();
        std::fs::write(&other, "a").unwrap();
        for path in [other.as_path(), Path::new("/"), Path::new("a.txt"), Path::new("/uploads/../a.txt")] {
            discard(storage.path(), path, &UploadRefs::default());
        }
        assert!(other.exists());
    }

    #[test]
    fn an_upload_that_a_task_waits_for_is_not_discarded() {
        let storage = tempfile::tempdir().unwrap();
        let path = storage.path().join(UPLOAD_DIR).join("upload-twice").join("a.txt");
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, "a").unwrap();
        let named = UploadRefs { pending: [path.to_str().unwrap().to_owned()].into(), ..UploadRefs::default() };
        discard(storage.path(), &path, &named);
        assert!(path.exists());
        discard(storage.path(), &path, &UploadRefs::default());
        assert!(!path.exists());
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_trickles_is_given_up() {
        /// A body of this many frames, with a delay before each.
        fn body(pieces: usize, bytes: usize, every: Duration) -> Body {
            let piece = move |number: usize| async move {
                if number == pieces {
                    return None;
                }
                tokio::time::sleep(every).await;
                Some((Ok::<_, std::io::Error>(vec![b'a'; bytes]), number + 1))
            };
            Body::from_stream(futures_util::stream::unfold(0, piece))
        }
        let mut file = Vec::new();
        let slow = copy_body(&mut file, body(1000, 1, FRAME_TIMEOUT / 3), u64::MAX).await;
        assert_eq!(slow.unwrap_err().code(), "invalid_parameter");
        assert!(file.len() < 4, "{}", file.len());
        // A slow body is accepted if its throughput is sufficient.
        let fair = copy_body(&mut Vec::new(), body(20, 1 << 20, FRAME_TIMEOUT / 2), u64::MAX).await;
        assert_eq!(fair.unwrap(), 20 << 20);
    }

    #[test]
    fn k41_a_name_leads_to_no_other_folder() {
        assert_eq!(safe_name("../../etc/report.pdf").as_deref(), Ok("report.pdf"));
        assert_eq!(safe_name("C:\\temp\\a b.docx").as_deref(), Ok("a b.docx"));
        assert_eq!(safe_name("a\0\n.txt").as_deref(), Ok("a.txt"));
        for name in ["", "..", "a/", "/", "x/.."] {
            assert!(safe_name(name).is_err(), "{name}");
        }
    }
}

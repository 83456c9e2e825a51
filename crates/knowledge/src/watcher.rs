//! Watcher: mirrors added, changed and deleted files of watched folders in the knowledge base.
//!
//! Folders are scanned every few seconds. Polling works on every file system and also finds changes made while corbie
//! was not running. A file is picked up once it is unchanged between two scans, so files that are still being written
//! are skipped. The state of a file is stored when it is picked up. The file is picked up again only when its state
//! differs, so a document that a user removed is not added again. A document is removed only if the deletion of its
//! file is certain.

mod deleted_files;
mod device_ids;
mod scan;
mod state;

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use tokio::time::Instant;

use super::document::{BaseName, Origin};
use super::ingest::{IngestRequest, document_of};
use super::jobs::JobRequest;
use super::store::{IngestState, RowUpdate, WatchedFile};
use super::task::{TaskId, TaskState};
use super::{CallerOrigin, Error, Knowledge, OpenState, run_blocking};
use scan::{FolderScan, ScannedFile, SkippedFolder};
use state::{FolderState, WatchState};

/// Owner of the watcher's tasks.
const TASK_OWNER: &str = "watch";
/// Maximum number of files of one base in progress. The rest wait for the next scan.
const MAX_TASKS_PER_BASE: usize = 64;
/// Maximum number of rows changed in one transaction, so that other writers are not blocked for long.
const UPDATE_BATCH_SIZE: usize = 1000;

/// Error codes of tasks that failed because of the file's content and would fail again. All of them satisfy
/// [`Error::is_document_fault`]. Any other failure may be transient: it depends on settings, on a restart or on free
/// disk space.
const PERMANENT_ERRORS: [&str; 9] = [
    "corrupted_file",
    "empty_file",
    "limit_exceeded",
    "memory_limit",
    "no_text_extracted",
    "password_protected",
    "cpu_limit",
    "time_limit",
    "unsupported_format",
];

type ScannedFiles = HashMap<String, ScannedFile>;

impl Knowledge {
    /// Watches the configured folders until the process ends.
    pub async fn watch_folders(self) {
        let settings = self.settings().clone();
        let mut all = WatchState::group_by_base(settings.watch);
        if all.is_empty() {
            return;
        }
        loop {
            match self.open().await {
                Ok(open) => {
                    for followed in &mut all {
                        if let Err(error) = self.sync_base(open, followed).await {
                            tracing::warn!(base = %followed.base, %error, "cannot scan watched folders");
                        }
                    }
                }
                Err(error) => tracing::warn!(%error, "cannot scan watched folders: knowledge base is unavailable"),
            }
            tokio::select! {
                () = tokio::time::sleep(settings.watch_interval.get()) => {}
                () = self.stopped() => return,
            }
        }
    }

    async fn sync_base(&self, open: &OpenState, followed: &mut WatchState) -> Result<(), Error> {
        // If any step below fails, the next scan reads the rows from the store again.
        if !std::mem::replace(&mut followed.is_current, false) {
            let rows = open.store.watched_files(&followed.base).await?;
            followed.rows = rows.into_iter().map(|row| (row.path.clone(), row)).collect();
        }
        let files = self.scan_folders(open, followed).await?;
        self.collect_finished_tasks(open, followed).await?;
        track_untracked_documents(open, followed, &files).await?;
        let changes = followed.changes(&files);
        apply_updates(open, followed, changes).await?;
        self.submit_due_files(open, followed, &files).await?;
        self.remove_deleted_files(open, followed, &files).await?;
        followed.finish_scan(&files, Instant::now());
        Ok(())
    }

    /// Scans all folders of a base.
    async fn scan_folders(&self, open: &OpenState, followed: &mut WatchState) -> Result<ScannedFiles, Error> {
        let mut files = HashMap::new();
        let rows = &followed.rows;
        for folder in &mut followed.folders {
            let (watch, rules, stop) =
                (folder.watch.clone(), self.path_policy(CallerOrigin::Local), self.0.stop.clone());
            let known = folder.is_resolved.then(|| folder.root.clone());
            match run_blocking(move || scan::scan(&watch, known.as_deref(), &rules, &stop)).await? {
                Ok(listing) => {
                    folder.is_moved = false;
                    verify_folder_identity(open, folder, &listing).await?;
                    let knows_more = || rows.keys().any(|path| folder.covers(Path::new(path)));
                    if folder.is_authoritative {
                        folder.is_warned = false;
                    } else if !folder.is_warned && knows_more() {
                        folder.is_warned = true;
                        tracing::warn!(folder = %folder.watch.path.display(), "watched folder is empty and not the \
                            folder that was scanned before (unmounted disk?); keeping its documents");
                    }
                    if listing.leaving != folder.leaving {
                        folder.leaving = listing.leaving;
                        tracing::warn!(folder = %folder.watch.path.display(), links = folder.leaving, "skipping \
                            symbolic links that lead out of a watched folder; to include their targets, add them to \
                            `knowledge.watch`");
                    }
                    files.extend(listing.files);
                }
                // A symlink that replaced the folder may lead to unrelated files.
                Err(SkippedFolder::Link) => {
                    folder.is_authoritative = false;
                    if !std::mem::replace(&mut folder.is_moved, true) {
                        tracing::warn!(folder = %folder.watch.path.display(), "skipping a watched folder that is a \
                            symbolic link and keeping its documents; to watch the target, set its path in \
                            `knowledge.watch`");
                    }
                }
                // The same for a folder above it.
                Err(SkippedFolder::Moved(to)) => {
                    folder.is_authoritative = false;
                    if !std::mem::replace(&mut folder.is_moved, true) {
                        tracing::warn!(folder = %folder.watch.path.display(), resolves_to = ?to, "skipping a watched \
                            folder that resolves to a different path than before and keeping its documents; restart \
                            corbie if the move is intended");
                    }
                }
                // An unmounted disk must not remove all its documents.
                Err(SkippedFolder::Failed(error)) => {
                    folder.is_authoritative = false;
                    if !std::mem::replace(&mut folder.is_warned, true) {
                        tracing::warn!(folder = %folder.watch.path.display(), %error, "cannot read a watched folder; \
                            keeping its documents");
                    }
                }
            }
        }
        Ok(files)
    }

    /// Reads the outcome of tasks that were adding files, in this process or elsewhere.
    async fn collect_finished_tasks(&self, open: &OpenState, followed: &mut WatchState) -> Result<(), Error> {
        let (mut turns, mut attempts) = (Vec::new(), Vec::new());
        for (row, task) in followed.files_in_progress() {
            if open.scheduler.job(task).is_some() {
                continue;
            }
            let standing = match open.store.task(task).await?.map(|task| task.state) {
                Some(TaskState::Queued | TaskState::Running(_)) => continue,
                Some(TaskState::Completed(result)) => {
                    let document = document_of(&result);
                    self.notify_documents_changed(document);
                    IngestState::Done(document)
                }
                Some(TaskState::Failed { code, message }) if PERMANENT_ERRORS.contains(&code.as_str()) => {
                    tracing::warn!(
                        file = row.path,
                        code,
                        message,
                        "cannot add a watched file; retrying when it changes"
                    );
                    IngestState::Done(None)
                }
                ended => {
                    if followed.schedule_retry(&row.path, row.stamp, Instant::now()) {
                        let reason = match ended {
                            Some(TaskState::Failed { message, .. }) => message,
                            _ => "task was cancelled".to_owned(),
                        };
                        tracing::warn!(file = row.path, reason, "watched file was not added; retrying");
                    }
                    attempts.push(task);
                    IngestState::Pending
                }
            };
            turns.push(RowUpdate { after: WatchedFile { state: standing, ..row.clone() }, before: Some(row) });
        }
        if !attempts.is_empty() {
            open.store.hide_failed_tasks(attempts).await?;
        }
        apply_updates(open, followed, turns).await
    }

    /// Submits tasks for the waiting files.
    async fn submit_due_files(
        &self,
        open: &OpenState,
        followed: &mut WatchState,
        files: &ScannedFiles,
    ) -> Result<(), Error> {
        let room = MAX_TASKS_PER_BASE.saturating_sub(followed.files_in_progress().len());
        for path in followed.due(files, Instant::now()).into_iter().take(room) {
            let ScannedFile { path: found, within, stamp: look, .. } = files[&path].clone();
            let rules = self.path_policy(CallerOrigin::Local).within(Some(&within));
            let facts = match self.check(rules, found.clone()).await {
                Ok(facts) => facts,
                // Retried with backoff, because the cause is not the file's content.
                Err(error @ (Error::FileNotReadable { .. } | Error::FileNotFound(_))) => {
                    if followed.schedule_retry(&path, look, Instant::now()) {
                        tracing::warn!(file = path, %error, "cannot read a watched file; retrying");
                    }
                    continue;
                }
                Err(error) => {
                    tracing::warn!(file = path, %error, "cannot add a watched file");
                    followed.suspend_until_changed(&path, look);
                    continue;
                }
            };
            let wish = IngestRequest {
                file_path: found,
                within: Some(within.to_path_buf()),
                metadata: serde_json::Map::new(),
                force_ocr: false,
                origin: Origin::Watched,
            };
            let submitted = open
                .scheduler
                .submit(followed.base.clone(), Arc::from(TASK_OWNER), JobRequest::Add(wish), Some(&facts))
                .await;
            let job = match submitted {
                Ok(job) => job,
                // All remaining files wait for the next scan.
                Err(error) => {
                    if !std::mem::replace(&mut followed.is_queue_full, true) {
                        tracing::warn!(%error, "task queue is full; watched files are added later");
                    }
                    return Ok(());
                }
            };
            followed.is_queue_full = false;
            let Some(before) = followed.rows.get(&path).cloned() else { continue };
            let after = WatchedFile { state: IngestState::InProgress(job.id), ..before.clone() };
            apply_updates(open, followed, vec![RowUpdate { before: Some(before), after }]).await?;
            if followed.rows[&path].state != IngestState::InProgress(job.id) {
                // Another process has picked up the file, or the user has removed it.
                self.cancel_unowned_task(open, &followed.base, &path, job.id).await?;
            }
        }
        Ok(())
    }

    /// Cancels a task that no row references. If it completed first, its document is removed, unless another process
    /// has picked up the file and may reference that document.
    async fn cancel_unowned_task(
        &self,
        open: &OpenState,
        base: &BaseName,
        path: &str,
        task: TaskId,
    ) -> Result<(), Error> {
        if self.cancel(task).await? {
            return Ok(());
        }
        open.store.hide_failed_tasks(vec![task]).await?;
        let Some(task) = open.store.task(task).await? else { return Ok(()) };
        let TaskState::Completed(result) = &task.state else { return Ok(()) };
        let made = document_of(result).filter(|document| task.document == Some(*document));
        let rows = open.store.watched_files(base).await?;
        let is_wanted = rows.iter().any(|row| row.path == path && row.state != IngestState::Done(None));
        match made {
            Some(document) if !is_wanted => self.remove_watched(base, document, path).await,
            _ => Ok(()),
        }
    }

    /// Removes the documents of deleted files.
    async fn remove_deleted_files(
        &self,
        open: &OpenState,
        followed: &mut WatchState,
        files: &ScannedFiles,
    ) -> Result<(), Error> {
        let missing = followed.missing(files, Instant::now());
        if missing.is_empty() {
            return Ok(());
        }
        let is_gone = |row: &WatchedFile| deleted_files::is_deleted(Path::new(&row.path), row.device);
        let gone: Vec<WatchedFile> = run_blocking(move || missing.into_iter().filter(is_gone).collect()).await?;
        let mut forgotten = Vec::new();
        for row in gone {
            let document = open.store.document_by_path(&followed.base, &row.path).await?;
            if let Some(document) = document.filter(|document| document.origin == Origin::Watched) {
                if let Some(copy) = followed.duplicate_of(document.id, files).cloned() {
                    // A copy of the file exists. It takes over the document.
                    let after = WatchedFile { state: IngestState::Pending, ..copy.clone() };
                    apply_updates(open, followed, vec![RowUpdate { before: Some(copy), after }]).await?;
                    continue;
                }
                tracing::info!(file = row.path, "watched file was deleted; removed its document");
                self.remove_watched(&followed.base, document.id, &row.path).await?;
            }
            followed.rows.remove(&row.path);
            forgotten.push(row.path);
        }
        open.store.remove_watched_files(&followed.base, forgotten).await?;
        Ok(())
    }
}

/// Determines whether a folder is the same as before. Only then does a missing entry mean that the file was deleted.
async fn verify_folder_identity(open: &OpenState, folder: &mut FolderState, listing: &FolderScan) -> Result<(), Error> {
    if folder.root != listing.root {
        (folder.root, folder.recorded_id) = (listing.root.clone(), None);
    }
    folder.is_resolved = true;
    let root = folder.root.to_string_lossy();
    if folder.recorded_id.is_none() {
        folder.recorded_id = open.store.watched_folder(&root).await?;
    }
    let is_same = folder.recorded_id == Some(listing.folder_id);
    if !listing.files.is_empty() && !is_same {
        open.store.record_watched_folder(&root, listing.folder_id).await?;
        folder.recorded_id = Some(listing.folder_id);
    }
    folder.is_authoritative = is_same || !listing.files.is_empty();
    Ok(())
}

/// Creates rows for documents without a row, so that these documents are removed when their files are deleted.
async fn track_untracked_documents(
    open: &OpenState,
    followed: &mut WatchState,
    files: &ScannedFiles,
) -> Result<(), Error> {
    // If a later step fails, the next scan reads them from the store again.
    let strays = match followed.untracked.take() {
        Some(strays) => strays,
        None => open.store.untracked_documents(&followed.base).await?,
    };
    let (turns, strays) = followed.track_untracked(strays, files);
    apply_updates(open, followed, turns).await?;
    followed.untracked = Some(strays);
    Ok(())
}

/// Updates rows by compare-and-swap. Rows that were changed concurrently are left unchanged.
async fn apply_updates(open: &OpenState, followed: &mut WatchState, turns: Vec<RowUpdate>) -> Result<(), Error> {
    for some in turns.chunks(UPDATE_BATCH_SIZE) {
        let made = open.store.update_watched_files(&followed.base, some.to_vec()).await?;
        for (RowUpdate { after, .. }, _) in some.iter().zip(made).filter(|(_, made)| *made) {
            followed.rows.insert(after.path.clone(), after.clone());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_in_a_file_keeps_it_from_being_tried_again() {
        for code in PERMANENT_ERRORS {
            let error = Error::Document { code: code.to_owned(), message: String::new() };
            assert!(error.is_document_fault(), "{code}");
        }
        let read = [
            corbie_extract::Error::Empty,
            corbie_extract::Error::PasswordProtected,
            corbie_extract::Error::Corrupted(String::new()),
            corbie_extract::Error::NoText,
        ];
        for error in read.map(Error::from) {
            assert!(PERMANENT_ERRORS.contains(&error.code()), "{error}");
        }
        let passing = [
            Error::FileNotFound(String::new()),
            Error::PathNotAllowed(String::new()),
            Error::FileTooLarge { found: 2, most_mb: 1 },
            Error::TooManyTasks(1),
            Error::Cancelled,
            Error::Storage { code: "document_not_found", message: String::new() },
            Error::Storage { code: "storage_full", message: String::new() },
            Error::Model(String::new()),
            Error::Internal(String::new()),
        ];
        for error in passing {
            assert!(!PERMANENT_ERRORS.contains(&error.code()), "{error}");
        }
        for code in ["worker_crashed", "worker_not_started", "ocr_failed", "interrupted"] {
            assert!(!PERMANENT_ERRORS.contains(&code), "{code}");
        }
    }
}

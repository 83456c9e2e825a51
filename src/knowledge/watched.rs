//! Watcher: mirrors added, changed and deleted files of watched folders in the knowledge base.
//!
//! Folders are scanned every few seconds. Polling works on every file system and also finds changes made while corbie
//! was not running. A file is picked up once it is unchanged between two scans, so files that are still being written
//! are skipped. The state of a file is stored when it is picked up. The file is picked up again only when its state
//! differs, so a document that a user removed is not added again. A document is removed only if the deletion of its
//! file is certain.

mod devices;
mod followed;
mod look;

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;
use tokio::time::Instant;

use super::document::{BaseName, DocumentId, Origin};
use super::ingest::Wish;
use super::store::{Standing, Turn, Watched};
use super::task::{TaskId, TaskState};
use super::work::Request;
use super::{Error, Knowledge, Open, Whence, blocking};
use followed::{Folder, Followed};
use look::{File, Listing, Unlisted};

/// Owner of the watcher's tasks.
const OWNER: &str = "watch";
/// Maximum number of files of one base in progress. The rest wait for the next scan.
const TOGETHER: usize = 64;
/// Maximum number of rows changed in one transaction, so that other writers are not blocked for long.
const AT_ONCE: usize = 1000;

/// Error codes of tasks that failed because of the file's content and would fail again. All of them satisfy
/// [`Error::is_of_the_document`]. Any other failure may be transient: it depends on settings, on a restart or on free
/// disk space.
const OF_THE_FILE: [&str; 9] = [
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

type Files = HashMap<String, File>;

impl Knowledge {
    /// Watches the configured folders until the process ends.
    pub async fn follow_folders(self) {
        let settings = self.settings().clone();
        let mut all = Followed::all(settings.watch);
        if all.is_empty() {
            return;
        }
        loop {
            match self.open().await {
                Ok(open) => {
                    for followed in &mut all {
                        if let Err(error) = self.follow(open, followed).await {
                            tracing::warn!(base = %followed.base, %error, "watched folders cannot be followed");
                        }
                    }
                }
                Err(error) => tracing::warn!(%error, "watched folders wait for the knowledge base"),
            }
            tokio::select! {
                () = tokio::time::sleep(settings.watch_interval.get()) => {}
                () = self.stopping() => return,
            }
        }
    }

    async fn follow(&self, open: &Open, followed: &mut Followed) -> Result<(), Error> {
        // If any step below fails, the next scan reads the rows from the store again.
        if !std::mem::replace(&mut followed.is_current, false) {
            let rows = open.store.watched(&followed.base).await?;
            followed.rows = rows.into_iter().map(|row| (row.path.clone(), row)).collect();
        }
        let files = self.look_into(open, followed).await?;
        self.hear(open, followed).await?;
        place_strays(open, followed, &files).await?;
        let changes = followed.changes(&files);
        turn(open, followed, changes).await?;
        self.take_up(open, followed, &files).await?;
        self.let_go(open, followed, &files).await?;
        followed.looked(&files, Instant::now());
        Ok(())
    }

    /// Scans all folders of a base.
    async fn look_into(&self, open: &Open, followed: &mut Followed) -> Result<Files, Error> {
        let mut files = HashMap::new();
        let rows = &followed.rows;
        for folder in &mut followed.folders {
            let (watch, rules, stop) = (folder.watch.clone(), self.rules(Whence::Here), self.0.stop.clone());
            let known = folder.is_resolved.then(|| folder.root.clone());
            match blocking(move || look::list(&watch, known.as_deref(), &rules, &stop)).await? {
                Ok(listing) => {
                    folder.is_moved = false;
                    recognise(open, folder, &listing).await?;
                    let knows_more = || rows.keys().any(|path| folder.covers(Path::new(path)));
                    if folder.vouches {
                        folder.told = false;
                    } else if !folder.told && knows_more() {
                        folder.told = true;
                        tracing::warn!(folder = %folder.watch.path.display(), "a watched folder is empty, and is not the one that had files; its documents are kept");
                    }
                    if listing.leaving != folder.leaving {
                        folder.leaving = listing.leaving;
                        tracing::warn!(folder = %folder.watch.path.display(), links = folder.leaving, "symbolic links that leave a watched folder are skipped; watch the folders that they lead to, if their files are wanted");
                    }
                    files.extend(listing.files);
                }
                // A symlink that replaced the folder may lead to unrelated files.
                Err(Unlisted::Link) => {
                    folder.vouches = false;
                    if !std::mem::replace(&mut folder.is_moved, true) {
                        tracing::warn!(folder = %folder.watch.path.display(), "a watched folder is a symbolic link and is skipped; its documents are kept; to watch the folder that the link leads to, set its own path in `knowledge.watch`");
                    }
                }
                // The same for a folder above it.
                Err(Unlisted::Moved(to)) => {
                    folder.vouches = false;
                    if !std::mem::replace(&mut folder.is_moved, true) {
                        tracing::warn!(folder = %folder.watch.path.display(), resolves_to = ?to, "a watched folder resolves to another path than before and is skipped; its documents are kept; restart corbie if the move is intended");
                    }
                }
                // An unmounted disk must not remove all its documents.
                Err(Unlisted::Failed(error)) => {
                    folder.vouches = false;
                    if !std::mem::replace(&mut folder.told, true) {
                        tracing::warn!(folder = %folder.watch.path.display(), %error, "a watched folder cannot be read; its documents are kept");
                    }
                }
            }
        }
        Ok(files)
    }

    /// Reads the outcome of tasks that were adding files, in this process or elsewhere.
    async fn hear(&self, open: &Open, followed: &mut Followed) -> Result<(), Error> {
        let (mut turns, mut attempts) = (Vec::new(), Vec::new());
        for (row, task) in followed.all_going() {
            if open.work.job(task).is_some() {
                continue;
            }
            let standing = match open.store.task(task).await?.map(|task| task.state) {
                Some(TaskState::Queued | TaskState::Running(_)) => continue,
                Some(TaskState::Completed(result)) => {
                    self.documents_changed();
                    Standing::Settled(document_of(&result))
                }
                Some(TaskState::Failed { code, message }) if OF_THE_FILE.contains(&code.as_str()) => {
                    tracing::warn!(
                        file = row.path,
                        code,
                        message,
                        "a file of a watched folder cannot be added; it is tried again when it changes"
                    );
                    Standing::Settled(None)
                }
                ended => {
                    if followed.put_off(&row.path, row.look, Instant::now()) {
                        let reason = match ended {
                            Some(TaskState::Failed { message, .. }) => message,
                            _ => "its task was cancelled".to_owned(),
                        };
                        tracing::warn!(
                            file = row.path,
                            reason,
                            "a file of a watched folder was not added; it is tried again"
                        );
                    }
                    attempts.push(task);
                    Standing::Waiting
                }
            };
            turns.push(Turn { after: Watched { standing, ..row.clone() }, before: Some(row) });
        }
        if !attempts.is_empty() {
            open.store.forget_attempts(attempts).await?;
        }
        turn(open, followed, turns).await
    }

    /// Submits tasks for the waiting files.
    async fn take_up(&self, open: &Open, followed: &mut Followed, files: &Files) -> Result<(), Error> {
        let room = TOGETHER.saturating_sub(followed.all_going().len());
        for path in followed.due(files, Instant::now()).into_iter().take(room) {
            let File { path: found, within, look, .. } = files[&path].clone();
            let rules = self.rules(Whence::Here).within(Some(&within));
            let facts = match self.check(rules, found.clone()).await {
                Ok(facts) => facts,
                // Retried with backoff, because the cause is not the file's content.
                Err(error @ (Error::FileNotReadable { .. } | Error::FileNotFound(_))) => {
                    if followed.put_off(&path, look, Instant::now()) {
                        tracing::warn!(file = path, %error, "a file of a watched folder cannot be read; it is tried again");
                    }
                    continue;
                }
                Err(error) => {
                    tracing::warn!(file = path, %error, "a file of a watched folder cannot be added");
                    followed.refuse(&path, look);
                    continue;
                }
            };
            let wish = Wish {
                file_path: found,
                within: Some(within.to_path_buf()),
                metadata: serde_json::Map::new(),
                force_ocr: false,
                origin: Origin::Watched,
            };
            let submitted =
                open.work.submit(followed.base.clone(), Arc::from(OWNER), Request::Add(wish), Some(&facts)).await;
            let job = match submitted {
                Ok(job) => job,
                // All remaining files wait for the next scan.
                Err(error) => {
                    if !std::mem::replace(&mut followed.is_full, true) {
                        tracing::warn!(%error, "files of watched folders wait to be added");
                    }
                    return Ok(());
                }
            };
            followed.is_full = false;
            let Some(before) = followed.rows.get(&path).cloned() else { continue };
            let after = Watched { standing: Standing::Going(job.id), ..before.clone() };
            turn(open, followed, vec![Turn { before: Some(before), after }]).await?;
            if followed.rows[&path].standing != Standing::Going(job.id) {
                // Another process has picked up the file, or the user has removed it.
                self.take_back(open, &followed.base, &path, job.id).await?;
            }
        }
        Ok(())
    }

    /// Cancels a task that no row references. If it completed first, its document is removed, unless another process
    /// has picked up the file and may reference that document.
    async fn take_back(&self, open: &Open, base: &BaseName, path: &str, task: TaskId) -> Result<(), Error> {
        if self.cancel(task).await? {
            return Ok(());
        }
        open.store.forget_attempts(vec![task]).await?;
        let Some(task) = open.store.task(task).await? else { return Ok(()) };
        let TaskState::Completed(result) = &task.state else { return Ok(()) };
        let made = document_of(result).filter(|document| task.document == Some(*document));
        let rows = open.store.watched(base).await?;
        let is_wanted = rows.iter().any(|row| row.path == path && row.standing != Standing::Settled(None));
        match made {
            Some(document) if !is_wanted => self.remove_at(base, document, path).await,
            _ => Ok(()),
        }
    }

    /// Removes the documents of deleted files.
    async fn let_go(&self, open: &Open, followed: &mut Followed, files: &Files) -> Result<(), Error> {
        let missing = followed.missing(files, Instant::now());
        if missing.is_empty() {
            return Ok(());
        }
        let is_gone = |row: &Watched| look::is_gone(Path::new(&row.path), row.device);
        let gone: Vec<Watched> = blocking(move || missing.into_iter().filter(is_gone).collect()).await?;
        let mut forgotten = Vec::new();
        for row in gone {
            let document = open.store.document_by_path(&followed.base, &row.path).await?;
            if let Some(document) = document.filter(|document| document.origin == Origin::Watched) {
                if let Some(copy) = followed.copy_of(document.id, files).cloned() {
                    // A copy of the file exists. It takes over the document.
                    let after = Watched { standing: Standing::Waiting, ..copy.clone() };
                    turn(open, followed, vec![Turn { before: Some(copy), after }]).await?;
                    continue;
                }
                tracing::info!(file = row.path, "a file of a watched folder is gone, and so is its document");
                self.remove_at(&followed.base, document.id, &row.path).await?;
            }
            followed.rows.remove(&row.path);
            forgotten.push(row.path);
        }
        open.store.forget_watched(&followed.base, forgotten).await?;
        Ok(())
    }
}

/// Determines whether a folder is the same as before. Only then does a missing entry mean that the file was deleted.
async fn recognise(open: &Open, folder: &mut Folder, listing: &Listing) -> Result<(), Error> {
    if folder.root != listing.root {
        (folder.root, folder.recorded) = (listing.root.clone(), None);
    }
    folder.is_resolved = true;
    let root = folder.root.to_string_lossy();
    if folder.recorded.is_none() {
        folder.recorded = open.store.watched_folder(&root).await?;
    }
    let is_same = folder.recorded == Some(listing.place);
    if !listing.files.is_empty() && !is_same {
        open.store.note_watched_folder(&root, listing.place).await?;
        folder.recorded = Some(listing.place);
    }
    folder.vouches = is_same || !listing.files.is_empty();
    Ok(())
}

/// Creates rows for documents without a row, so that these documents are removed when their files are deleted.
async fn place_strays(open: &Open, followed: &mut Followed, files: &Files) -> Result<(), Error> {
    // If a later step fails, the next scan reads them from the store again.
    let strays = match followed.strays.take() {
        Some(strays) => strays,
        None => open.store.unremembered(&followed.base).await?,
    };
    let (turns, strays) = followed.placed(strays, files);
    turn(open, followed, turns).await?;
    followed.strays = Some(strays);
    Ok(())
}

/// Updates rows by compare-and-swap. Rows that were changed concurrently are left unchanged.
async fn turn(open: &Open, followed: &mut Followed, turns: Vec<Turn>) -> Result<(), Error> {
    for some in turns.chunks(AT_ONCE) {
        let made = open.store.turn_watched(&followed.base, some.to_vec()).await?;
        for (Turn { after, .. }, _) in some.iter().zip(made).filter(|(_, made)| *made) {
            followed.rows.insert(after.path.clone(), after.clone());
        }
    }
    Ok(())
}

fn document_of(result: &Value) -> Option<DocumentId> {
    result["document_id"].as_str()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_in_a_file_keeps_it_from_being_tried_again() {
        for code in OF_THE_FILE {
            let error = Error::Document { code: code.to_owned(), message: String::new() };
            assert!(error.is_of_the_document(), "{code}");
        }
        let read = [
            corbie_extract::Error::Empty,
            corbie_extract::Error::PasswordProtected,
            corbie_extract::Error::Corrupted(String::new()),
            corbie_extract::Error::NoText,
        ];
        for error in read.map(Error::from) {
            assert!(OF_THE_FILE.contains(&error.code()), "{error}");
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
            assert!(!OF_THE_FILE.contains(&error.code()), "{error}");
        }
        for code in ["worker_crashed", "worker_not_started", "ocr_failed", "interrupted"] {
            assert!(!OF_THE_FILE.contains(&code), "{code}");
        }
    }
}

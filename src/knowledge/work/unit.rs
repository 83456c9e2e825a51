//! Execution of one work item: listing the files of an import, or adding one file.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use futures_util::FutureExt;

use super::Work;
use super::end::failed;
use super::job::{Job, Request};
use super::queue::Unit;
use crate::knowledge::document::{DocumentId, Origin};
use crate::knowledge::folder::FoundFile;
use crate::knowledge::ingest::{Added, Became, Target};
use crate::knowledge::patience::Patience;
use crate::knowledge::task::Outcome;
use crate::knowledge::{Error, blocking, folder, source, upload};
use crate::locked::locked;

/// Consequence of a work item for its task.
enum After {
    /// Other work items continue the task, or it has ended, or the next start resumes it.
    Nothing,
    /// The task ends with this outcome.
    Ends(Outcome),
    /// The task ends with this outcome, and its document is the cause.
    Unreadable(Outcome),
    /// The store rejects writes for the task: it was cancelled, or another process has adopted it.
    Refused,
}

impl Work {
    pub(super) async fn unit(&self, job: &Arc<Job>, unit: Unit) {
        let cancelled = job.cancel.clone().cancelled_owned();
        let work = AssertUnwindSafe(async {
            if !job.begin()
                && let Some(after) = self.start(job).await
            {
                return after;
            }
            match unit {
                Unit::List => self.list(job).await,
                Unit::File(file) => self.file(job, file).await,
            }
        });
        let after = tokio::select! {
            after = work.catch_unwind() => after,
            () = cancelled => return,
        };
        match after {
            Ok(After::Nothing) => {}
            Ok(After::Ends(outcome)) => drop(self.end(job, outcome).await),
            Ok(After::Unreadable(outcome)) => {
                // If the outcome is not stored, the task starts again and needs its upload.
                if self.end(job, outcome).await {
                    self.discard_upload(job);
                }
            }
            Ok(After::Refused) => self.refused(job).await,
            Err(_) => {
                tracing::error!(task = %job.id, "the work on a task panicked");
                self.end(job, failed(&Error::Internal("it panicked".into()))).await;
            }
        }
    }

    /// Marks a task as started in the store. Returns the consequence if that fails.
    async fn start(&self, job: &Arc<Job>) -> Option<After> {
        match self.patience(job).persistently(|| self.0.store.start_task(job.id)).await.map_err(Error::from) {
            Ok(true) => None,
            Ok(false) => Some(After::Refused),
            Err(error) if error.passes() => Some(After::Nothing),
            Err(error) => Some(After::Ends(failed(&error))),
        }
    }

    /// Expands the paths of an import into files.
    async fn list(&self, job: &Arc<Job>) -> After {
        let Request::Import { paths, recursive, follow_links, .. } = &job.request else { return After::Nothing };
        let options = folder::Options { recursive: *recursive, follow_links: *follow_links };
        let (paths, rules) = (paths.clone(), self.0.reader.folders.clone());
        job.far.send_modify(|far| far.step = "Discovering files".to_owned());
        let cancel = job.cancel.clone();
        let found = blocking(move || folder::files_of(&paths, options, &rules, &cancel));
        let found = match found.await {
            Ok(found) => found,
            Err(error) => return After::Ends(failed(&error)),
        };
        let guess = match self.guess(found.files.clone()).await {
            Ok(guess) => guess,
            Err(error) => return After::Ends(failed(&error)),
        };
        let brought = match self.brought(job).await {
            Ok(brought) => brought,
            Err(error) if error.passes() => return After::Nothing,
            Err(error) => return After::Ends(failed(&error)),
        };
        let more = {
            let mut files = locked(&job.files);
            files.listed = true;
            files.brought = brought;
            files.guess = guess;
            files.count = found.files.len() + found.failed.len();
            files.skipped = found.skipped;
            for (path, error) in found.failed {
                files.fail(&path, &error);
            }
            files.waiting = found.files.into();
            job.far.send_modify(|far| far.advance(files.far("Adding documents")));
            !files.waiting.is_empty()
        };
        if more {
            locked(&self.0.queue).wait(job.clone());
            self.0.news.notify_one();
            return After::Nothing;
        }
        After::Ends(Outcome::Completed(locked(&job.files).summary()))
    }

    /// Documents that an import stored before its process ended.
    async fn brought(&self, job: &Job) -> Result<HashMap<DocumentId, Became>, Error> {
        if !job.resumed {
            return Ok(HashMap::new());
        }
        let imported = self.patience(job).persistently(|| self.0.store.imported(job.id)).await?;
        let became = |replaced| if replaced { Became::Updated } else { Became::Added };
        Ok(imported.into_iter().map(|(document, replaced)| (document, became(replaced))).collect())
    }

    /// Adds one file. The last file of a task completes it.
    async fn file(&self, job: &Arc<Job>, file: FoundFile) -> After {
        let (mut wish, ends) = job.request.wish(&file);
        let path = file.path;
        if wish.origin == Origin::Uploaded {
            wish.file_path = match self.upload_here(job, &wish.file_path).await {
                Ok(here) => here,
                Err(error) if error.passes() => return After::Nothing,
                Err(error) => return After::Ends(failed(&error)),
            };
        }
        let target = Target {
            store: &self.0.store,
            finder: &self.0.finder,
            base: &job.base,
            caller: &job.owner,
            id: if ends { job.document } else { DocumentId::random() },
            task: job.id,
            ends,
            patience: self.patience(job),
        };
        let began = Instant::now();
        let added = loop {
            let added = self.0.reader.add(&wish, target, |far| job.tell(&path, far)).await;
            // Writes are retried inside. Reads come before any expensive step, so a transient failure restarts the
            // whole file.
            if !added.as_ref().is_err_and(Error::passes) {
                break added;
            }
            if !target.patience.pause().await {
                return After::Nothing;
            }
        };
        self.learn(&path, &added, began).await;
        match (added, ends) {
            // The outcome of the task was stored in the same transaction as the document.
            (Ok(added), true) => {
                locked(&self.0.queue).forget(job);
                job.end(Outcome::Completed(added.result()));
                self.discard_upload(job);
                After::Nothing
            }
            (Err(Error::Cancelled), _) => After::Refused,
            (Err(error), true) if error.is_of_the_document() => After::Unreadable(failed(&error)),
            (Err(error), true) => After::Ends(failed(&error)),
            (added, false) => {
                let mut files = locked(&job.files);
                files.going.remove(&path);
                match added {
                    Ok(added) => files.succeed(&path, &added),
                    Err(error) => files.fail(&path, &error),
                }
                job.far.send_modify(|far| far.advance(files.far("Adding documents")));
                match files.waiting.is_empty() && files.going.is_empty() {
                    true => After::Ends(Outcome::Completed(files.summary())),
                    false => After::Nothing,
                }
            }
        }
    }

    /// Local path of an upload. If another instance received it, it is fetched first.
    async fn upload_here(&self, job: &Job, path: &Path) -> Result<PathBuf, Error> {
        let bring = || upload::shared::here(&self.0.store, &self.0.storage, path.to_owned());
        loop {
            match bring().await {
                Err(error) if error.passes() && self.patience(job).pause().await => {}
                brought => return brought,
            }
        }
    }

    /// Records the duration of a file for estimates.
    async fn learn(&self, path: &Path, added: &Result<Added, Error>, began: Instant) {
        if let (Ok(added), Ok(metadata)) = (added, tokio::fs::metadata(path).await)
            && added.became != Became::Unchanged
            && let Ok(format) = source::format_of(path)
        {
            self.0.estimates.learn(format, metadata.len(), began.elapsed());
        }
    }

    fn patience<'p>(&'p self, job: &'p Job) -> Patience<'p> {
        Patience { stop: &self.0.stop, far: &job.far }
    }
}

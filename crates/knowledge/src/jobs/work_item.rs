//! Execution of one work item: listing the files of an import, or adding one file.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use futures_util::FutureExt;

use super::JobScheduler;
use super::completion::failure_outcome;
use super::job::{Job, JobRequest};
use super::queue::WorkItem;
use crate::document::{DocumentId, Origin};
use crate::file_discovery::FoundFile;
use crate::ingest::{IngestOutcome, IngestResult, IngestTarget};
use crate::retry::RetryPolicy;
use crate::task::TaskOutcome;
use crate::{Error, file_discovery, path_policy, run_blocking, upload};
use corbie_util::lock::lock;

/// Consequence of a work item for its task.
enum ItemOutcome {
    /// Other work items continue the task, or it has ended, or the next start resumes it.
    Continue,
    /// The task ends with this outcome.
    End(TaskOutcome),
    /// The task ends with this outcome, and its document is the cause.
    EndUnreadable(TaskOutcome),
    /// The store rejects writes for the task: it was cancelled, or another process has adopted it.
    WriteRefused,
}

impl JobScheduler {
    pub(super) async fn run_item(&self, job: &Arc<Job>, unit: WorkItem) {
        let cancelled = job.cancel.clone().cancelled_owned();
        let work = AssertUnwindSafe(async {
            if !job.mark_started()
                && let Some(after) = self.start(job).await
            {
                return after;
            }
            match unit {
                WorkItem::ListFiles => self.list_files(job).await,
                WorkItem::AddFile(file) => self.add_file(job, file).await,
            }
        });
        let after = tokio::select! {
            after = work.catch_unwind() => after,
            () = cancelled => return,
        };
        match after {
            Ok(ItemOutcome::Continue) => {}
            Ok(ItemOutcome::End(outcome)) => drop(self.finish(job, outcome).await),
            Ok(ItemOutcome::EndUnreadable(outcome)) => {
                // If the outcome is not stored, the task starts again and needs its upload.
                if self.finish(job, outcome).await {
                    self.discard_upload(job);
                }
            }
            Ok(ItemOutcome::WriteRefused) => self.resolve_refusal(job).await,
            Err(_) => {
                tracing::error!(task = %job.id, "task panicked");
                self.finish(job, failure_outcome(&Error::Internal("task panicked".into()))).await;
            }
        }
    }

    /// Marks a task as started in the store. Returns the consequence if that fails.
    async fn start(&self, job: &Arc<Job>) -> Option<ItemOutcome> {
        match self.retry_policy(job).retry(|| self.0.store.start_task(job.id)).await.map_err(Error::from) {
            Ok(true) => None,
            Ok(false) => Some(ItemOutcome::WriteRefused),
            Err(error) if error.is_transient() => Some(ItemOutcome::Continue),
            Err(error) => Some(ItemOutcome::End(failure_outcome(&error))),
        }
    }

    /// Expands the paths of an import into files.
    async fn list_files(&self, job: &Arc<Job>) -> ItemOutcome {
        let JobRequest::Import { paths, recursive, follow_links, .. } = &job.request else {
            return ItemOutcome::Continue;
        };
        let options = file_discovery::Options { recursive: *recursive, follow_links: *follow_links };
        let (paths, rules) = (paths.clone(), self.0.ingester.listing_policy.clone());
        job.progress.send_modify(|far| far.step = "Discovering files".to_owned());
        let cancel = job.cancel.clone();
        let found = run_blocking(move || file_discovery::discover_all(&paths, options, &rules, &cancel));
        let found = match found.await {
            Ok(found) => found,
            Err(error) => return ItemOutcome::End(failure_outcome(&error)),
        };
        let guess = match self.estimate_paths(found.files.clone()).await {
            Ok(guess) => guess,
            Err(error) => return ItemOutcome::End(failure_outcome(&error)),
        };
        let brought = match self.stored_before_restart(job).await {
            Ok(brought) => brought,
            Err(error) if error.is_transient() => return ItemOutcome::Continue,
            Err(error) => return ItemOutcome::End(failure_outcome(&error)),
        };
        let more = {
            let mut files = lock(&job.files);
            files.is_listed = true;
            files.stored_before_restart = brought;
            files.estimate = guess;
            files.count = found.files.len() + found.failed.len();
            files.skipped = found.skipped;
            for (path, error) in found.failed {
                files.record_failure(&path, &error);
            }
            files.pending = found.files.into();
            job.progress.send_modify(|far| far.advance(files.progress("Adding documents")));
            !files.pending.is_empty()
        };
        if more {
            lock(&self.0.queue).requeue(job.clone());
            self.0.work_available.notify_one();
            return ItemOutcome::Continue;
        }
        ItemOutcome::End(TaskOutcome::Completed(lock(&job.files).summary()))
    }

    /// Documents that an import stored before its process ended.
    async fn stored_before_restart(&self, job: &Job) -> Result<HashMap<DocumentId, IngestOutcome>, Error> {
        if !job.is_resumed {
            return Ok(HashMap::new());
        }
        let imported = self.retry_policy(job).retry(|| self.0.store.import_checkpoint(job.id)).await?;
        let became = |replaced| if replaced { IngestOutcome::Updated } else { IngestOutcome::Added };
        Ok(imported.into_iter().map(|(document, replaced)| (document, became(replaced))).collect())
    }

    /// Adds one file. The last file of a task completes it.
    async fn add_file(&self, job: &Arc<Job>, file: FoundFile) -> ItemOutcome {
        let (mut wish, ends) = job.request.ingest_request(&file);
        let path = file.path;
        if wish.origin == Origin::Uploaded {
            wish.file_path = match self.ensure_local_upload(job, &wish.file_path).await {
                Ok(here) => here,
                Err(error) if error.is_transient() => return ItemOutcome::Continue,
                Err(error) => return ItemOutcome::End(failure_outcome(&error)),
            };
        }
        let target = IngestTarget {
            store: &self.0.store,
            retriever: &self.0.retriever,
            base: &job.base,
            caller: &job.owner,
            id: if ends { job.document } else { DocumentId::random() },
            task: job.id,
            ends_task: ends,
            retry_policy: self.retry_policy(job),
        };
        let began = Instant::now();
        let added = loop {
            let added = self.0.ingester.add(&wish, target, |far| job.report_progress(&path, far)).await;
            // Writes are retried inside. Reads come before any expensive step, so a transient failure restarts the
            // whole file.
            if !added.as_ref().is_err_and(Error::is_transient) {
                break added;
            }
            if !target.retry_policy.wait_before_retry().await {
                return ItemOutcome::Continue;
            }
        };
        self.record_duration(&path, &added, began).await;
        match (added, ends) {
            // The outcome of the task was stored in the same transaction as the document.
            (Ok(added), true) => {
                lock(&self.0.queue).remove(job);
                job.set_outcome(TaskOutcome::Completed(added.to_json()));
                self.discard_upload(job);
                ItemOutcome::Continue
            }
            (Err(Error::Cancelled), _) => ItemOutcome::WriteRefused,
            (Err(error), true) if error.is_document_fault() => ItemOutcome::EndUnreadable(failure_outcome(&error)),
            (Err(error), true) => ItemOutcome::End(failure_outcome(&error)),
            (added, false) => {
                let mut files = lock(&job.files);
                files.in_progress.remove(&path);
                match added {
                    Ok(added) => files.record_success(&path, &added),
                    Err(error) => files.record_failure(&path, &error),
                }
                job.progress.send_modify(|far| far.advance(files.progress("Adding documents")));
                match files.pending.is_empty() && files.in_progress.is_empty() {
                    true => ItemOutcome::End(TaskOutcome::Completed(files.summary())),
                    false => ItemOutcome::Continue,
                }
            }
        }
    }

    /// Local path of an upload. If another instance received it, it is fetched first.
    async fn ensure_local_upload(&self, job: &Job, path: &Path) -> Result<PathBuf, Error> {
        let bring = || upload::shared_store::ensure_local(&self.0.store, &self.0.storage, path.to_owned());
        loop {
            match bring().await {
                Err(error) if error.is_transient() && self.retry_policy(job).wait_before_retry().await => {}
                brought => return brought,
            }
        }
    }

    /// Records the duration of a file for estimates.
    async fn record_duration(&self, path: &Path, added: &Result<IngestResult, Error>, began: Instant) {
        if let (Ok(added), Ok(metadata)) = (added, tokio::fs::metadata(path).await)
            && added.outcome != IngestOutcome::Unchanged
            && let Ok(format) = path_policy::format_of(path)
        {
            self.0.estimator.record(format, metadata.len(), began.elapsed());
        }
    }

    fn retry_policy<'p>(&'p self, job: &'p Job) -> RetryPolicy<'p> {
        RetryPolicy { stop: &self.0.stop, progress: &job.progress }
    }
}

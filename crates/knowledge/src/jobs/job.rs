//! A job: request, progress and cancellation of one task in this process.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::file_progress::JobFiles;
use crate::document::{BaseName, DocumentId, Origin};
use crate::estimate::Estimate;
use crate::file_discovery::FoundFile;
use crate::ingest::IngestRequest;
use crate::progress::Progress;
use crate::task::{TaskId, TaskKind, TaskOutcome, TaskProgress, TaskRecord};
use corbie_util::lock::lock;

/// A task of this process that has not ended, or whose outcome is not stored yet.
#[derive(Debug)]
pub struct Job {
    pub id: TaskId,
    pub base: BaseName,
    pub owner: Arc<str>,
    pub(super) request: JobRequest,
    pub(super) document: DocumentId,
    pub(super) cancel: CancellationToken,
    pub(super) progress: watch::Sender<Progress>,
    pub(super) outcome: watch::Sender<Option<TaskOutcome>>,
    pub(super) files: Mutex<JobFiles>,
    /// Progress that was last stored for other processes.
    last_published: Mutex<TaskProgress>,
    /// Whether another process may have started it.
    pub(super) is_resumed: bool,
}

/// The request. Stored with the task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobRequest {
    Add(IngestRequest),
    Import {
        paths: Vec<String>,
        recursive: bool,
        #[serde(default)]
        metadata: Map<String, Value>,
        #[serde(default)]
        force_ocr: bool,
        /// Also follow symbolic links that leave the named folders.
        #[serde(default)]
        follow_links: bool,
    },
}

impl JobRequest {
    pub fn kind(&self) -> TaskKind {
        match self {
            JobRequest::Add(_) => TaskKind::Add,
            JobRequest::Import { .. } => TaskKind::Import,
        }
    }

    /// Display name of an import: the first path and the number of further paths.
    pub(super) fn import_label(&self) -> Option<String> {
        match self {
            JobRequest::Import { paths, .. } => match paths.as_slice() {
                [] => None,
                [path] => Some(path.clone()),
                [path, more @ ..] => Some(format!("{path} and {} more", more.len())),
            },
            JobRequest::Add(_) => None,
        }
    }

    /// The uploaded file of the task.
    pub(super) fn upload_path(&self) -> Option<&Path> {
        match self {
            JobRequest::Add(wish) if wish.origin == Origin::Uploaded => Some(&wish.file_path),
            _ => None,
        }
    }

    /// The ingest request for one file, and whether the task completes with this file.
    pub(super) fn ingest_request(&self, file: &FoundFile) -> (IngestRequest, bool) {
        match self {
            JobRequest::Add(wish) => (wish.clone(), true),
            JobRequest::Import { metadata, force_ocr, .. } => {
                let wish = IngestRequest {
                    file_path: file.path.clone(),
                    within: file.within.as_deref().map(Path::to_owned),
                    metadata: metadata.clone(),
                    force_ocr: *force_ocr,
                    origin: Origin::Added,
                };
                (wish, false)
            }
        }
    }
}

impl Job {
    pub(super) fn new(
        id: TaskId,
        base: BaseName,
        owner: Arc<str>,
        request: JobRequest,
        document: DocumentId,
        guess: Estimate,
    ) -> Job {
        let mut files = JobFiles::new(guess);
        if let JobRequest::Add(wish) = &request {
            files.is_listed = true;
            files.count = 1;
            files.pending.push_back(FoundFile { path: wish.file_path.clone(), within: None });
        }
        Job {
            id,
            base,
            owner,
            request,
            document,
            cancel: CancellationToken::new(),
            progress: watch::Sender::new(Progress::default()),
            outcome: watch::Sender::new(None),
            files: Mutex::new(files),
            last_published: Mutex::default(),
            is_resumed: false,
        }
    }

    /// Restores a task that was started elsewhere. Returns `None` if its request cannot be parsed.
    pub(super) fn from_task(task: TaskRecord, guess: Estimate) -> Option<Job> {
        let request = serde_json::from_value(task.request).ok()?;
        let document = task.document.unwrap_or_else(DocumentId::random);
        let job = Job::new(task.id, task.base, task.owner.into(), request, document, guess);
        Some(Job { is_resumed: true, ..job })
    }

    /// Subscribes to progress.
    pub fn progress(&self) -> watch::Receiver<Progress> {
        self.progress.subscribe()
    }

    /// Subscribes to the outcome.
    pub fn outcome(&self) -> watch::Receiver<Option<TaskOutcome>> {
        self.outcome.subscribe()
    }

    /// Estimated duration if no other job runs.
    pub fn estimate(&self) -> Duration {
        lock(&self.files).estimate.duration()
    }

    /// Estimated duration of the remaining work, one file at a time.
    pub(super) fn remaining(&self) -> Duration {
        let share = self.progress.borrow().fraction;
        lock(&self.files).estimate.sequential.mul_f64(1.0 - share.clamp(0.0, 1.0))
    }

    /// When its first file was started.
    pub fn started_at(&self) -> Option<Instant> {
        lock(&self.files).started_at
    }

    /// Progress to store for other processes. Returns `None` if the job is idle and its progress is unchanged: of many
    /// jobs in the rotation, only the active ones cause a write.
    pub(super) fn unpublished_progress(&self) -> Option<TaskProgress> {
        let Progress { step, completed, total, fraction: share } = self.progress.borrow().clone();
        let progress = TaskProgress { step, done: completed, total, permille: (share.clamp(0.0, 1.0) * 1000.0) as u32 };
        let is_waiting = {
            let files = lock(&self.files);
            files.is_listed && files.in_progress.is_empty()
        };
        let before = std::mem::replace(&mut *lock(&self.last_published), progress.clone());
        Some(progress).filter(|progress| !is_waiting || *progress != before)
    }

    /// Marks it as started. Returns whether it was started before.
    pub(super) fn mark_started(&self) -> bool {
        let mut files = lock(&self.files);
        let before = files.started_at.is_some();
        files.started_at.get_or_insert_with(Instant::now);
        before
    }

    pub(super) fn set_outcome(&self, outcome: TaskOutcome) {
        self.outcome.send_modify(|ended| {
            ended.get_or_insert(outcome);
        });
    }

    pub(super) fn report_progress(&self, path: &Path, far: Progress) {
        if matches!(self.request, JobRequest::Add(_)) {
            return self.progress.send_modify(|shown| shown.advance(far));
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut files = lock(&self.files);
        let step = format!("{name}: {}", far.step);
        files.in_progress.insert(path.to_owned(), far);
        self.progress.send_modify(|shown| shown.advance(files.progress(&step)));
    }
}

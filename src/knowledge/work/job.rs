//! A job: request, progress and cancellation of one task in this process.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::files::Files;
use crate::knowledge::document::{BaseName, DocumentId, Origin};
use crate::knowledge::estimate::Guess;
use crate::knowledge::far::Far;
use crate::knowledge::folder::FoundFile;
use crate::knowledge::ingest::Wish;
use crate::knowledge::task::{Outcome, Progress, Task, TaskId, TaskKind};
use crate::locked::locked;

/// A task of this process that has not ended, or whose outcome is not stored yet.
#[derive(Debug)]
pub struct Job {
    pub id: TaskId,
    pub base: BaseName,
    pub owner: Arc<str>,
    pub(super) request: Request,
    pub(super) document: DocumentId,
    pub(super) cancel: CancellationToken,
    pub(super) far: watch::Sender<Far>,
    pub(super) ended: watch::Sender<Option<Outcome>>,
    pub(super) files: Mutex<Files>,
    /// Progress that was last stored for other processes.
    told: Mutex<Progress>,
    /// Whether another process may have started it.
    pub(super) resumed: bool,
}

/// The request. Stored with the task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    Add(Wish),
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

impl Request {
    pub fn kind(&self) -> TaskKind {
        match self {
            Request::Add(_) => TaskKind::Add,
            Request::Import { .. } => TaskKind::Import,
        }
    }

    /// Display name of an import: the first path and the number of further paths.
    pub(super) fn imported(&self) -> Option<String> {
        match self {
            Request::Import { paths, .. } => match paths.as_slice() {
                [] => None,
                [path] => Some(path.clone()),
                [path, more @ ..] => Some(format!("{path} and {} more", more.len())),
            },
            Request::Add(_) => None,
        }
    }

    /// The uploaded file of the task.
    pub(super) fn upload(&self) -> Option<&Path> {
        match self {
            Request::Add(wish) if wish.origin == Origin::Uploaded => Some(&wish.file_path),
            _ => None,
        }
    }

    /// The ingest request for one file, and whether the task completes with this file.
    pub(super) fn wish(&self, file: &FoundFile) -> (Wish, bool) {
        match self {
            Request::Add(wish) => (wish.clone(), true),
            Request::Import { metadata, force_ocr, .. } => {
                let wish = Wish {
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
        request: Request,
        document: DocumentId,
        guess: Guess,
    ) -> Job {
        let mut files = Files::new(guess);
        if let Request::Add(wish) = &request {
            files.listed = true;
            files.count = 1;
            files.waiting.push_back(FoundFile { path: wish.file_path.clone(), within: None });
        }
        Job {
            id,
            base,
            owner,
            request,
            document,
            cancel: CancellationToken::new(),
            far: watch::Sender::new(Far::default()),
            ended: watch::Sender::new(None),
            files: Mutex::new(files),
            told: Mutex::default(),
            resumed: false,
        }
    }

    /// Restores a task that was started elsewhere. Returns `None` if its request cannot be parsed.
    pub(super) fn of(task: Task, guess: Guess) -> Option<Job> {
        let request = serde_json::from_value(task.request).ok()?;
        let document = task.document.unwrap_or_else(DocumentId::random);
        let job = Job::new(task.id, task.base, task.owner.into(), request, document, guess);
        Some(Job { resumed: true, ..job })
    }

    /// Subscribes to progress.
    pub fn far(&self) -> watch::Receiver<Far> {
        self.far.subscribe()
    }

    /// Subscribes to the outcome.
    pub fn ended(&self) -> watch::Receiver<Option<Outcome>> {
        self.ended.subscribe()
    }

    /// Estimated duration if no other job runs.
    pub fn guess(&self) -> Duration {
        locked(&self.files).guess.time()
    }

    /// Estimated duration of the remaining work, one file at a time.
    pub(super) fn rest(&self) -> Duration {
        let share = self.far.borrow().share;
        locked(&self.files).guess.alone.mul_f64(1.0 - share.clamp(0.0, 1.0))
    }

    /// When its first file was started.
    pub fn began(&self) -> Option<Instant> {
        locked(&self.files).began
    }

    /// Progress to store for other processes. Returns `None` if the job is idle and its progress is unchanged: of many
    /// jobs in the rotation, only the active ones cause a write.
    pub(super) fn news(&self) -> Option<Progress> {
        let Far { step, completed, total, share } = self.far.borrow().clone();
        let progress = Progress { step, done: completed, total, share: (share.clamp(0.0, 1.0) * 1000.0) as u32 };
        let is_waiting = {
            let files = locked(&self.files);
            files.listed && files.going.is_empty()
        };
        let before = std::mem::replace(&mut *locked(&self.told), progress.clone());
        Some(progress).filter(|progress| !is_waiting || *progress != before)
    }

    /// Marks it as started. Returns whether it was started before.
    pub(super) fn begin(&self) -> bool {
        let mut files = locked(&self.files);
        let before = files.began.is_some();
        files.began.get_or_insert_with(Instant::now);
        before
    }

    pub(super) fn end(&self, outcome: Outcome) {
        self.ended.send_modify(|ended| {
            ended.get_or_insert(outcome);
        });
    }

    pub(super) fn tell(&self, path: &Path, far: Far) {
        if matches!(self.request, Request::Add(_)) {
            return self.far.send_modify(|shown| shown.advance(far));
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut files = locked(&self.files);
        let step = format!("{name}: {}", far.step);
        files.going.insert(path.to_owned(), far);
        self.far.send_modify(|shown| shown.advance(files.far(&step)));
    }
}

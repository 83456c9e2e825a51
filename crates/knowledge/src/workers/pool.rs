//! Worker pool: each worker serves one tenant, and is replaced after a crash, after a number of documents, or when
//! another tenant needs its slot.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use corbie_extract::{Document, Format};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::budget::Budget;
use super::exit_status;
use super::extraction::{ExtractionSession, PartialResult};
use super::message::{OcrConfig, OcrMode, WorkerJob};
use super::process::Worker;
use corbie_config::documents::Documents;
use corbie_config::ocr::{self, Engine};
use corbie_util::lock::lock;

/// The workers of one process, started on demand. Clones share the same pool.
#[derive(Debug, Clone)]
pub struct WorkerPool(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    settings: Documents,
    ocr: ocr::Ocr,
    permits: Semaphore,
    idle: Mutex<Idle>,
}

/// Idle workers.
#[derive(Debug, Default)]
struct Idle {
    /// Workers with a tenant, most recently used last. At most as many as documents are extracted concurrently.
    used: Vec<Worker>,
    /// A worker without a tenant. Started once there are several tenants, so that switching does not wait for a process
    /// start.
    spare: Option<Worker>,
}

/// Owner of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tenant {
    pub caller: String,
    pub base: String,
}

/// A document to extract.
#[derive(Debug, Clone, Copy)]
pub struct InputFile<'a> {
    pub bytes: &'a [u8],
    /// File name, if any. It is the description of an image without text.
    pub name: Option<&'a str>,
    /// Format according to the file name.
    pub format_hint: Option<Format>,
    /// Whether to extract a whole HTML page instead of its main content.
    pub full_html: bool,
    pub ocr: OcrMode,
    /// A worker never serves two tenants.
    pub tenant: &'a Tenant,
}

/// An extracted document.
#[derive(Debug)]
pub struct Extraction {
    pub document: Document,
    /// Why extraction is incomplete, if it is.
    pub partial: Option<Error>,
    /// Whether it is an image in which OCR found no text.
    pub wordless: bool,
}

/// Progress of an extraction.
#[derive(Debug, Clone, Copy)]
pub enum WorkerProgress {
    /// Number of pages.
    PageCount(u32),
    /// OCR runs on this page, or on an image on it.
    OcrPage(u32),
    /// Number of pages done.
    PagesDone(u32),
}

impl Tenant {
    /// The user of this process, without a knowledge base.
    pub fn local() -> Tenant {
        Tenant { caller: "local".to_owned(), base: String::new() }
    }
}

/// Why extraction failed or is incomplete.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The document is the cause, as reported by the worker.
    #[error("{message}")]
    Document { kind: String, message: String },
    /// OCR failed.
    #[error("OCR processing failed: {0}")]
    Ocr(String),
    #[error("document processing timed out after {0:?}; increase `documents.timeout`, or split the file")]
    TimeLimit(Duration),
    #[error(
        "document processing exceeded {seconds} s of CPU time, the limit for files of this size and format; simplify \
         or split the file, or increase `documents.max_cpu_time`"
    )]
    CpuLimit { seconds: u64 },
    #[error("document processing ran out of memory; increase `documents.memory`, or split the file")]
    MemoryLimit,
    #[error("the document worker terminated unexpectedly; try again, or split the file")]
    Crashed,
    #[error("cannot start a document worker: {0}")]
    NotStarted(String),
}

/// Number of documents after which a worker is replaced, to discard anything that a document left behind.
const MAX_JOBS_PER_WORKER: usize = 64;
/// A worker is also replaced after a larger document or after more OCR jobs, because it may retain their memory.
const MAX_REUSE_BYTES: usize = 8 << 20;
const MAX_REUSE_OCR_JOBS: usize = 4;
/// Timeout for an idle worker to confirm a document. It confirms before it extracts. If it is only slow, the cost is
/// one more process start.
const START_TIMEOUT: Duration = Duration::from_secs(5);

impl WorkerPool {
    pub fn new(settings: Documents, ocr: ocr::Ocr) -> WorkerPool {
        let room = Semaphore::new(settings.workers());
        WorkerPool(Arc::new(Inner { settings, ocr, permits: room, idle: Mutex::default() }))
    }

    /// An idle worker of this tenant, or the spare one. Discards workers that have exited or are close to their CPU
    /// limit.
    fn take_idle_worker(&self, tenant: &Tenant, budget: Budget) -> Option<Worker> {
        let settings = &self.0.settings;
        let spare = {
            let mut idle = lock(&self.0.idle);
            while let Some(at) = idle.used.iter().rposition(|worker| worker.tenant.as_ref() == Some(tenant)) {
                let mut worker = idle.used.remove(at);
                if worker.is_running() && worker.has_time_for(budget) {
                    return Some(worker);
                }
            }
            if idle.used.is_empty() && idle.spare.is_none() {
                return None;
            }
            // The new worker replaces the least recently used (LRU) one.
            if idle.used.len() >= settings.workers() {
                idle.used.remove(0);
            }
            idle.spare.take()
        };
        // Outside the lock, because starting a process takes time.
        if let Ok(worker) = Worker::start(settings.memory()) {
            lock(&self.0.idle).spare.get_or_insert(worker);
        }
        spare.and_then(|mut worker| worker.is_running().then_some(worker))
    }

    /// Extracts a document. Dropping the future kills the worker.
    pub async fn extract(
        &self,
        file: InputFile<'_>,
        mut tell: impl FnMut(WorkerProgress) + Send,
    ) -> Result<Extraction, Error> {
        let (job, budget) = self.build_job(&file)?;
        let _room = self.0.permits.acquire().await.map_err(|error| Error::NotStarted(error.to_string()))?;
        let (mut heard, error) = self.attempt(&file, &job, budget, &mut tell).await;
        if heard.ocr_jobs > 0 && error.as_ref().is_some_and(Error::is_worker_fault) {
            // An image that exhausts a worker must not lose the text around it, so the document is extracted again
            // without OCR.
            let sight = OcrConfig { mode: OcrMode::Off, ..job.ocr };
            let (again, _) = self.attempt(&file, &WorkerJob { ocr: sight, ..job }, budget, &mut |_| {}).await;
            heard.append(again);
        }
        heard.into_result(error)
    }

    /// Extracts a document with one worker. Returns the error if extraction is incomplete.
    async fn attempt(
        &self,
        file: &InputFile<'_>,
        job: &WorkerJob,
        budget: Budget,
        tell: &mut (dyn FnMut(WorkerProgress) + Send),
    ) -> (PartialResult, Option<Error>) {
        let Inner { settings, ocr, .. } = &*self.0;
        let begun = Instant::now();
        if let Some(mut worker) = self.take_idle_worker(file.tenant, budget) {
            worker.assign(file.tenant, job.cpu_lifetime, budget);
            let reading = ExtractionSession::new(job, ocr, begun + settings.timeout.get(), &mut *tell);
            let mut reading = reading.start_within(START_TIMEOUT);
            let followed = reading.run(&mut worker, file.bytes).await;
            // The worker failed before it confirmed the document, so the document is not the cause: the worker was
            // suspended or killed while idle.
            if followed.is_ok() || reading.has_started() {
                return self.finish_attempt(followed, worker, reading, begun, file).await;
            }
            tracing::warn!("an idle document worker terminated or does not respond; replacing it");
        }
        let mut worker = match Worker::start(settings.memory()) {
            Ok(worker) => worker,
            Err(error) => return (PartialResult::default(), Some(Error::NotStarted(error.to_string()))),
        };
        worker.assign(file.tenant, job.cpu_lifetime, budget);
        let begun = Instant::now();
        let mut reading = ExtractionSession::new(job, ocr, begun + settings.timeout.get(), tell);
        let followed = reading.run(&mut worker, file.bytes).await;
        self.finish_attempt(followed, worker, reading, begun, file).await
    }

    /// Result of an extraction. Returns a reusable worker to the pool.
    async fn finish_attempt(
        &self,
        followed: io::Result<Option<Error>>,
        mut worker: Worker,
        reading: ExtractionSession<'_>,
        begun: Instant,
        file: &InputFile<'_>,
    ) -> (PartialResult, Option<Error>) {
        let error = match followed {
            Ok(error) => {
                worker.completed_jobs += 1;
                if worker.completed_jobs < MAX_JOBS_PER_WORKER
                    && file.bytes.len() < MAX_REUSE_BYTES
                    && reading.partial.ocr_jobs < MAX_REUSE_OCR_JOBS
                {
                    lock(&self.0.idle).used.push(worker);
                }
                error
            }
            Err(error) if error.kind() == io::ErrorKind::TimedOut => Some(Error::TimeLimit(reading.deadline - begun)),
            Err(_) => Some(exit_status::exit_error(&mut worker, reading.seconds()).await),
        };
        (reading.partial, error)
    }

    /// The job message for a document.
    fn build_job(&self, file: &InputFile<'_>) -> Result<(WorkerJob, Budget), Error> {
        let Inner { settings, ocr, .. } = &*self.0;
        let when = match (ocr.engine, file.ocr) {
            (Engine::Off, OcrMode::Force) => {
                return Err(Error::Ocr("`ocr.engine` is `off`; set it to `builtin`".into()));
            }
            (Engine::Off, _) => OcrMode::Off,
            (_, when) => when,
        };
        let look_seconds = ocr.page_timeout.get().as_secs().max(1);
        let sight = OcrConfig {
            mode: when,
            is_delegated: ocr.engine == Engine::Tesseract,
            cpu_seconds_per_image: look_seconds,
        };
        let (cpu, length) = (settings.max_cpu_time.get(), file.bytes.len() as u64);
        // The extension may not match the content.
        let format = corbie_extract::resolve(file.format_hint, file.bytes).ok().map(|(format, _)| format);
        let budget = Budget::new(cpu, format, length, if when == OcrMode::Off { 0 } else { look_seconds });
        let limits = settings.limits();
        let max_looks = match format {
            Some(format) if format.is_image() => 1,
            _ => limits.pages as usize + limits.images,
        };
        let job = WorkerJob {
            format_hint: file.format_hint,
            name: file.name.map(str::to_owned),
            full: file.full_html,
            limits,
            ocr: sight,
            max_looks,
            cpu_seconds: budget.reading,
            cpu_lifetime: budget.lifetime(cpu),
            length,
        };
        Ok((job, budget))
    }
}

impl Error {
    /// Whether a limit or a crash of the worker ended the extraction.
    fn is_worker_fault(&self) -> bool {
        matches!(self, Error::TimeLimit(_) | Error::CpuLimit { .. } | Error::MemoryLimit | Error::Crashed)
    }

    /// Stable error code for programs.
    pub fn kind(&self) -> &str {
        match self {
            Error::Document { kind, .. } => kind,
            Error::Ocr(_) => "ocr_failed",
            Error::TimeLimit(_) => "time_limit",
            Error::CpuLimit { .. } => "cpu_limit",
            Error::MemoryLimit => "memory_limit",
            Error::Crashed => "worker_crashed",
            Error::NotStarted(_) => "worker_not_started",
        }
    }
}

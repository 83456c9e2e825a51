//! Worker pool: each worker serves one tenant, and is replaced after a crash, after a number of documents, or when
//! another tenant needs its slot.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use corbie_extract::{Document, Format};
use rustix::process::Signal;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::budget::Budget;
use super::message::{Job, Ocr, Sight};
use super::process::Worker;
use super::reading::{Heard, Reading};
use crate::config::documents::Documents;
use crate::config::ocr::{self, Engine};
use crate::locked::locked;

/// The workers of one process, started on demand. Clones share the same pool.
#[derive(Debug, Clone)]
pub struct Pool(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    settings: Documents,
    ocr: ocr::Ocr,
    room: Semaphore,
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
pub struct File<'a> {
    pub bytes: &'a [u8],
    /// File name, if any. It is the description of an image without text.
    pub name: Option<&'a str>,
    /// Format according to the file name.
    pub named: Option<Format>,
    /// Whether to extract a whole HTML page instead of its main content.
    pub full: bool,
    pub ocr: Ocr,
    /// A worker never serves two tenants.
    pub tenant: &'a Tenant,
}

/// An extracted document.
#[derive(Debug)]
pub struct Read {
    pub document: Document,
    /// Why extraction is incomplete, if it is.
    pub partial: Option<Error>,
    /// Whether it is an image in which OCR found no text.
    pub wordless: bool,
}

/// Progress of an extraction.
#[derive(Debug, Clone, Copy)]
pub enum Told {
    /// Number of pages.
    Pages(u32),
    /// OCR runs on this page, or on an image on it.
    Looking(u32),
    /// Number of pages done.
    Done(u32),
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
    #[error("reading took longer than {0:?}; raise `documents.timeout`, or split the file")]
    TimeLimit(Duration),
    #[error(
        "reading took more than {seconds} s of processor time, the limit for files of this size and format; simplify or \
         split the file, or raise `documents.max_cpu_time`"
    )]
    ProcessorLimit { seconds: u64 },
    #[error("reading ended for want of memory; raise `documents.memory`, or split the file")]
    Memory,
    #[error("the process that read the file ended in a way nobody expected; try again, or split the file")]
    Crashed,
    #[error("no process to read documents in could be started: {0}")]
    Start(String),
}

/// Number of documents after which a worker is replaced, to discard anything that a document left behind.
const JOBS: usize = 64;
/// A worker is also replaced after a larger document or after more OCR jobs, because it may retain their memory.
const SMALL: usize = 8 << 20;
const FEW_LOOKS: usize = 4;
/// Timeout for an idle worker to confirm a document. It confirms before it extracts. If it is only slow, the cost is
/// one more process start.
const ANSWERS: Duration = Duration::from_secs(5);

impl Pool {
    pub fn new(settings: Documents, ocr: ocr::Ocr) -> Pool {
        let room = Semaphore::new(settings.workers());
        Pool(Arc::new(Shared { settings, ocr, room, idle: Mutex::default() }))
    }

    /// An idle worker of this tenant, or the spare one. Discards workers that have exited or are close to their CPU
    /// limit.
    fn waiting(&self, tenant: &Tenant, budget: Budget) -> Option<Worker> {
        let settings = &self.0.settings;
        let spare = {
            let mut idle = locked(&self.0.idle);
            while let Some(at) = idle.used.iter().rposition(|worker| worker.tenant.as_ref() == Some(tenant)) {
                let mut worker = idle.used.remove(at);
                if worker.is_there() && worker.has_time_for(budget) {
                    return Some(worker);
                }
            }
            if idle.used.is_empty() && idle.spare.is_none() {
                return None;
            }
            // The new worker replaces the least recently used one.
            if idle.used.len() >= settings.workers() {
                idle.used.remove(0);
            }
            idle.spare.take()
        };
        // Outside the lock, because starting a process takes time.
        if let Ok(worker) = Worker::start(settings.memory()) {
            locked(&self.0.idle).spare.get_or_insert(worker);
        }
        spare.and_then(|mut worker| worker.is_there().then_some(worker))
    }

    /// Extracts a document. Dropping the future kills the worker.
    pub async fn read(&self, file: File<'_>, mut tell: impl FnMut(Told) + Send) -> Result<Read, Error> {
        let (job, budget) = self.job(&file)?;
        let _room = self.0.room.acquire().await.map_err(|error| Error::Start(error.to_string()))?;
        let (mut heard, error) = self.attempt(&file, &job, budget, &mut tell).await;
        if heard.looks > 0 && error.as_ref().is_some_and(Error::is_of_the_worker) {
            // An image that exhausts a worker must not lose the text around it, so the document is extracted again
            // without OCR.
            let sight = Sight { ocr: Ocr::Off, ..job.sight };
            let (again, _) = self.attempt(&file, &Job { sight, ..job }, budget, &mut |_| {}).await;
            heard.complete(again);
        }
        heard.end(error)
    }

    /// Extracts a document with one worker. Returns the error if extraction is incomplete.
    async fn attempt(
        &self,
        file: &File<'_>,
        job: &Job,
        budget: Budget,
        tell: &mut (dyn FnMut(Told) + Send),
    ) -> (Heard, Option<Error>) {
        let Shared { settings, ocr, .. } = &*self.0;
        let begun = Instant::now();
        if let Some(mut worker) = self.waiting(file.tenant, budget) {
            worker.assign(file.tenant, job.cpu_lifetime, budget);
            let reading = Reading::new(job, ocr, begun + settings.timeout.get(), &mut *tell);
            let mut reading = reading.beginning_within(ANSWERS);
            let followed = reading.follow(&mut worker, file.bytes).await;
            // The worker failed before it confirmed the document, so the document is not the cause: the worker was
            // suspended or killed while idle.
            if followed.is_ok() || reading.has_begun() {
                return self.ended(followed, worker, reading, begun, file).await;
            }
            tracing::warn!(
                "a process that waited for documents is gone or does not answer; another is started in its place"
            );
        }
        let mut worker = match Worker::start(settings.memory()) {
            Ok(worker) => worker,
            Err(error) => return (Heard::default(), Some(Error::Start(error.to_string()))),
        };
        worker.assign(file.tenant, job.cpu_lifetime, budget);
        let begun = Instant::now();
        let mut reading = Reading::new(job, ocr, begun + settings.timeout.get(), tell);
        let followed = reading.follow(&mut worker, file.bytes).await;
        self.ended(followed, worker, reading, begun, file).await
    }

    /// Result of an extraction. Returns a reusable worker to the pool.
    async fn ended(
        &self,
        followed: io::Result<Option<Error>>,
        mut worker: Worker,
        reading: Reading<'_>,
        begun: Instant,
        file: &File<'_>,
    ) -> (Heard, Option<Error>) {
        let error = match followed {
            Ok(error) => {
                worker.jobs += 1;
                if worker.jobs < JOBS && file.bytes.len() < SMALL && reading.heard.looks < FEW_LOOKS {
                    locked(&self.0.idle).used.push(worker);
                }
                error
            }
            Err(error) if error.kind() == io::ErrorKind::TimedOut => Some(Error::TimeLimit(reading.deadline - begun)),
            Err(_) => Some(how_it_ended(&mut worker, reading.seconds()).await),
        };
        (reading.heard, error)
    }

    /// The job message for a document.
    fn job(&self, file: &File<'_>) -> Result<(Job, Budget), Error> {
        let Shared { settings, ocr, .. } = &*self.0;
        let when = match (ocr.engine, file.ocr) {
            (Engine::Off, Ocr::Force) => return Err(Error::Ocr("`ocr.engine` is `off`; set it to `builtin`".into())),
            (Engine::Off, _) => Ocr::Off,
            (_, when) => when,
        };
        let look_seconds = ocr.page_timeout.get().as_secs().max(1);
        let sight = Sight { ocr: when, asks: ocr.engine == Engine::Tesseract, look_seconds };
        let (cpu, length) = (settings.max_cpu_time.get(), file.bytes.len() as u64);
        // The extension may not match the content.
        let format = corbie_extract::resolve(file.named, file.bytes).ok().map(|(format, _)| format);
        let budget = Budget::new(cpu, format, length, if when == Ocr::Off { 0 } else { look_seconds });
        let limits = settings.limits();
        let max_looks = match format {
            Some(format) if format.is_picture() => 1,
            _ => limits.pages as usize + limits.images,
        };
        let job = Job {
            named: file.named,
            name: file.name.map(str::to_owned),
            full: file.full,
            limits,
            sight,
            max_looks,
            cpu_seconds: budget.reading,
            cpu_lifetime: budget.lifetime(cpu),
            length,
        };
        Ok((job, budget))
    }
}

/// Why a worker exited during a document.
async fn how_it_ended(worker: &mut Worker, seconds: u64) -> Error {
    use std::os::unix::process::ExitStatusExt;
    // Read before waiting for the process, because its statistics disappear afterwards.
    let is_out_of_time = worker.is_out_of_time();
    let ended = tokio::time::timeout(Duration::from_secs(1), worker.ended()).await;
    let signal = ended.ok().and_then(|status| Signal::from_named_raw(status.ok()?.signal()?));
    match signal {
        Some(Signal::XCPU) => Error::ProcessorLimit { seconds },
        // Killed by the kernel at the hard limit.
        Some(Signal::KILL) if is_out_of_time => Error::ProcessorLimit { seconds },
        // The allocator aborts when it gets no memory, and the kernel kills a process when the system is out of memory.
        Some(Signal::ABORT | Signal::KILL) => Error::Memory,
        _ => Error::Crashed,
    }
}

impl Error {
    /// Whether a limit or a crash of the worker ended the extraction.
    fn is_of_the_worker(&self) -> bool {
        matches!(self, Error::TimeLimit(_) | Error::ProcessorLimit { .. } | Error::Memory | Error::Crashed)
    }

    /// Stable error code for programs.
    pub fn kind(&self) -> &str {
        match self {
            Error::Document { kind, .. } => kind,
            Error::Ocr(_) => "ocr_failed",
            Error::TimeLimit(_) => "time_limit",
            Error::ProcessorLimit { .. } => "cpu_limit",
            Error::Memory => "memory_limit",
            Error::Crashed => "worker_crashed",
            Error::Start(_) => "worker_not_started",
        }
    }
}

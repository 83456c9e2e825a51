//! A few workers, each for one tenant, replaced when they crash, have read enough or another tenant needs the room.

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

/// The workers of one program. Cheap to clone; all clones are the same. They are started when they are needed.
#[derive(Debug, Clone)]
pub struct Pool(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    settings: Documents,
    ocr: ocr::Ocr,
    room: Semaphore,
    idle: Mutex<Idle>,
}

/// Workers that wait for documents.
#[derive(Debug, Default)]
struct Idle {
    /// Those that have read some, the one that was used last at the end; no more than documents are read at a time.
    used: Vec<Worker>,
    /// One that has read nothing. It is started once there are several tenants, so that a change costs no start.
    spare: Option<Worker>,
}

/// Whose document it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tenant {
    pub caller: String,
    pub base: String,
}

/// A document to read.
#[derive(Debug, Clone, Copy)]
pub struct File<'a> {
    pub bytes: &'a [u8],
    /// Its name, if it has one. A picture without words is known by it.
    pub name: Option<&'a str>,
    /// What its name says it is.
    pub named: Option<Format>,
    /// Everything an HTML page says, and not only its main part.
    pub full: bool,
    pub ocr: Ocr,
    /// No process reads documents of two.
    pub tenant: &'a Tenant,
}

/// A document that was read.
#[derive(Debug)]
pub struct Read {
    pub document: Document,
    /// Why not all of it was read, if so.
    pub partial: Option<Error>,
    /// It is a picture, and was looked at for words in vain.
    pub wordless: bool,
}

/// What is told while a document is read.
#[derive(Debug, Clone, Copy)]
pub enum Told {
    /// How many pages there are.
    Pages(u32),
    /// This one is read as a picture, or a picture on it.
    Looking(u32),
    /// So many are done.
    Done(u32),
}

impl Tenant {
    /// The user of this process, who has no knowledge base open.
    pub fn local() -> Tenant {
        Tenant { caller: "local".to_owned(), base: String::new() }
    }
}

/// Why there is no document, or not all of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The document is at fault; the worker says how.
    #[error("{message}")]
    Document { kind: String, message: String },
    /// What is there as a picture could not be read.
    #[error("OCR processing failed: {0}")]
    Ocr(String),
    #[error("reading took longer than {0:?}; raise `documents.timeout`, or split the file")]
    TimeLimit(Duration),
    #[error(
        "reading took more than {seconds} s of processor time, the limit for files of this size and format; simplify or \
         split the file, or raise `documents.cpu`"
    )]
    ProcessorLimit { seconds: u64 },
    #[error("reading ended for want of memory; raise `documents.memory`, or split the file")]
    Memory,
    #[error("the process that read the file ended in a way nobody expected; try again, or split the file")]
    Crashed,
    #[error("no process to read documents in could be started: {0}")]
    Start(String),
}

/// After so many documents a worker is replaced: what one of them may have left behind is gone with it.
const JOBS: usize = 64;
/// After a document of more bytes it is replaced too, and after one with more to look at: it may keep the memory that took.
const SMALL: usize = 8 << 20;
const FEW_LOOKS: usize = 4;
/// How long a worker that has waited may take to say that it has begun. It says so before it reads; if it is merely slow,
/// all that is lost is the start of another.
const ANSWERS: Duration = Duration::from_secs(5);

impl Pool {
    pub fn new(settings: Documents, ocr: ocr::Ocr) -> Pool {
        let room = Semaphore::new(settings.workers());
        Pool(Arc::new(Shared { settings, ocr, room, idle: Mutex::default() }))
    }

    /// A worker that has nothing to do and has read nothing of another tenant. One that was ended while it waited, or is near
    /// the end of its processor time, is forgotten.
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
            // The new one takes the place of the one that was used longest ago.
            if idle.used.len() >= settings.workers() {
                idle.used.remove(0);
            }
            idle.spare.take()
        };
        // Without the lock, as it takes a while.
        if let Ok(worker) = Worker::start(settings.memory()) {
            locked(&self.0.idle).spare.get_or_insert(worker);
        }
        spare.and_then(|mut worker| worker.is_there().then_some(worker))
    }

    /// Reads a document. Dropping the future ends the work.
    pub async fn read(&self, file: File<'_>, mut tell: impl FnMut(Told) + Send) -> Result<Read, Error> {
        let (job, budget) = self.job(&file)?;
        let _room = self.0.room.acquire().await.map_err(|error| Error::Start(error.to_string()))?;
        let (mut heard, error) = self.attempt(&file, &job, budget, &mut tell).await;
        if heard.looks > 0 && error.as_ref().is_some_and(Error::is_of_the_worker) {
            // A picture that is too much for a worker must not cost the text around it.
            let sight = Sight { ocr: Ocr::Off, ..job.sight };
            let (again, _) = self.attempt(&file, &Job { sight, ..job }, budget, &mut |_| {}).await;
            heard.complete(again);
        }
        heard.end(error)
    }

    /// Has one worker read it; why not all was read, if so.
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
            // What became of it while nobody looked is not the document's fault: it is stopped, or was ended.
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

    /// What a worker came to. One that can read more waits for it.
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

    /// What a worker is told of a document.
    fn job(&self, file: &File<'_>) -> Result<(Job, Budget), Error> {
        let Shared { settings, ocr, .. } = &*self.0;
        let when = match (ocr.engine, file.ocr) {
            (Engine::Off, Ocr::Force) => return Err(Error::Ocr("`ocr.engine` is `off`; set it to `builtin`".into())),
            (Engine::Off, _) => Ocr::Off,
            (_, when) => when,
        };
        let look_seconds = ocr.page_timeout.get().as_secs().max(1);
        let sight = Sight { ocr: when, asks: ocr.engine == Engine::Tesseract, look_seconds };
        let (cpu, length) = (settings.cpu.get(), file.bytes.len() as u64);
        // Its name may say another format than it has.
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

/// Why a worker stopped speaking in the middle of a document.
async fn how_it_ended(worker: &mut Worker, seconds: u64) -> Error {
    use std::os::unix::process::ExitStatusExt;
    // Asked before it is waited for, after which the system knows nothing of it.
    let is_out_of_time = worker.is_out_of_time();
    let ended = tokio::time::timeout(Duration::from_secs(1), worker.ended()).await;
    let signal = ended.ok().and_then(|status| Signal::from_named_raw(status.ok()?.signal()?));
    match signal {
        Some(Signal::XCPU) => Error::ProcessorLimit { seconds },
        // It did not end by itself, so the hard limit ended it.
        Some(Signal::KILL) if is_out_of_time => Error::ProcessorLimit { seconds },
        // It aborts itself when it gets no memory, and the system kills when there is none left for anybody.
        Some(Signal::ABORT | Signal::KILL) => Error::Memory,
        _ => Error::Crashed,
    }
}

impl Error {
    /// Whether the worker gave up, and not on the document.
    fn is_of_the_worker(&self) -> bool {
        matches!(self, Error::TimeLimit(_) | Error::ProcessorLimit { .. } | Error::Memory | Error::Crashed)
    }

    /// A word that stays the same, for programs.
    pub fn kind(&self) -> &str {
        match self {
            Error::Document { kind, .. } => kind,
            Error::Ocr(_) => "ocr_failed",
            Error::TimeLimit(_) => "time_limit",
            Error::ProcessorLimit { .. } => "processor_limit",
            Error::Memory => "memory_limit",
            Error::Crashed => "worker_crashed",
            Error::Start(_) => "worker_not_started",
        }
    }
}

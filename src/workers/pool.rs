//! A few workers, used in turn and replaced when they crash or have read enough.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use corbie_extract::{Document, Format, Options, Page, Summary};
use rustix::process::Signal;
use tokio::process::ChildStdout;
use tokio::sync::Semaphore;

use super::message::{Job, LARGEST_DOCUMENT, Said};
use super::process::Worker;
use crate::config::documents as config;
use crate::locked::locked;

/// The workers of one program. Cheap to clone; all clones are the same. They are started when they are needed.
#[derive(Debug, Clone)]
pub struct Pool(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    settings: config::Documents,
    room: Semaphore,
    idle: Mutex<Vec<Worker>>,
}

/// A document that was read.
#[derive(Debug)]
pub struct Read {
    pub document: Document,
    /// Why it ended before all pages were done, if it did.
    pub partial: Option<Error>,
}

/// What is told while a document is read.
#[derive(Debug, Clone, Copy)]
pub enum Told {
    /// How many pages there are.
    Pages(u32),
    /// So many are done.
    Done(u32),
}

/// Why there is no document, or not all of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The document is at fault; the worker says how.
    #[error("{message}")]
    Document { kind: String, message: String },
    #[error("reading took longer than {0:?}; raise `documents.timeout`, or split the file")]
    TimeLimit(Duration),
    #[error("reading took more of a processor than it may; raise `documents.cpu`, or split the file")]
    ProcessorLimit,
    #[error("reading ended for want of memory; raise `documents.memory`, or split the file")]
    Memory,
    #[error("the process that read the file ended in a way nobody expected; try again, or split the file")]
    Crashed,
    #[error("no process to read documents in could be started: {0}")]
    Start(String),
}

/// After so many documents a worker is replaced: what one of them may have left behind is gone with it.
const JOBS: usize = 64;
/// After a document of more bytes it is replaced too: it may keep the memory that took.
const SMALL: usize = 8 << 20;

impl Pool {
    pub fn new(settings: config::Documents) -> Pool {
        let room = Semaphore::new(settings.workers());
        Pool(Arc::new(Shared { settings, room, idle: Mutex::default() }))
    }

    /// A worker that has nothing to do. One that was ended while it waited is forgotten.
    fn waiting(&self) -> Option<Worker> {
        let mut idle = locked(&self.0.idle);
        std::iter::from_fn(|| idle.pop()).find_map(|mut worker| worker.is_there().then_some(worker))
    }

    /// Reads a document; `named` is what its name says it is. Dropping the future ends the work.
    pub async fn read(
        &self,
        bytes: &[u8],
        named: Option<Format>,
        options: &Options,
        mut tell: impl FnMut(Told),
    ) -> Result<Read, Error> {
        let Shared { settings, room, idle } = &*self.0;
        let _room = room.acquire().await.map_err(|error| Error::Start(error.to_string()))?;
        let mut worker = match self.waiting() {
            Some(worker) => worker,
            None => Worker::start(settings.memory()).map_err(|error| Error::Start(error.to_string()))?,
        };
        let job = Job {
            named,
            full: options.full,
            limits: options.limits.clone(),
            cpu_seconds: settings.cpu.get().as_secs().max(1),
            length: bytes.len() as u64,
        };
        let mut reading = Reading::default();
        let timeout = settings.timeout.get();
        let result = tokio::time::timeout(timeout, reading.follow(&mut worker, &job, bytes, &mut tell)).await;
        let result = match result {
            Ok(Ok(result)) => {
                worker.jobs += 1;
                if worker.jobs < JOBS && bytes.len() < SMALL {
                    locked(idle).push(worker);
                }
                result
            }
            Ok(Err(_)) => Err(how_it_ended(&mut worker).await),
            Err(_) => Err(Error::TimeLimit(timeout)),
        };
        reading.end(named, result)
    }
}

/// What has been said of a document so far.
#[derive(Debug, Default)]
struct Reading {
    format: Option<Format>,
    pages: Vec<Page>,
}

impl Reading {
    /// Hands the document over and listens to the end of it.
    async fn follow(
        &mut self,
        worker: &mut Worker,
        job: &Job,
        bytes: &[u8],
        tell: &mut impl FnMut(Told),
    ) -> io::Result<Result<Summary, Error>> {
        let (stdin, stdout) = worker.ends();
        let (summary, ()) = tokio::try_join!(self.listen(stdout, tell), Worker::give(stdin, job, bytes))?;
        Ok(summary)
    }

    async fn listen(
        &mut self,
        stdout: &mut ChildStdout,
        tell: &mut impl FnMut(Told),
    ) -> io::Result<Result<Summary, Error>> {
        let mut heard = 0;
        loop {
            let (said, length) = Worker::hear(stdout).await?;
            heard += length;
            if heard > LARGEST_DOCUMENT {
                return Err(io::ErrorKind::InvalidData.into());
            }
            match said {
                Said::Ready => {}
                Said::Unfit { why } => return Ok(Err(Error::Start(why))),
                Said::Began { format } => self.format = Some(format),
                Said::Pages { count } => tell(Told::Pages(count)),
                Said::Page { page } => {
                    self.pages.push(page);
                    tell(Told::Done(u32::try_from(self.pages.len()).unwrap_or(u32::MAX)));
                }
                Said::Done { summary } => return Ok(Ok(summary)),
                Said::Failed { kind, message } => return Ok(Err(Error::Document { kind, message })),
            }
        }
    }

    /// The document, or as much of it as there is.
    fn end(self, named: Option<Format>, result: Result<Summary, Error>) -> Result<Read, Error> {
        let (summary, partial) = match result {
            Ok(summary) => (summary, None),
            Err(error) if self.pages.is_empty() => return Err(error),
            Err(error) => (Summary::default(), Some(error)),
        };
        let Summary { metadata, method, warnings } = summary;
        let format = self.format.or(named).unwrap_or(Format::Text);
        Ok(Read { document: Document { format, pages: self.pages, metadata, method, warnings }, partial })
    }
}

/// Why a worker stopped speaking in the middle of a document.
async fn how_it_ended(worker: &mut Worker) -> Error {
    use std::os::unix::process::ExitStatusExt;
    let ended = tokio::time::timeout(Duration::from_secs(1), worker.ended()).await;
    let signal = ended.ok().and_then(|status| Signal::from_named_raw(status.ok()?.signal()?));
    match signal {
        Some(Signal::XCPU) => Error::ProcessorLimit,
        // It aborts itself when it gets no memory, and the system kills when there is none left for anybody.
        Some(Signal::ABORT | Signal::KILL) => Error::Memory,
        _ => Error::Crashed,
    }
}

impl Error {
    /// A word that stays the same, for programs.
    pub fn kind(&self) -> &str {
        match self {
            Error::Document { kind, .. } => kind,
            Error::TimeLimit(_) => "time_limit",
            Error::ProcessorLimit => "processor_limit",
            Error::Memory => "memory_limit",
            Error::Crashed => "worker_crashed",
            Error::Start(_) => "worker_not_started",
        }
    }
}

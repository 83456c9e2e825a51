//! The thread that owns the model, and the one that looks whether it comes back.
//!
//! Nobody can stop a thread. One that is stuck in a model is left behind with all that waited for it, and ends should it
//! ever come back.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use corbie_infer::{Embedder, Embedding, Purpose, Tokens};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::metrics::Metrics;
use super::{Error, Loaded, Open};
use crate::config::inference as config;
use crate::locked::locked;
use crate::supervised::{self, Name};

/// The way to one owner. Cheap to clone; all clones are the same.
#[derive(Debug, Clone)]
pub(super) struct Owner {
    jobs: mpsc::Sender<Job>,
    /// How many texts may wait. Closed when it is given up: what its jobs take never comes back.
    room: Arc<Semaphore>,
    given_up: CancellationToken,
    limit: Duration,
}

/// What an owner is given.
pub(super) struct Model {
    pub(super) open: Open,
    pub(super) settings: config::Inference,
    pub(super) loaded: Arc<Mutex<Option<Loaded>>>,
    pub(super) metrics: Metrics,
}

/// Some texts of one caller.
#[derive(Debug)]
struct Job {
    texts: Arc<[String]>,
    purpose: Purpose,
    done: Vec<Embedding>,
    reply: oneshot::Sender<Result<Vec<Embedding>, Error>>,
    /// The model is at some of them.
    has_its_turn: Arc<AtomicBool>,
    /// Held while the texts wait, given back with the reply.
    _room: OwnedSemaphorePermit,
}

/// How many texts of one caller are run before the next caller has a turn.
const SHARE: usize = 8;
/// How many texts are run together.
const BATCH: usize = 32;
/// So often is looked whether the model goes on, within the time it has. What counts are looks and not the clock: a
/// program that was stopped for an hour has not looked for an hour.
const LOOKS: u32 = 8;

impl Owner {
    /// `stuck` counts those that were given up and have not come back.
    pub(super) fn start(model: Model, stuck: Arc<AtomicUsize>) -> io::Result<Owner> {
        // Never full: a job holds room for its texts until it is done.
        let (jobs, incoming) = mpsc::channel(model.settings.max_waiting);
        let room = Arc::new(Semaphore::new(model.settings.max_waiting));
        let owner = Owner { jobs, room, given_up: CancellationToken::new(), limit: model.settings.timeout.get() };
        let turns = Arc::new(AtomicU64::new(0));
        let (works, ended) = channel::<Infallible>();
        let watch = Watch {
            turns: turns.clone(),
            room: owner.room.clone(),
            given_up: owner.given_up.clone(),
            stuck: stuck.clone(),
        };
        let limit = owner.limit;
        thread::Builder::new().name("inference-watch".into()).spawn(move || watch.look(&ended, limit))?;
        let working = Working { model, turns, given_up: owner.given_up.clone(), embedder: None };
        thread::Builder::new().name("inference".into()).spawn(move || {
            let given_up = working.given_up.clone();
            working.work(incoming);
            if given_up.is_cancelled() {
                stuck.fetch_sub(1, Ordering::Relaxed);
                tracing::warn!("the embedding model that was given up has come back, and is let go");
            }
            drop(works);
        })?;
        Ok(owner)
    }

    pub(super) fn is_there(&self) -> bool {
        !self.jobs.is_closed() && !self.given_up.is_cancelled()
    }

    /// How many more texts may wait.
    pub(super) fn room(&self) -> usize {
        self.room.available_permits()
    }

    /// Embeds texts. None where it was given up before it came to them.
    pub(super) async fn embed(&self, texts: Arc<[String]>, purpose: Purpose) -> Option<Result<Vec<Embedding>, Error>> {
        let needed = u32::try_from(texts.len()).unwrap_or(u32::MAX);
        let room = self.room.clone().acquire_many_owned(needed).await.ok()?;
        let (reply, answer) = oneshot::channel();
        let has_its_turn = Arc::new(AtomicBool::new(false));
        let done = Vec::with_capacity(texts.len());
        let job = Job { texts, purpose, done, reply, has_its_turn: has_its_turn.clone(), _room: room };
        if self.jobs.send(job).await.is_err() {
            return (!self.given_up.is_cancelled()).then_some(Err(Error::Stopped));
        }
        tokio::select! {
            biased;
            answer = answer => Some(answer.unwrap_or(Err(Error::Stopped))),
            () = self.given_up.cancelled() => {
                has_its_turn.load(Ordering::Relaxed).then_some(Err(Error::Stuck(self.limit)))
            }
        }
    }
}

/// Looks whether a model comes back.
struct Watch {
    /// One more when the model is used and one more when it is done: as long as it is odd, the model is at work.
    turns: Arc<AtomicU64>,
    room: Arc<Semaphore>,
    given_up: CancellationToken,
    stuck: Arc<AtomicUsize>,
}

impl Watch {
    /// Looks until the owner has ended, or is given up.
    fn look(&self, ended: &Receiver<Infallible>, limit: Duration) {
        let (mut seen, mut looks) = (0, 0);
        // Nothing is ever sent: it breaks off.
        while ended.recv_timeout(limit / LOOKS) == Err(RecvTimeoutError::Timeout) {
            let now = self.turns.load(Ordering::Relaxed);
            let is_at_the_same = now == seen && now % 2 == 1;
            (seen, looks) = (now, if is_at_the_same { looks + 1 } else { 0 });
            if looks == LOOKS {
                return self.give_up(limit);
            }
        }
    }

    fn give_up(&self, limit: Duration) {
        self.stuck.fetch_add(1, Ordering::Relaxed);
        supervised::note(Name("embedding model"));
        tracing::error!(?limit, "the embedding model does not come back, and is given up");
        self.given_up.cancel();
        self.room.close();
    }
}

/// The thread that owns the model.
struct Working {
    model: Model,
    turns: Arc<AtomicU64>,
    given_up: CancellationToken,
    embedder: Option<Embedder>,
}

impl Working {
    /// Works until nobody can ask any more, or until it is given up.
    fn work(mut self, mut incoming: mpsc::Receiver<Job>) {
        let mut waiting = VecDeque::new();
        while !self.given_up.is_cancelled() {
            if waiting.is_empty() {
                match incoming.blocking_recv() {
                    Some(job) => waiting.push_back(job),
                    None => return,
                }
            }
            while let Ok(job) = incoming.try_recv() {
                waiting.push_back(job);
            }
            self.model.metrics.waiting.set(waiting.len() as i64);
            let started = Instant::now();
            self.turn(&mut waiting);
            let took = started.elapsed().as_secs_f64();
            self.model.metrics.busy_seconds.inc_by(took);
            self.model.metrics.batch_seconds.0.observe(took);
            self.model.metrics.waiting.set(waiting.len() as i64);
        }
    }

    /// Runs the next few texts of the callers that have waited longest.
    fn turn(&mut self, waiting: &mut VecDeque<Job>) {
        let mut together = Vec::new();
        let mut texts: Vec<Tokens> = Vec::new();
        while texts.len() < BATCH {
            let Some(job) = waiting.pop_front() else { break };
            if job.reply.is_closed() {
                self.model.metrics.abandoned.inc();
                continue;
            }
            job.has_its_turn.store(true, Ordering::Relaxed);
            match self.read(&job, BATCH - texts.len()) {
                Ok(tokens) => {
                    together.push((job, tokens.len()));
                    texts.extend(tokens);
                }
                Err(error) => {
                    let panicked = matches!(error, Error::Stopped);
                    drop(job.reply.send(Err(error)));
                    if panicked {
                        // The model is loaded anew, and another one would make nothing of these tokens.
                        for (job, _) in together.into_iter().rev() {
                            job.has_its_turn.store(false, Ordering::Relaxed);
                            waiting.push_front(job);
                        }
                        return;
                    }
                }
            }
        }
        if texts.is_empty() {
            return;
        }
        let several = together.len() > 1;
        let mut vectors = self.run(&texts).map(Vec::into_iter);
        for (job, count) in together {
            let share = match &mut vectors {
                Ok(vectors) => Ok(vectors.by_ref().take(count).collect()),
                // Without the others' texts, only the caller fails whose text it was.
                Err(_) if several => self.alone(&job, count),
                Err(error) => Err(error.clone().counted_from(job.done.len())),
            };
            waiting.extend(self.settle(job, share));
        }
    }

    /// Embeds a caller's next texts apart from everyone else's. They are read again, as the model may be a new one.
    fn alone(&mut self, job: &Job, count: usize) -> Result<Vec<Embedding>, Error> {
        let texts = self.read(job, count)?;
        self.run(&texts).map_err(|error| error.counted_from(job.done.len()))
    }

    /// Runs the model. It has its time for each text and not for all of them: a large one may well need minutes for a
    /// batch.
    fn run(&mut self, texts: &[Tokens]) -> Result<Vec<Embedding>, Error> {
        let turns = self.turns.clone();
        // Two, so that it is seen at work as before.
        let goes_on = move || {
            turns.fetch_add(2, Ordering::Relaxed);
        };
        self.contained(|embedder| embedder.run_telling(texts, &goes_on))
    }

    /// Adds vectors to those a caller has. It is answered once they are all there; until then, its job comes back.
    fn settle(&self, mut job: Job, share: Result<Vec<Embedding>, Error>) -> Option<Job> {
        match share {
            Ok(vectors) => job.done.extend(vectors),
            Err(error) => {
                let _ = job.reply.send(Err(error));
                return None;
            }
        }
        if job.done.len() < job.texts.len() {
            job.has_its_turn.store(false, Ordering::Relaxed);
            return Some(job);
        }
        self.model.metrics.texts.inc_by(job.done.len() as u64);
        self.model.metrics.tokens.inc_by(job.done.iter().map(|done| done.tokens as u64).sum());
        self.model.metrics.truncated.inc_by(job.done.iter().filter(|done| done.truncated).count() as u64);
        if job.reply.send(Ok(job.done)).is_err() {
            self.model.metrics.abandoned.inc();
        }
        None
    }

    /// The tokens of a caller's next texts.
    fn read(&mut self, job: &Job, most: usize) -> Result<Vec<Tokens>, Error> {
        let next = job.texts.iter().enumerate().skip(job.done.len()).take(most.min(SHARE));
        self.contained(|embedder| next.map(|(index, text)| embedder.read(text, job.purpose, index)).collect())
    }

    /// Uses the model, which is loaded at first. A panic in it fails this one use; the model is then loaded anew.
    fn contained<T>(&mut self, run: impl FnOnce(&Embedder) -> Result<T, corbie_infer::Error>) -> Result<T, Error> {
        if self.given_up.is_cancelled() {
            return Err(Error::Stopped);
        }
        let (settings, facts, embedder) = (&self.model.settings, &self.model.loaded, &mut self.embedder);
        let (open, given_up) = (&self.model.open, &self.given_up);
        self.turns.fetch_add(1, Ordering::Relaxed);
        let ran = catch_unwind(AssertUnwindSafe(|| {
            let embedder = match embedder {
                Some(embedder) => embedder,
                none => {
                    let started = Instant::now();
                    let opened = none.insert(open(settings)?);
                    tracing::debug!(model = %opened.id(), milliseconds = started.elapsed().as_millis(), "model loaded");
                    let mut facts = locked(facts);
                    // Another one is in use by now, and may be another model.
                    if !given_up.is_cancelled() {
                        *facts = Some(Loaded {
                            id: opened.id().clone(),
                            dimension: opened.dimension(),
                            max_tokens: opened.max_tokens(),
                            english_only: opened.is_english_only(),
                            tokenizer: opened.tokenizer(),
                        });
                    }
                    opened
                }
            };
            run(embedder)
        }));
        self.turns.fetch_add(1, Ordering::Relaxed);
        match ran {
            Ok(result) => result.map_err(Error::from),
            Err(_) => {
                self.embedder = None;
                tracing::error!("the embedding model panicked");
                Err(Error::Stopped)
            }
        }
    }
}

//! Dedicated model thread and its watchdog.
//!
//! A thread cannot be killed. A hanging thread is abandoned together with its queue, and exits if it ever returns.

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

/// Handle of a model thread. Cheap to clone; all clones share one thread.
#[derive(Debug, Clone)]
pub(super) struct Owner {
    jobs: mpsc::Sender<Job>,
    /// Queue capacity in texts. Closed when the thread is abandoned: its permits are never released.
    room: Arc<Semaphore>,
    given_up: CancellationToken,
    limit: Duration,
}

/// Dependencies of a model thread.
pub(super) struct Model {
    pub(super) open: Open,
    pub(super) settings: config::Inference,
    pub(super) loaded: Arc<Mutex<Option<Loaded>>>,
    pub(super) metrics: Metrics,
}

/// A batch of texts from one caller.
#[derive(Debug)]
struct Job {
    texts: Arc<[String]>,
    purpose: Purpose,
    done: Vec<Embedding>,
    reply: oneshot::Sender<Result<Vec<Embedding>, Error>>,
    /// Whether the model is processing some of the texts.
    has_its_turn: Arc<AtomicBool>,
    /// Held while the texts are queued, released with the reply.
    _room: OwnedSemaphorePermit,
}

/// Texts of one caller per scheduling round (round robin).
const SHARE: usize = 8;
/// Maximum number of texts per model batch.
const BATCH: usize = 32;
/// Watchdog checks per timeout. The watchdog counts checks, not wall-clock time: a process suspended for an hour made
/// no checks in that hour.
const LOOKS: u32 = 8;

impl Owner {
    /// `stuck` counts abandoned threads that have not returned.
    pub(super) fn start(model: Model, stuck: Arc<AtomicUsize>) -> io::Result<Owner> {
        // Never full: a job holds queue permits for its texts until it is done.
        let (jobs, incoming) = mpsc::channel(model.settings.max_queued);
        let room = Arc::new(Semaphore::new(model.settings.max_queued));
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

    /// Remaining queue capacity in texts.
    pub(super) fn room(&self) -> usize {
        self.room.available_permits()
    }

    /// Embeds texts. Returns `None` if the thread was abandoned before it started on them.
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

/// Watchdog of the model thread.
struct Watch {
    /// Incremented when a model call starts and when it ends: odd while the model is running.
    turns: Arc<AtomicU64>,
    room: Arc<Semaphore>,
    given_up: CancellationToken,
    stuck: Arc<AtomicUsize>,
}

impl Watch {
    /// Runs until the model thread ends or is abandoned.
    fn look(&self, ended: &Receiver<Infallible>, limit: Duration) {
        let (mut seen, mut looks) = (0, 0);
        // No message is ever sent; the channel disconnects.
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
        supervised::note(Name("embedding_model"));
        tracing::error!(?limit, "the embedding model does not come back, and is given up");
        self.given_up.cancel();
        self.room.close();
    }
}

/// State of the model thread.
struct Working {
    model: Model,
    turns: Arc<AtomicU64>,
    given_up: CancellationToken,
    embedder: Option<Embedder>,
}

impl Working {
    /// Runs until all handles are dropped or the thread is abandoned.
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

    /// Processes the next texts of the callers that have waited longest.
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
                        // The model will be reloaded, and these tokens may not fit the new one.
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
                // Retry separately, so that only the caller with the bad text fails.
                Err(_) if several => self.alone(&job, count),
                Err(error) => Err(error.clone().counted_from(job.done.len())),
            };
            waiting.extend(self.settle(job, share));
        }
    }

    /// Embeds a caller's next texts separately. They are tokenized again, because the model may have been reloaded.
    fn alone(&mut self, job: &Job, count: usize) -> Result<Vec<Embedding>, Error> {
        let texts = self.read(job, count)?;
        self.run(&texts).map_err(|error| error.counted_from(job.done.len()))
    }

    /// Runs the model. The timeout applies per text, not per batch: a large model may need minutes for a batch.
    fn run(&mut self, texts: &[Tokens]) -> Result<Vec<Embedding>, Error> {
        let turns = self.turns.clone();
        // Adds two, so that the counter stays odd while the model is running.
        let goes_on = move || {
            turns.fetch_add(2, Ordering::Relaxed);
        };
        self.contained(|embedder| embedder.run_telling(texts, &goes_on))
    }

    /// Adds vectors to a job. Replies once all are done; until then the job is returned to the queue.
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

    /// Tokenizes a caller's next texts.
    fn read(&mut self, job: &Job, most: usize) -> Result<Vec<Tokens>, Error> {
        let next = job.texts.iter().enumerate().skip(job.done.len()).take(most.min(SHARE));
        self.contained(|embedder| next.map(|(index, text)| embedder.read(text, job.purpose, index)).collect())
    }

    /// Runs a closure with the model, loading it on first use. A panic fails only this call; the model is then
    /// reloaded.
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
                    // After abandonment another thread is in use, possibly with another model.
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

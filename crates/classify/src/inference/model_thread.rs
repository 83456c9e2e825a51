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

use corbie_infer::{Embedder, Embedding, Purpose, TokenizedText};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::metrics::Metrics;
use super::{Error, LoadedModel, ModelLoader};
use corbie_config::inference as config;
use corbie_util::lock::lock;
use corbie_util::supervisor::{self, TaskName};

/// Handle of a model thread. Cheap to clone; all clones share one thread.
#[derive(Debug, Clone)]
pub(super) struct ModelThread {
    jobs: mpsc::Sender<Job>,
    /// Queue capacity in texts. Closed when the thread is abandoned: its permits are never released.
    capacity: Arc<Semaphore>,
    abandoned: CancellationToken,
    timeout: Duration,
}

/// Dependencies of a model thread.
pub(super) struct ModelThreadContext {
    pub(super) loader: ModelLoader,
    pub(super) settings: config::Inference,
    pub(super) loaded: Arc<Mutex<Option<LoadedModel>>>,
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
    is_running: Arc<AtomicBool>,
    /// Held while the texts are queued, released with the reply.
    _room: OwnedSemaphorePermit,
}

/// Texts of one caller per scheduling round (round robin).
const TEXTS_PER_CALLER: usize = 8;
/// Maximum number of texts per model batch.
const MAX_BATCH: usize = 32;
/// Watchdog checks per timeout. The watchdog counts checks, not wall-clock time: a process suspended for an hour made
/// no checks in that hour.
const CHECKS_PER_TIMEOUT: u32 = 8;

impl ModelThread {
    /// `stuck` counts abandoned threads that have not returned.
    pub(super) fn start(model: ModelThreadContext, stuck: Arc<AtomicUsize>) -> io::Result<ModelThread> {
        // Never full: a job holds queue permits for its texts until it is done.
        let (jobs, incoming) = mpsc::channel(model.settings.max_queued);
        let room = Arc::new(Semaphore::new(model.settings.max_queued));
        let owner = ModelThread {
            jobs,
            capacity: room,
            abandoned: CancellationToken::new(),
            timeout: model.settings.timeout.get(),
        };
        let turns = Arc::new(AtomicU64::new(0));
        let (works, ended) = channel::<Infallible>();
        let watch = Watchdog {
            activity: turns.clone(),
            capacity: owner.capacity.clone(),
            abandoned: owner.abandoned.clone(),
            stuck: stuck.clone(),
        };
        let limit = owner.timeout;
        thread::Builder::new().name("inference-watch".into()).spawn(move || watch.run(&ended, limit))?;
        let working = ModelWorker { model, activity: turns, abandoned: owner.abandoned.clone(), embedder: None };
        thread::Builder::new().name("inference".into()).spawn(move || {
            let given_up = working.abandoned.clone();
            working.run_loop(incoming);
            if given_up.is_cancelled() {
                stuck.fetch_sub(1, Ordering::Relaxed);
                tracing::warn!("abandoned embedding model thread finished; exiting it");
            }
            drop(works);
        })?;
        Ok(owner)
    }

    pub(super) fn is_alive(&self) -> bool {
        !self.jobs.is_closed() && !self.abandoned.is_cancelled()
    }

    /// Remaining queue capacity in texts.
    pub(super) fn available_capacity(&self) -> usize {
        self.capacity.available_permits()
    }

    /// Embeds texts. Returns `None` if the thread was abandoned before it started on them.
    pub(super) async fn embed(&self, texts: Arc<[String]>, purpose: Purpose) -> Option<Result<Vec<Embedding>, Error>> {
        let needed = u32::try_from(texts.len()).unwrap_or(u32::MAX);
        let room = self.capacity.clone().acquire_many_owned(needed).await.ok()?;
        let (reply, answer) = oneshot::channel();
        let has_its_turn = Arc::new(AtomicBool::new(false));
        let done = Vec::with_capacity(texts.len());
        let job = Job { texts, purpose, done, reply, is_running: has_its_turn.clone(), _room: room };
        if self.jobs.send(job).await.is_err() {
            return (!self.abandoned.is_cancelled()).then_some(Err(Error::Stopped));
        }
        tokio::select! {
            biased;
            answer = answer => Some(answer.unwrap_or(Err(Error::Stopped))),
            () = self.abandoned.cancelled() => {
                has_its_turn.load(Ordering::Relaxed).then_some(Err(Error::ModelTimeout(self.timeout)))
            }
        }
    }
}

/// Watchdog of the model thread.
struct Watchdog {
    /// Incremented when a model call starts and when it ends: odd while the model is running.
    activity: Arc<AtomicU64>,
    capacity: Arc<Semaphore>,
    abandoned: CancellationToken,
    stuck: Arc<AtomicUsize>,
}

impl Watchdog {
    /// Runs until the model thread ends or is abandoned.
    fn run(&self, ended: &Receiver<Infallible>, limit: Duration) {
        let (mut seen, mut looks) = (0, 0);
        // No message is ever sent; the channel disconnects.
        while ended.recv_timeout(limit / CHECKS_PER_TIMEOUT) == Err(RecvTimeoutError::Timeout) {
            let now = self.activity.load(Ordering::Relaxed);
            let is_at_the_same = now == seen && now % 2 == 1;
            (seen, looks) = (now, if is_at_the_same { looks + 1 } else { 0 });
            if looks == CHECKS_PER_TIMEOUT {
                return self.abandon(limit);
            }
        }
    }

    fn abandon(&self, limit: Duration) {
        self.stuck.fetch_add(1, Ordering::Relaxed);
        supervisor::record_restart(TaskName("embedding_model"));
        tracing::error!(?limit, "embedding model timed out; abandoning its thread");
        self.abandoned.cancel();
        self.capacity.close();
    }
}

/// State of the model thread.
struct ModelWorker {
    model: ModelThreadContext,
    activity: Arc<AtomicU64>,
    abandoned: CancellationToken,
    embedder: Option<Embedder>,
}

impl ModelWorker {
    /// Runs until all handles are dropped or the thread is abandoned.
    fn run_loop(mut self, mut incoming: mpsc::Receiver<Job>) {
        let mut waiting = VecDeque::new();
        while !self.abandoned.is_cancelled() {
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
            self.run_batch(&mut waiting);
            let took = started.elapsed().as_secs_f64();
            self.model.metrics.busy_seconds.inc_by(took);
            self.model.metrics.batch_seconds.0.observe(took);
            self.model.metrics.waiting.set(waiting.len() as i64);
        }
    }

    /// Processes the next texts of the callers that have waited longest.
    fn run_batch(&mut self, waiting: &mut VecDeque<Job>) {
        let mut together = Vec::new();
        let mut texts: Vec<TokenizedText> = Vec::new();
        while texts.len() < MAX_BATCH {
            let Some(job) = waiting.pop_front() else { break };
            if job.reply.is_closed() {
                self.model.metrics.abandoned.inc();
                continue;
            }
            job.is_running.store(true, Ordering::Relaxed);
            match self.tokenize(&job, MAX_BATCH - texts.len()) {
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
                            job.is_running.store(false, Ordering::Relaxed);
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
        let mut vectors = self.run_model(&texts).map(Vec::into_iter);
        for (job, count) in together {
            let share = match &mut vectors {
                Ok(vectors) => Ok(vectors.by_ref().take(count).collect()),
                // Retry separately, so that only the caller with the bad text fails.
                Err(_) if several => self.embed_separately(&job, count),
                Err(error) => Err(error.clone().with_index_offset(job.done.len())),
            };
            waiting.extend(self.complete_share(job, share));
        }
    }

    /// Embeds a caller's next texts separately. They are tokenized again, because the model may have been reloaded.
    fn embed_separately(&mut self, job: &Job, count: usize) -> Result<Vec<Embedding>, Error> {
        let texts = self.tokenize(job, count)?;
        self.run_model(&texts).map_err(|error| error.with_index_offset(job.done.len()))
    }

    /// Runs the model. The timeout applies per text, not per batch: a large model may need minutes for a batch.
    fn run_model(&mut self, texts: &[TokenizedText]) -> Result<Vec<Embedding>, Error> {
        let turns = self.activity.clone();
        // Adds two, so that the counter stays odd while the model is running.
        let goes_on = move || {
            turns.fetch_add(2, Ordering::Relaxed);
        };
        self.with_embedder(|embedder| embedder.run_with_progress(texts, &goes_on))
    }

    /// Adds vectors to a job. Replies once all are done; until then the job is returned to the queue.
    fn complete_share(&self, mut job: Job, share: Result<Vec<Embedding>, Error>) -> Option<Job> {
        match share {
            Ok(vectors) => job.done.extend(vectors),
            Err(error) => {
                let _ = job.reply.send(Err(error));
                return None;
            }
        }
        if job.done.len() < job.texts.len() {
            job.is_running.store(false, Ordering::Relaxed);
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
    fn tokenize(&mut self, job: &Job, most: usize) -> Result<Vec<TokenizedText>, Error> {
        let next = job.texts.iter().enumerate().skip(job.done.len()).take(most.min(TEXTS_PER_CALLER));
        self.with_embedder(|embedder| next.map(|(index, text)| embedder.tokenize(text, job.purpose, index)).collect())
    }

    /// Runs a closure with the model, loading it on first use. A panic fails only this call; the model is then
    /// reloaded.
    fn with_embedder<T>(&mut self, run: impl FnOnce(&Embedder) -> Result<T, corbie_infer::Error>) -> Result<T, Error> {
        if self.abandoned.is_cancelled() {
            return Err(Error::Stopped);
        }
        let (settings, facts, embedder) = (&self.model.settings, &self.model.loaded, &mut self.embedder);
        let (open, given_up) = (&self.model.loader, &self.abandoned);
        self.activity.fetch_add(1, Ordering::Relaxed);
        let ran = catch_unwind(AssertUnwindSafe(|| {
            let embedder = match embedder {
                Some(embedder) => embedder,
                none => {
                    let started = Instant::now();
                    let opened = none.insert(open(settings)?);
                    tracing::debug!(model = %opened.id(), milliseconds = started.elapsed().as_millis(), "model loaded");
                    let mut facts = lock(facts);
                    // After abandonment another thread is in use, possibly with another model.
                    if !given_up.is_cancelled() {
                        *facts = Some(LoadedModel {
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
        self.activity.fetch_add(1, Ordering::Relaxed);
        match ran {
            Ok(result) => result.map_err(Error::from),
            Err(_) => {
                self.embedder = None;
                tracing::error!("embedding model panicked");
                Err(Error::Stopped)
            }
        }
    }
}

//! One thread owns the models; everyone else hands it texts and waits.
//!
//! The model is loaded with the first text, and kept. Texts of several callers are run together, a few of each at a
//! time, so that a search does not wait behind a thousand pages. A caller that goes away takes its texts with it, and
//! one whose texts the model fails on fails alone.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use corbie_infer::{Embedder, Embedding, FolderOptions, ModelId, Pooling, Purpose, Tokenizer, Tokens};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use quick_cache::sync::Cache;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use crate::config::inference as config;
use crate::gauges;
use crate::locked::locked;

/// The way to the models. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Inference(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    settings: config::Inference,
    room: Arc<Semaphore>,
    /// Started with the first text: a server that is never asked for a vector pays nothing.
    jobs: Mutex<Option<mpsc::Sender<Job>>>,
    loaded: Arc<Mutex<Option<Loaded>>>,
    metrics: Metrics,
    /// The last queries, where one question is looked at more than once.
    queries: Option<Cache<Box<str>, Embedding>>,
}

/// What is known of the embedding model once it is loaded.
#[derive(Debug, Clone)]
pub struct Loaded {
    pub id: ModelId,
    pub dimension: usize,
    pub max_tokens: usize,
    pub english_only: bool,
    pub tokenizer: Tokenizer,
}

/// What the models did, for operators.
#[derive(Debug, Clone, Default)]
struct Metrics {
    texts: Counter,
    tokens: Counter,
    truncated: Counter,
    abandoned: Counter,
    busy_seconds: Counter<f64, std::sync::atomic::AtomicU64>,
    waiting: Gauge,
    batch_seconds: Seconds,
}

/// How long the models took for texts that were run together.
#[derive(Debug, Clone)]
struct Seconds(Histogram);

impl Default for Seconds {
    fn default() -> Seconds {
        Seconds(Histogram::new([0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0]))
    }
}

/// Some texts of one caller, at most a [`PIECE`].
struct Job {
    texts: Vec<String>,
    purpose: Purpose,
    done: Vec<Embedding>,
    reply: oneshot::Sender<Result<Vec<Embedding>, Error>>,
    /// Held while the texts wait, given back with the reply.
    _room: OwnedSemaphorePermit,
}

#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// Something is wrong with a text; the caller can mend it. `index` is its place among the caller's texts.
    #[error("text {} {reason}", index + 1)]
    Text { index: usize, reason: String },
    /// The model made nothing usable of a text; it is the model that is at fault.
    #[error("`{model}` gave no usable vector for text {}: {reason}", index + 1)]
    Unusable { model: String, index: usize, reason: &'static str },
    #[error("{0}")]
    Model(String),
    /// Vectors of two models mean nothing to each other.
    #[error("the model was replaced while the texts were embedded; embed them again")]
    Replaced,
    #[error("the model stopped unexpectedly; the texts have no vectors")]
    Stopped,
}

/// How many texts of one caller are run before the next caller has a turn.
const SHARE: usize = 8;
/// How many texts are run together.
const BATCH: usize = 32;
/// How many texts of one caller wait for the model at a time. The others wait with their caller, so that nobody takes
/// all the room.
const PIECE: usize = 64;

/// How many queries are remembered; each takes a few kilobytes.
const QUERIES: usize = 256;

impl Inference {
    pub fn new(settings: config::Inference) -> Inference {
        Inference::with(settings, None)
    }

    /// One that does not embed a query twice in a row: who looks at it first has it made for the others.
    pub fn remembering(settings: config::Inference) -> Inference {
        Inference::with(settings, Some(Cache::new(QUERIES)))
    }

    fn with(settings: config::Inference, queries: Option<Cache<Box<str>, Embedding>>) -> Inference {
        let room = Arc::new(Semaphore::new(settings.max_waiting));
        let (jobs, loaded, metrics) = (Mutex::default(), Arc::default(), Metrics::default());
        warn_of_unused(&settings);
        if settings.device == config::Device::Gpu {
            tracing::warn!(
                "`inference.device` is `gpu`, but this build has no runtime for one; models run on the processor"
            );
        }
        Inference(Arc::new(Shared { settings, room, jobs, loaded, metrics, queries }))
    }

    /// Embeds texts, in their order. Dropping the future takes back what has not been run.
    pub async fn embed(&self, texts: Vec<String>, purpose: Purpose) -> Result<Vec<Embedding>, Error> {
        let (Some(queries), Purpose::Query, [query]) = (&self.0.queries, purpose, texts.as_slice()) else {
            return self.embed_anew(texts, purpose).await;
        };
        if let Some(embedding) = queries.get(query.as_str()) {
            return Ok(vec![embedding]);
        }
        let query = query.as_str().into();
        let embedded = self.embed_anew(texts, purpose).await?;
        embedded.iter().for_each(|embedding| queries.insert(Box::clone(&query), embedding.clone()));
        Ok(embedded)
    }

    async fn embed_anew(&self, texts: Vec<String>, purpose: Purpose) -> Result<Vec<Embedding>, Error> {
        let most = PIECE.min(self.0.settings.max_waiting / 4).max(1);
        let mut done: Vec<Embedding> = Vec::with_capacity(texts.len());
        let mut texts = texts.into_iter();
        loop {
            let piece: Vec<String> = texts.by_ref().take(most).collect();
            if piece.is_empty() {
                return Ok(done);
            }
            let before = done.len();
            done.extend(self.embed_piece(piece, purpose).await.map_err(|error| error.counted_from(before))?);
            // A model that panicked is loaded anew, and its folder may hold another one by then.
            if done[before..].iter().any(|embedding| embedding.model != done[0].model) {
                return Err(Error::Replaced);
            }
        }
    }

    async fn embed_piece(&self, texts: Vec<String>, purpose: Purpose) -> Result<Vec<Embedding>, Error> {
        let needed = u32::try_from(texts.len()).unwrap_or(u32::MAX);
        let room = self.0.room.clone().acquire_many_owned(needed).await.map_err(|_| Error::Stopped)?;
        let (reply, answer) = oneshot::channel();
        let job = Job { done: Vec::with_capacity(texts.len()), texts, purpose, reply, _room: room };
        self.jobs()?.send(job).await.map_err(|_| Error::Stopped)?;
        answer.await.map_err(|_| Error::Stopped)?
    }

    /// The id of the model, which is loaded if that is the only way to know.
    pub async fn model(&self) -> Result<ModelId, Error> {
        if self.0.settings.embedding.path.is_none() {
            return Ok(builtin());
        }
        self.load().await.map(|loaded| loaded.id)
    }

    /// The id of the model and how many numbers its vectors have; it is loaded if that is the only way to know.
    pub async fn shape(&self) -> Result<(ModelId, usize), Error> {
        if self.0.settings.embedding.path.is_none() {
            return Ok((builtin(), corbie_infer::builtin_models()[0].dimension));
        }
        self.load().await.map(|loaded| (loaded.id, loaded.dimension))
    }

    /// What is known of the model, which is loaded if it was not.
    pub async fn load(&self) -> Result<Loaded, Error> {
        if let Some(loaded) = self.loaded() {
            return Ok(loaded);
        }
        self.embed_anew(vec!["a".into()], Purpose::Query).await?;
        self.loaded().ok_or(Error::Stopped)
    }

    /// The model that will be used, before it is loaded.
    pub fn planned(&self) -> String {
        let path = self.0.settings.embedding.path.as_ref();
        path.map_or_else(|| builtin().to_string(), |path| name_of(path))
    }

    pub fn threads(&self) -> usize {
        self.0.settings.threads()
    }

    /// The model in use; none before the first text.
    pub fn loaded(&self) -> Option<Loaded> {
        locked(&self.0.loaded).clone()
    }

    /// Adds what the models did to a server's metrics.
    pub fn register(&self, registry: &mut Registry) {
        let metrics = &self.0.metrics;
        let registry = registry.sub_registry_with_prefix("inference");
        registry.register("texts", "Texts turned into vectors", metrics.texts.clone());
        registry.register("tokens", "Tokens read by the embedding model", metrics.tokens.clone());
        registry.register("truncated", "Texts longer than the model reads", metrics.truncated.clone());
        registry.register("abandoned", "Callers that left before their vectors were ready", metrics.abandoned.clone());
        registry.register("busy_seconds", "Time the models were running", metrics.busy_seconds.clone());
        registry.register(
            "batch_seconds",
            "How long texts took that were run together",
            metrics.batch_seconds.0.clone(),
        );
        let inference = self.clone();
        let texts = move || gauges::single(inference.texts_waiting());
        gauges::register(registry, "texts_waiting", "Texts that wait for the models, or that they are at", texts);
        registry.register("waiting", "Callers waiting for vectors", metrics.waiting.clone());
    }

    /// Texts that wait for the models, or that they are at.
    pub fn texts_waiting(&self) -> usize {
        self.0.settings.max_waiting.saturating_sub(self.0.room.available_permits())
    }

    fn jobs(&self) -> Result<mpsc::Sender<Job>, Error> {
        let shared = &*self.0;
        let mut jobs = locked(&shared.jobs);
        if let Some(jobs) = jobs.as_ref().filter(|jobs| !jobs.is_closed()) {
            return Ok(jobs.clone());
        }
        // Never full: a job holds room for its texts until it is done.
        let (sender, incoming) = mpsc::channel(shared.settings.max_waiting);
        let (settings, loaded, metrics) = (shared.settings.clone(), shared.loaded.clone(), shared.metrics.clone());
        let owner = Owner { settings, loaded, metrics, embedder: None };
        // Kept only once the thread runs: where none can be started now, a later text tries again.
        std::thread::Builder::new()
            .name("inference".into())
            .spawn(move || owner.work(incoming))
            .map_err(|error| Error::Model(format!("no thread could be started for the model: {error}")))?;
        Ok(jobs.insert(sender).clone())
    }
}

/// The name of a model's folder. Where it lies is nobody's business.
pub fn name_of(path: &std::path::Path) -> String {
    path.file_name().map_or_else(|| "model".into(), |name| name.to_string_lossy().into_owned())
}

fn builtin() -> ModelId {
    ModelId::from(corbie_infer::builtin_models()[0].id.as_str())
}

/// Settings that are there for a model of one's own do nothing to the model inside, which people should hear of.
pub(crate) fn warn_of_unused(settings: &config::Inference) {
    let unused = settings.embedding.unused();
    if !unused.is_empty() {
        let keys: Vec<String> = unused.iter().map(|key| format!("`inference.embedding.{key}`")).collect();
        tracing::warn!("without `inference.embedding.path`, nothing is done with {}", keys.join(", "));
    }
}

/// Loads the model that the settings name.
pub fn open(settings: &config::Inference) -> Result<Embedder, corbie_infer::Error> {
    let model = &settings.embedding;
    let Some(path) = &model.path else { return Embedder::builtin(settings.threads()) };
    let options = FolderOptions {
        pooling: model.pooling.map(|pooling| match pooling {
            config::Pooling::Mean => Pooling::Mean,
            config::Pooling::Cls => Pooling::Cls,
            config::Pooling::LastToken => Pooling::LastToken,
        }),
        query_prefix: model.query_prefix.clone(),
        passage_prefix: model.passage_prefix.clone(),
        max_tokens: model.max_tokens,
    };
    Embedder::open(path, &options, settings.threads())
}

/// The thread that owns the model.
struct Owner {
    settings: config::Inference,
    loaded: Arc<Mutex<Option<Loaded>>>,
    metrics: Metrics,
    embedder: Option<Embedder>,
}

impl Owner {
    /// Works until nobody can ask any more.
    fn work(mut self, mut incoming: mpsc::Receiver<Job>) {
        let mut waiting = VecDeque::new();
        loop {
            if waiting.is_empty() {
                match incoming.blocking_recv() {
                    Some(job) => waiting.push_back(job),
                    None => return,
                }
            }
            while let Ok(job) = incoming.try_recv() {
                waiting.push_back(job);
            }
            self.metrics.waiting.set(waiting.len() as i64);
            let started = Instant::now();
            self.turn(&mut waiting);
            let took = started.elapsed().as_secs_f64();
            self.metrics.busy_seconds.inc_by(took);
            self.metrics.batch_seconds.0.observe(took);
            self.metrics.waiting.set(waiting.len() as i64);
        }
    }

    /// Runs the next few texts of the callers that have waited longest.
    fn turn(&mut self, waiting: &mut VecDeque<Job>) {
        let mut together = Vec::new();
        let mut texts: Vec<Tokens> = Vec::new();
        while texts.len() < BATCH {
            let Some(job) = waiting.pop_front() else { break };
            if job.reply.is_closed() {
                self.metrics.abandoned.inc();
                continue;
            }
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
                        together.into_iter().rev().for_each(|(job, _)| waiting.push_front(job));
                        return;
                    }
                }
            }
        }
        if texts.is_empty() {
            return;
        }
        let several = together.len() > 1;
        let mut vectors = self.contained(|embedder| embedder.run(&texts)).map(Vec::into_iter);
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
        self.contained(|embedder| embedder.run(&texts)).map_err(|error| error.counted_from(job.done.len()))
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
            return Some(job);
        }
        self.metrics.texts.inc_by(job.done.len() as u64);
        self.metrics.tokens.inc_by(job.done.iter().map(|done| done.tokens as u64).sum());
        self.metrics.truncated.inc_by(job.done.iter().filter(|done| done.truncated).count() as u64);
        if job.reply.send(Ok(job.done)).is_err() {
            self.metrics.abandoned.inc();
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
        let (settings, facts, embedder) = (&self.settings, &self.loaded, &mut self.embedder);
        let ran = catch_unwind(AssertUnwindSafe(|| {
            let embedder = match embedder {
                Some(embedder) => embedder,
                none => {
                    let started = Instant::now();
                    let opened = none.insert(open(settings)?);
                    tracing::debug!(model = %opened.id(), milliseconds = started.elapsed().as_millis(), "model loaded");
                    *locked(facts) = Some(Loaded {
                        id: opened.id().clone(),
                        dimension: opened.dimension(),
                        max_tokens: opened.max_tokens(),
                        english_only: opened.is_english_only(),
                        tokenizer: opened.tokenizer(),
                    });
                    opened
                }
            };
            run(embedder)
        }));
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

impl Error {
    /// The same error where `before` texts came earlier.
    pub fn counted_from(self, before: usize) -> Error {
        match self {
            Error::Text { index, reason } => Error::Text { index: before + index, reason },
            Error::Unusable { model, index, reason } => Error::Unusable { model, index: before + index, reason },
            Error::Model(_) | Error::Replaced | Error::Stopped => self,
        }
    }
}

impl From<corbie_infer::Error> for Error {
    fn from(error: corbie_infer::Error) -> Error {
        match (error.about_a_text(), error) {
            (Some((index, reason)), _) => Error::Text { index, reason },
            (None, corbie_infer::Error::Unusable { model, index, reason }) => Error::Unusable { model, index, reason },
            (None, error) => Error::Model(error.to_string()),
        }
    }
}

//! Embedding inference: a dedicated thread owns the model, and callers queue texts for it.
//!
//! The model is loaded by the first text and stays loaded. Texts of several callers share a batch, a few of each at a
//! time, so that a search does not wait behind a thousand pages. A caller that disconnects cancels its texts, and a bad
//! text fails only its own caller. A hanging model is abandoned and replaced by a new instance.

mod metrics;
mod model_executor;
mod model_thread;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use corbie_infer::{Embedder, Embedding, ModelDirOptions, ModelId, Pooling, Purpose, Tokenizer};
use prometheus_client::registry::Registry;
use quick_cache::sync::Cache;

use corbie_config::inference as config;
use corbie_util::lazy_gauge;
use corbie_util::lock::lock;
use metrics::Metrics;
pub use model_executor::CustomModelExecutor;
use model_thread::{ModelThread, ModelThreadContext};

/// Handle of the embedding model. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Inference(Arc<Inner>);

struct Inner {
    settings: config::Inference,
    loader: ModelLoader,
    /// Started by the first text: a server that never embeds pays nothing.
    thread: Mutex<Option<ModelThread>>,
    /// Abandoned threads that have not returned.
    stuck: Arc<AtomicUsize>,
    executor: CustomModelExecutor,
    loaded: Arc<Mutex<Option<LoadedModel>>>,
    metrics: Metrics,
    /// Cache of recent query embeddings, for queries that are embedded more than once.
    queries: Option<Cache<Box<str>, Embedding>>,
}

/// Loads a model.
pub type ModelLoader = Arc<dyn Fn(&config::Inference) -> Result<Embedder, corbie_infer::Error> + Send + Sync>;

/// Properties of the loaded embedding model.
#[derive(Debug, Clone)]
pub struct LoadedModel {
    pub id: ModelId,
    pub dimension: usize,
    pub max_tokens: usize,
    pub english_only: bool,
    pub tokenizer: Tokenizer,
}

#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The text is invalid; the caller can correct it. `index` is its position in the caller's batch.
    #[error("text {} {reason}", index + 1)]
    Text { index: usize, reason: String },
    /// The model returned no usable vector; this is a fault of the model.
    #[error("`{model}` returned an invalid vector for text {}: {reason}", index + 1)]
    InvalidVector { model: String, index: usize, reason: &'static str },
    #[error("{0}")]
    Model(String),
    /// Vectors of different models are not comparable.
    #[error("the model was replaced while texts were being embedded; try again")]
    ModelReplaced,
    #[error("the embedding model stopped unexpectedly; try again")]
    Stopped,
    #[error("timed out after {0:?} waiting for the embedding model (queue is full); try again")]
    QueueTimeout(Duration),
    /// The model was abandoned.
    #[error("embedding timed out after {0:?}; try again, or increase `inference.timeout`")]
    ModelTimeout(Duration),
}

/// Maximum number of queued texts per caller. The rest waits at the caller, so that no caller fills the queue.
const MAX_QUEUED_PER_CALLER: usize = 64;

/// Maximum number of abandoned threads. Each keeps its model in memory, so the number must be bounded.
const MAX_STUCK_THREADS: usize = 3;

/// Capacity of the query cache; each entry takes a few kilobytes.
const QUERY_CACHE_CAPACITY: usize = 256;

impl Inference {
    pub fn new(settings: config::Inference) -> Inference {
        Inference::with(settings, Arc::new(load_model), None)
    }

    /// Uses a custom model loader.
    pub fn with_loader(settings: config::Inference, open: ModelLoader) -> Inference {
        Inference::with(settings, open, None)
    }

    /// Uses a query cache, so that consecutive stages do not embed the same query twice.
    pub fn with_query_cache(settings: config::Inference) -> Inference {
        Inference::with(settings, Arc::new(load_model), Some(Cache::new(QUERY_CACHE_CAPACITY)))
    }

    fn with(settings: config::Inference, open: ModelLoader, queries: Option<Cache<Box<str>, Embedding>>) -> Inference {
        let (owner, stuck) = (Mutex::default(), Arc::default());
        let (aside, loaded, metrics) =
            (CustomModelExecutor::new(settings.timeout.get()), Arc::default(), Metrics::default());
        warn_unused_settings(&settings);
        if settings.device == config::Device::Gpu {
            tracing::warn!("`inference.device` is `gpu`, but this build has no GPU runtime; using the CPU");
        }
        Inference(Arc::new(Inner {
            settings,
            loader: open,
            thread: owner,
            stuck,
            executor: aside,
            loaded,
            metrics,
            queries,
        }))
    }

    /// Embeds texts, in order. Dropping the future cancels texts that have not run.
    pub async fn embed(&self, texts: Vec<String>, purpose: Purpose) -> Result<Vec<Embedding>, Error> {
        let (Some(queries), Purpose::Query, [query]) = (&self.0.queries, purpose, texts.as_slice()) else {
            return self.embed_uncached(texts, purpose).await;
        };
        if let Some(embedding) = queries.get(query.as_str()) {
            return Ok(vec![embedding]);
        }
        let query = query.as_str().into();
        let embedded = self.embed_uncached(texts, purpose).await?;
        embedded.iter().for_each(|embedding| queries.insert(Box::clone(&query), embedding.clone()));
        Ok(embedded)
    }

    async fn embed_uncached(&self, texts: Vec<String>, purpose: Purpose) -> Result<Vec<Embedding>, Error> {
        let most = MAX_QUEUED_PER_CALLER.min(self.0.settings.max_queued / 4).max(1);
        let mut done: Vec<Embedding> = Vec::with_capacity(texts.len());
        let mut texts = texts.into_iter();
        loop {
            let piece: Vec<String> = texts.by_ref().take(most).collect();
            if piece.is_empty() {
                return Ok(done);
            }
            let before = done.len();
            done.extend(self.embed_batch(piece, purpose).await.map_err(|error| error.with_index_offset(before))?);
            // A model that panicked is reloaded, and its folder may contain another model by then.
            if done[before..].iter().any(|embedding| embedding.model != done[0].model) {
                return Err(Error::ModelReplaced);
            }
        }
    }

    async fn embed_batch(&self, texts: Vec<String>, purpose: Purpose) -> Result<Vec<Embedding>, Error> {
        let texts: Arc<[String]> = texts.into();
        loop {
            // Texts that were still queued when the model hung move to the next thread; the number of threads is
            // bounded.
            if let Some(embedded) = self.model_thread()?.embed(texts.clone(), purpose).await {
                return embedded;
            }
        }
    }

    /// The model's id. Loads the model only if necessary.
    pub async fn model(&self) -> Result<ModelId, Error> {
        if self.0.settings.embedding.path.is_none() {
            return Ok(builtin_model_id());
        }
        self.load().await.map(|loaded| loaded.id)
    }

    /// The model's id and vector dimension. Loads the model only if necessary.
    pub async fn id_and_dimension(&self) -> Result<(ModelId, usize), Error> {
        if self.0.settings.embedding.path.is_none() {
            return Ok((builtin_model_id(), corbie_infer::builtin_models()[0].dimension));
        }
        self.load().await.map(|loaded| (loaded.id, loaded.dimension))
    }

    /// The properties of the model; loads it if necessary.
    pub async fn load(&self) -> Result<LoadedModel, Error> {
        if let Some(loaded) = self.loaded() {
            return Ok(loaded);
        }
        self.embed_uncached(vec!["a".into()], Purpose::Query).await?;
        self.loaded().ok_or(Error::Stopped)
    }

    /// The configured model, before it is loaded.
    pub fn configured_model(&self) -> String {
        let path = self.0.settings.embedding.path.as_ref();
        path.map_or_else(|| builtin_model_id().to_string(), |path| config::model_dir_name(path))
    }

    pub fn threads(&self) -> usize {
        self.0.settings.threads()
    }

    /// Executor for custom classifiers.
    pub fn executor(&self) -> &CustomModelExecutor {
        &self.0.executor
    }

    /// The model in use; `None` before the first text.
    pub fn loaded(&self) -> Option<LoadedModel> {
        lock(&self.0.loaded).clone()
    }

    /// Registers the inference metrics.
    pub fn register(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("inference");
        self.0.metrics.register(registry);
        let inference = self.clone();
        let texts = move || lazy_gauge::single(inference.texts_waiting());
        lazy_gauge::register(registry, "texts_waiting", "Texts queued or in progress", texts);
        let (stuck, aside) = (self.0.stuck.clone(), self.0.executor.clone());
        let stuck = move || lazy_gauge::single(stuck.load(Ordering::Relaxed) + aside.stuck_calls());
        lazy_gauge::register(
            registry,
            "stuck_threads",
            "Model threads abandoned after a timeout and still running",
            stuck,
        );
    }

    /// Number of queued and running texts.
    pub fn texts_waiting(&self) -> usize {
        let room = lock(&self.0.thread).as_ref().map_or(self.0.settings.max_queued, ModelThread::available_capacity);
        self.0.settings.max_queued.saturating_sub(room)
    }

    /// The current model thread; started if there is none.
    fn model_thread(&self) -> Result<ModelThread, Error> {
        let shared = &self.0;
        let mut owner = lock(&shared.thread);
        if let Some(owner) = owner.as_ref().filter(|owner| owner.is_alive()) {
            return Ok(owner.clone());
        }
        // Dropped first: a thread that returned while it was being abandoned exits once no handle is left.
        *owner = None;
        if shared.stuck.load(Ordering::Relaxed) >= MAX_STUCK_THREADS {
            return Err(Error::ModelTimeout(shared.settings.timeout.get()));
        }
        let model = ModelThreadContext {
            loader: shared.loader.clone(),
            settings: shared.settings.clone(),
            loaded: shared.loaded.clone(),
            metrics: shared.metrics.clone(),
        };
        // Stored only after its threads have started: if that fails, a later text retries.
        let started = ModelThread::start(model, shared.stuck.clone())
            .map_err(|error| Error::Model(format!("cannot start a thread for the embedding model: {error}")))?;
        Ok(owner.insert(started).clone())
    }

    /// The health message, if a thread is stuck in the model.
    pub fn impairment(&self) -> Option<String> {
        let limit = self.0.settings.timeout.get();
        match self.0.stuck.load(Ordering::Relaxed) {
            0 => None,
            MAX_STUCK_THREADS.. => Some(format!(
                "the embedding model timed out {MAX_STUCK_THREADS} times after {limit:?} and is disabled until one of \
                 its threads finishes; restart the server to retry"
            )),
            stuck => Some(format!(
                "the embedding model timed out {stuck} times after {limit:?}; another instance of it is in use"
            )),
        }
    }
}

fn builtin_model_id() -> ModelId {
    ModelId::from(corbie_infer::builtin_models()[0].id.as_str())
}

/// Warns about settings for custom models that have no effect on the built-in model.
pub fn warn_unused_settings(settings: &config::Inference) {
    let unused = settings.embedding.unused();
    if !unused.is_empty() {
        let keys: Vec<String> = unused.iter().map(|key| format!("`inference.embedding.{key}`")).collect();
        tracing::warn!("{} has no effect without `inference.embedding.path`", keys.join(", "));
    }
}

/// Loads the configured model.
pub fn load_model(settings: &config::Inference) -> Result<Embedder, corbie_infer::Error> {
    let model = &settings.embedding;
    let Some(path) = &model.path else { return Embedder::builtin(settings.threads()) };
    let options = ModelDirOptions {
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

impl Error {
    /// Shifts the text index by `before`.
    pub fn with_index_offset(self, before: usize) -> Error {
        match self {
            Error::Text { index, reason } => Error::Text { index: before + index, reason },
            Error::InvalidVector { model, index, reason } => {
                Error::InvalidVector { model, index: before + index, reason }
            }
            Error::Model(_)
            | Error::ModelReplaced
            | Error::Stopped
            | Error::QueueTimeout(_)
            | Error::ModelTimeout(_) => self,
        }
    }
}

impl From<corbie_infer::Error> for Error {
    fn from(error: corbie_infer::Error) -> Error {
        match (error.invalid_text(), error) {
            (Some((index, reason)), _) => Error::Text { index, reason },
            (None, corbie_infer::Error::Unusable { model, index, reason }) => {
                Error::InvalidVector { model, index, reason }
            }
            (None, error) => Error::Model(error.to_string()),
        }
    }
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Shared").field("settings", &self.settings).finish_non_exhaustive()
    }
}

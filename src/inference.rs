//! Embedding inference: a dedicated thread owns the model, and callers queue texts for it.
//!
//! The model is loaded by the first text and stays loaded. Texts of several callers share a batch, a few of each at a
//! time, so that a search does not wait behind a thousand pages. A caller that disconnects cancels its texts, and a bad
//! text fails only its own caller. A hanging model is abandoned and replaced by a new instance.

mod aside;
mod metrics;
mod owner;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use corbie_infer::{Embedder, Embedding, FolderOptions, ModelId, Pooling, Purpose, Tokenizer};
use prometheus_client::registry::Registry;
use quick_cache::sync::Cache;

use crate::config::inference as config;
use crate::gauges;
use crate::locked::locked;
pub use aside::Aside;
use metrics::Metrics;
use owner::{Model, Owner};

/// Handle of the embedding model. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Inference(Arc<Shared>);

struct Shared {
    settings: config::Inference,
    open: Open,
    /// Started by the first text: a server that never embeds pays nothing.
    owner: Mutex<Option<Owner>>,
    /// Abandoned threads that have not returned.
    stuck: Arc<AtomicUsize>,
    aside: Aside,
    loaded: Arc<Mutex<Option<Loaded>>>,
    metrics: Metrics,
    /// Cache of recent query embeddings, for queries that are embedded more than once.
    queries: Option<Cache<Box<str>, Embedding>>,
}

/// Loads a model.
pub type Open = Arc<dyn Fn(&config::Inference) -> Result<Embedder, corbie_infer::Error> + Send + Sync>;

/// Properties of the loaded embedding model.
#[derive(Debug, Clone)]
pub struct Loaded {
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
    #[error("`{model}` gave no usable vector for text {}: {reason}", index + 1)]
    Unusable { model: String, index: usize, reason: &'static str },
    #[error("{0}")]
    Model(String),
    /// Vectors of different models are not comparable.
    #[error("the model was replaced while the texts were embedded; embed them again")]
    Replaced,
    #[error("the model stopped unexpectedly; the texts have no vectors")]
    Stopped,
    #[error("no turn at the model came within {0:?}, so many others wait for it; try again")]
    Crowded(Duration),
    /// The model was abandoned.
    #[error("the model was at the texts for {0:?} and did not come back; try again, or raise `inference.timeout`")]
    Stuck(Duration),
}

/// Maximum number of queued texts per caller. The rest waits at the caller, so that no caller fills the queue.
const PIECE: usize = 64;

/// Maximum number of abandoned threads. Each keeps its model in memory, so the number must be bounded.
const MOST_STUCK: usize = 3;

/// Capacity of the query cache; each entry takes a few kilobytes.
const QUERIES: usize = 256;

impl Inference {
    pub fn new(settings: config::Inference) -> Inference {
        Inference::with(settings, Arc::new(open), None)
    }

    /// Uses a custom model loader.
    pub fn opening(settings: config::Inference, open: Open) -> Inference {
        Inference::with(settings, open, None)
    }

    /// Uses a query cache, so that consecutive stages do not embed the same query twice.
    pub fn remembering(settings: config::Inference) -> Inference {
        Inference::with(settings, Arc::new(open), Some(Cache::new(QUERIES)))
    }

    fn with(settings: config::Inference, open: Open, queries: Option<Cache<Box<str>, Embedding>>) -> Inference {
        let (owner, stuck) = (Mutex::default(), Arc::default());
        let (aside, loaded, metrics) = (Aside::new(settings.timeout.get()), Arc::default(), Metrics::default());
        warn_of_unused(&settings);
        if settings.device == config::Device::Gpu {
            tracing::warn!(
                "`inference.device` is `gpu`, but this build has no runtime for one; models run on the processor"
            );
        }
        Inference(Arc::new(Shared { settings, open, owner, stuck, aside, loaded, metrics, queries }))
    }

    /// Embeds texts, in order. Dropping the future cancels texts that have not run.
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
        let most = PIECE.min(self.0.settings.max_queued / 4).max(1);
        let mut done: Vec<Embedding> = Vec::with_capacity(texts.len());
        let mut texts = texts.into_iter();
        loop {
            let piece: Vec<String> = texts.by_ref().take(most).collect();
            if piece.is_empty() {
                return Ok(done);
            }
            let before = done.len();
            done.extend(self.embed_piece(piece, purpose).await.map_err(|error| error.counted_from(before))?);
            // A model that panicked is reloaded, and its folder may contain another model by then.
            if done[before..].iter().any(|embedding| embedding.model != done[0].model) {
                return Err(Error::Replaced);
            }
        }
    }

    async fn embed_piece(&self, texts: Vec<String>, purpose: Purpose) -> Result<Vec<Embedding>, Error> {
        let texts: Arc<[String]> = texts.into();
        loop {
            // Texts that were still queued when the model hung move to the next thread; the number of threads is
            // bounded.
            if let Some(embedded) = self.owner()?.embed(texts.clone(), purpose).await {
                return embedded;
            }
        }
    }

    /// The model's id. Loads the model only if necessary.
    pub async fn model(&self) -> Result<ModelId, Error> {
        if self.0.settings.embedding.path.is_none() {
            return Ok(builtin());
        }
        self.load().await.map(|loaded| loaded.id)
    }

    /// The model's id and vector dimension. Loads the model only if necessary.
    pub async fn shape(&self) -> Result<(ModelId, usize), Error> {
        if self.0.settings.embedding.path.is_none() {
            return Ok((builtin(), corbie_infer::builtin_models()[0].dimension));
        }
        self.load().await.map(|loaded| (loaded.id, loaded.dimension))
    }

    /// The properties of the model; loads it if necessary.
    pub async fn load(&self) -> Result<Loaded, Error> {
        if let Some(loaded) = self.loaded() {
            return Ok(loaded);
        }
        self.embed_anew(vec!["a".into()], Purpose::Query).await?;
        self.loaded().ok_or(Error::Stopped)
    }

    /// The configured model, before it is loaded.
    pub fn planned(&self) -> String {
        let path = self.0.settings.embedding.path.as_ref();
        path.map_or_else(|| builtin().to_string(), |path| name_of(path))
    }

    pub fn threads(&self) -> usize {
        self.0.settings.threads()
    }

    /// Executor for custom classifiers.
    pub fn aside(&self) -> &Aside {
        &self.0.aside
    }

    /// The model in use; `None` before the first text.
    pub fn loaded(&self) -> Option<Loaded> {
        locked(&self.0.loaded).clone()
    }

    /// Registers the inference metrics.
    pub fn register(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("inference");
        self.0.metrics.register(registry);
        let inference = self.clone();
        let texts = move || gauges::single(inference.texts_waiting());
        gauges::register(registry, "texts_waiting", "Texts queued or in progress", texts);
        let (stuck, aside) = (self.0.stuck.clone(), self.0.aside.clone());
        let stuck = move || gauges::single(stuck.load(Ordering::Relaxed) + aside.stuck());
        gauges::register(registry, "stuck_threads", "Model threads abandoned after a timeout and still running", stuck);
    }

    /// Number of queued and running texts.
    pub fn texts_waiting(&self) -> usize {
        let room = locked(&self.0.owner).as_ref().map_or(self.0.settings.max_queued, Owner::room);
        self.0.settings.max_queued.saturating_sub(room)
    }

    /// The current model thread; started if there is none.
    fn owner(&self) -> Result<Owner, Error> {
        let shared = &self.0;
        let mut owner = locked(&shared.owner);
        if let Some(owner) = owner.as_ref().filter(|owner| owner.is_there()) {
            return Ok(owner.clone());
        }
        // Dropped first: a thread that returned while it was being abandoned exits once no handle is left.
        *owner = None;
        if shared.stuck.load(Ordering::Relaxed) >= MOST_STUCK {
            return Err(Error::Stuck(shared.settings.timeout.get()));
        }
        let model = Model {
            open: shared.open.clone(),
            settings: shared.settings.clone(),
            loaded: shared.loaded.clone(),
            metrics: shared.metrics.clone(),
        };
        // Stored only after its threads have started: if that fails, a later text retries.
        let started = Owner::start(model, shared.stuck.clone())
            .map_err(|error| Error::Model(format!("no thread could be started for the model: {error}")))?;
        Ok(owner.insert(started).clone())
    }

    /// The health message, if a thread is stuck in the model.
    pub fn impaired(&self) -> Option<String> {
        let limit = self.0.settings.timeout.get();
        match self.0.stuck.load(Ordering::Relaxed) {
            0 => None,
            MOST_STUCK.. => Some(format!(
                "the embedding model did not come back within {limit:?}, {MOST_STUCK} times; it is not tried again before \
                 one of them does, or the next start"
            )),
            stuck => Some(format!(
                "the embedding model did not come back within {limit:?}, {stuck} times; another has its place"
            )),
        }
    }
}

/// The name of a model's folder, without its path, which must not be disclosed.
pub fn name_of(path: &std::path::Path) -> String {
    path.file_name().map_or_else(|| "model".into(), |name| name.to_string_lossy().into_owned())
}

fn builtin() -> ModelId {
    ModelId::from(corbie_infer::builtin_models()[0].id.as_str())
}

/// Warns about settings for custom models that have no effect on the built-in model.
pub(crate) fn warn_of_unused(settings: &config::Inference) {
    let unused = settings.embedding.unused();
    if !unused.is_empty() {
        let keys: Vec<String> = unused.iter().map(|key| format!("`inference.embedding.{key}`")).collect();
        tracing::warn!("without `inference.embedding.path`, nothing is done with {}", keys.join(", "));
    }
}

/// Loads the configured model.
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

impl Error {
    /// Shifts the text index by `before`.
    pub fn counted_from(self, before: usize) -> Error {
        match self {
            Error::Text { index, reason } => Error::Text { index: before + index, reason },
            Error::Unusable { model, index, reason } => Error::Unusable { model, index: before + index, reason },
            Error::Model(_) | Error::Replaced | Error::Stopped | Error::Crowded(_) | Error::Stuck(_) => self,
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

impl std::fmt::Debug for Shared {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Shared").field("settings", &self.settings).finish_non_exhaustive()
    }
}

//! One thread owns the models; everyone else hands it texts and waits.
//!
//! The model is loaded with the first text, and kept. Texts of several callers are run together, a few of each at a
//! time, so that a search does not wait behind a thousand pages. A caller that goes away takes its texts with it, and
//! one whose texts the model fails on fails alone. A model that does not come back is given up, and another takes its
//! place.

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

/// The way to the models. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Inference(Arc<Shared>);

struct Shared {
    settings: config::Inference,
    open: Open,
    /// Started with the first text: a server that is never asked for a vector pays nothing.
    owner: Mutex<Option<Owner>>,
    /// How many were given up and have not come back.
    stuck: Arc<AtomicUsize>,
    aside: Aside,
    loaded: Arc<Mutex<Option<Loaded>>>,
    metrics: Metrics,
    /// The last queries, where one question is looked at more than once.
    queries: Option<Cache<Box<str>, Embedding>>,
}

/// Loads a model.
pub type Open = Arc<dyn Fn(&config::Inference) -> Result<Embedder, corbie_infer::Error> + Send + Sync>;

/// What is known of the embedding model once it is loaded.
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
    #[error("no turn at the model came within {0:?}, so many others wait for it; try again")]
    Crowded(Duration),
    /// The model was given up.
    #[error("the model was at the texts for {0:?} and did not come back; try again, or raise `inference.timeout`")]
    Stuck(Duration),
}

/// How many texts of one caller wait for the model at a time. The others wait with their caller, so that nobody takes
/// all the room.
const PIECE: usize = 64;

/// How many threads may be stuck in a model. Each keeps the memory of its model, so there cannot be ever more.
const MOST_STUCK: usize = 3;

/// How many queries are remembered; each takes a few kilobytes.
const QUERIES: usize = 256;

impl Inference {
    pub fn new(settings: config::Inference) -> Inference {
        Inference::with(settings, Arc::new(open), None)
    }

    /// One whose model is loaded in another way.
    pub fn opening(settings: config::Inference, open: Open) -> Inference {
        Inference::with(settings, open, None)
    }

    /// One that does not embed a query twice in a row: who looks at it first has it made for the others.
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
        let texts: Arc<[String]> = texts.into();
        loop {
            // Whoever had not had its turn when a model got stuck asks the next one; there are not many.
            if let Some(embedded) = self.owner()?.embed(texts.clone(), purpose).await {
                return embedded;
            }
        }
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

    /// Where classifiers of one's own are run.
    pub fn aside(&self) -> &Aside {
        &self.0.aside
    }

    /// The model in use; none before the first text.
    pub fn loaded(&self) -> Option<Loaded> {
        locked(&self.0.loaded).clone()
    }

    /// Adds what the models did to a server's metrics.
    pub fn register(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("inference");
        self.0.metrics.register(registry);
        let inference = self.clone();
        let texts = move || gauges::single(inference.texts_waiting());
        gauges::register(registry, "texts_waiting", "Texts that wait for the models, or that they are at", texts);
        let (stuck, aside) = (self.0.stuck.clone(), self.0.aside.clone());
        let stuck = move || gauges::single(stuck.load(Ordering::Relaxed) + aside.stuck());
        gauges::register(registry, "stuck", "Threads that were given up and have not come back", stuck);
    }

    /// Texts that wait for the models, or that they are at.
    pub fn texts_waiting(&self) -> usize {
        let room = locked(&self.0.owner).as_ref().map_or(self.0.settings.max_waiting, Owner::room);
        self.0.settings.max_waiting.saturating_sub(room)
    }

    /// Whoever owns the model now; one is started where there is none.
    fn owner(&self) -> Result<Owner, Error> {
        let shared = &self.0;
        let mut owner = locked(&shared.owner);
        if let Some(owner) = owner.as_ref().filter(|owner| owner.is_there()) {
            return Ok(owner.clone());
        }
        // Let go of first: one that came back while it was given up ends when nobody can ask it any more.
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
        // Kept only once its threads run: where none can be started now, a later text tries again.
        let started = Owner::start(model, shared.stuck.clone())
            .map_err(|error| Error::Model(format!("no thread could be started for the model: {error}")))?;
        Ok(owner.insert(started).clone())
    }

    /// What is wrong with the model, if a thread is stuck in it.
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

impl Error {
    /// The same error where `before` texts came earlier.
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

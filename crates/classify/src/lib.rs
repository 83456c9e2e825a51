//! Text classification, and a recommended model per category.
//!
//! One snapshot is live at a time: a taxonomy, the rules and the method built from it, and its cached verdicts. Listing
//! and classifying use the same snapshot, and a reload swaps it as a whole, so a class index never refers to different
//! categories (C-55, Z-7).

mod cache;
mod draft_taxonomy;
pub mod evaluate;
mod evaluation;
mod explanation;
pub mod external_classifier;
pub mod inference;
mod input;
pub mod method;
mod metrics;
pub mod model_recommendation;
pub mod reload;
pub mod rules;
mod snapshot;
pub mod taxonomy;
mod taxonomy_editor;
mod taxonomy_file_store;
mod taxonomy_publisher;
pub mod tools;
pub mod training;

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Instant;

use arc_swap::ArcSwap;
use prometheus_client::registry::Registry;
use serde_json::{Map, Value, json};
use tokio::sync::Notify;

pub use input::InvalidText;
pub use method::{ClassifierBackend, Prediction, PredictionSource};
pub use snapshot::TaxonomySnapshot;
pub use taxonomy::Taxonomy;
pub use taxonomy_editor::EditorContext;
pub use taxonomy_publisher::{EditLockError, TaxonomyEditLock, TaxonomyPublisher};

use crate::inference::Inference;
use corbie_config::ConfigError;
use corbie_config::classification as config;
use corbie_util::file_watch::FileFingerprint;
use corbie_util::lock::lock;
use method::MethodContext;
use metrics::Metrics;

/// The classifier of the process. Cheap to clone; all clones share one state.
#[derive(Debug, Clone)]
pub struct Classification(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    settings: config::Classification,
    /// The taxonomy file, if it was created while the built-in taxonomy was in use.
    created_file: OnceLock<PathBuf>,
    inference: Inference,
    snapshot: ArcSwap<TaxonomySnapshot>,
    /// Serializes reloads; classification never waits for it. Guards the stamp of the file as last read.
    reloading: tokio::sync::Mutex<Option<FileFingerprint>>,
    /// Why the current version of the file was rejected.
    rejection: Mutex<Option<String>>,
    metrics: Metrics,
    /// The category names by index, if the indices are shared with other instances.
    category_ids: Mutex<Option<Arc<[String]>>>,
    /// Signals that the file has changed.
    reload_requested: Notify,
}

/// A verdict with its text and snapshot.
#[derive(Debug, Clone)]
pub struct ClassifiedText<'a> {
    /// The normalized text.
    pub text: Cow<'a, str>,
    pub snapshot: Arc<TaxonomySnapshot>,
    pub prediction: Arc<Prediction>,
}

/// The result for each text of a batch: the normalized text with its verdict, or the error.
pub type BatchResults<'a> = Vec<Result<(Cow<'a, str>, Arc<Prediction>), InvalidText>>;

impl Classification {
    /// Reads the taxonomy. Training happens on the first text, or in [`Classification::warm_up`].
    pub fn new(settings: config::Classification, inference: Inference) -> Result<Classification, ConfigError> {
        // Taken before reading, so that a change in between is not missed.
        let stamp = FileFingerprint::of(settings.taxonomy.as_deref());
        let taxonomy = Taxonomy::open(settings.taxonomy.as_deref())?;
        Ok(Classification::with_stamp(stamp, taxonomy, settings, inference))
    }

    /// Creates a classifier for an already loaded taxonomy.
    pub fn with_taxonomy(taxonomy: Taxonomy, settings: config::Classification, inference: Inference) -> Classification {
        Classification::with_stamp(None, taxonomy, settings, inference)
    }

    fn with_stamp(
        stamp: Option<FileFingerprint>,
        taxonomy: Taxonomy,
        settings: config::Classification,
        inference: Inference,
    ) -> Classification {
        for remark in taxonomy.warnings() {
            tracing::warn!("{remark}");
        }
        let published = ArcSwap::from_pointee(TaxonomySnapshot::new(taxonomy, settings.cache_entries));
        let (reloading, metrics) = (tokio::sync::Mutex::new(stamp), Metrics::default());
        let refused = Mutex::default();
        let (places, again) = (Mutex::default(), Notify::new());
        Classification(Arc::new(Inner {
            settings,
            created_file: OnceLock::new(),
            inference,
            snapshot: published,
            reloading,
            rejection: refused,
            metrics,
            category_ids: places,
            reload_requested: again,
        }))
    }

    pub fn settings(&self) -> &config::Classification {
        &self.0.settings
    }

    /// The taxonomy file; `None` for the built-in taxonomy.
    pub(crate) fn taxonomy_file(&self) -> Option<&Path> {
        self.0.settings.taxonomy.as_deref().or_else(|| self.0.created_file.get().map(PathBuf::as_path))
    }

    /// Uses a new file instead of the built-in taxonomy from the next reload on.
    pub(crate) fn set_created_file(&self, file: PathBuf) {
        // Saves are serialized, so it is set once.
        let _ = self.0.created_file.set(file);
    }

    /// The current snapshot.
    pub fn snapshot(&self) -> Arc<TaxonomySnapshot> {
        self.0.snapshot.load_full()
    }

    /// Prepares the method, so the first text does not wait for it.
    pub async fn warm_up(&self) {
        self.snapshot().method(None, self.method_context()).await;
    }

    /// Classifies a text.
    pub async fn classify<'a>(&self, text: &'a str) -> Result<ClassifiedText<'a>, InvalidText> {
        let text = input::normalize(text, self.0.settings.max_text_length)?;
        let (published, started) = (self.snapshot(), Instant::now());
        let verdict = match published.cached(&text) {
            Some(verdict) => {
                self.0.metrics.record_cache_hit();
                verdict
            }
            None => published.classify(&text, self.method_context()).await,
        };
        self.0.metrics.record_duration(started.elapsed());
        self.0.metrics.observe(&published.taxonomy, &verdict);
        Ok(ClassifiedText { text, snapshot: published, prediction: verdict })
    }

    /// Classifies many texts with one snapshot; each invalid text fails separately.
    pub async fn classify_many<'a>(&self, texts: &'a [String]) -> (Arc<TaxonomySnapshot>, BatchResults<'a>) {
        let (published, started) = (self.snapshot(), Instant::now());
        let texts: Vec<_> = texts.iter().map(|text| input::normalize(text, self.0.settings.max_text_length)).collect();
        let fit: Vec<&str> = texts.iter().flatten().map(AsRef::as_ref).collect();
        let verdicts = published.classify_many(&fit, self.method_context()).await;
        self.0.metrics.record_duration(started.elapsed());
        for (verdict, remembered) in &verdicts {
            self.0.metrics.observe(&published.taxonomy, verdict);
            if *remembered {
                self.0.metrics.record_cache_hit();
            }
        }
        let mut verdicts = verdicts.into_iter().map(|(verdict, _)| verdict);
        let sorted = texts.into_iter().map(|fit| {
            let text = fit?;
            Ok((text, verdicts.next().expect("one result for each valid text")))
        });
        let sorted = sorted.collect();
        (published, sorted)
    }

    /// Why the file was rejected when it was last read; the previous version stays in use.
    pub(crate) fn rejection(&self) -> Option<String> {
        lock(&self.0.rejection).clone()
    }

    fn method_context(&self) -> MethodContext<'_> {
        MethodContext { settings: &self.0.settings, inference: &self.0.inference, permit: None }
    }

    /// Members of `GET /health` (T-40), and the impairment, if any.
    pub fn health(&self) -> (Map<String, Value>, Option<String>) {
        let published = self.snapshot();
        let method = published.ready_method();
        let taxonomy = &published.taxonomy;
        let model = method.as_ref().map_or_else(|| self.configured_method(), |method| method.describe());
        // Until the method is loaded, report the number of examples to be indexed.
        let indexed = match &method {
            Some(method) => method.trained().map_or(0, |learned| learned.examples().len()),
            None if self.0.settings.method == config::ClassificationMethod::Rules => 0,
            None => taxonomy.example_count(),
        };
        let members = json!({
            "categories": taxonomy.names().collect::<Vec<_>>(),
            "model": model,
            "index_size": indexed,
            "device": "cpu",
        });
        let Value::Object(mut members) = members else { unreachable!("it is an object") };
        if let Some(why) = &*lock(&self.0.rejection) {
            members.insert("taxonomy_refused".into(), why.as_str().into());
        }
        (members, published.impairment())
    }

    pub fn register(&self, registry: &mut Registry) {
        self.0.metrics.register(registry);
    }

    /// The configured method, before it is loaded.
    fn configured_method(&self) -> String {
        let settings = &self.0.settings;
        match (settings.method, &settings.model.path) {
            (config::ClassificationMethod::Rules, _) => "rules".into(),
            (config::ClassificationMethod::Model, Some(path)) => {
                format!("model:{}", corbie_config::inference::model_dir_name(path))
            }
            (method, _) => format!("{}:{}", method.as_str(), self.0.inference.configured_model()),
        }
    }
}

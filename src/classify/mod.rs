//! Text classification, and a recommended model per category.
//!
//! One snapshot is live at a time: a taxonomy, the rules and the method built from it, and its cached verdicts. Listing
//! and classifying use the same snapshot, and a reload swaps it as a whole, so a class index never refers to different
//! categories (C-55, Z-7).

pub mod advice;
mod cache;
mod candidate;
mod desk;
mod kept;
pub mod learned;
mod measure;
pub mod method;
mod metrics;
mod published;
mod reasons;
pub mod reload;
pub mod rules;
pub mod taxonomy;
mod text;
pub mod tools;
mod turns;

use std::borrow::Cow;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use arc_swap::ArcSwap;
use prometheus_client::registry::Registry;
use serde_json::{Map, Value, json};
use tokio::sync::Notify;

pub use desk::Around;
pub use method::{By, Method, Verdict};
pub use published::Published;
pub use taxonomy::Taxonomy;
pub use text::Unfit;

use crate::changes::Stamp;
use crate::config::ConfigError;
use crate::config::classification as config;
use crate::inference::{self, Inference};
use crate::locked::locked;
use method::With;
use metrics::Metrics;

/// The classifier of the process. Cheap to clone; all clones share one state.
#[derive(Debug, Clone)]
pub struct Classification(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    settings: config::Classification,
    inference: Inference,
    published: ArcSwap<Published>,
    /// Serializes reloads; classification never waits for it. Guards the stamp of the file as last read.
    reloading: tokio::sync::Mutex<Option<Stamp>>,
    /// Why the current version of the file was rejected.
    refused: Mutex<Option<String>>,
    metrics: Metrics,
    /// The category names by index, if the indices are shared with other instances.
    places: Mutex<Option<Arc<[String]>>>,
    /// Signals that the file has changed.
    again: Notify,
}

/// A verdict with its text and snapshot.
#[derive(Debug, Clone)]
pub struct Classified<'a> {
    /// The normalized text.
    pub text: Cow<'a, str>,
    pub published: Arc<Published>,
    pub verdict: Arc<Verdict>,
}

/// The result for each text of a batch: the normalized text with its verdict, or the error.
pub type Sorted<'a> = Vec<Result<(Cow<'a, str>, Arc<Verdict>), Unfit>>;

impl Classification {
    /// Reads the taxonomy. Training happens on the first text, or in [`Classification::warm`].
    pub fn new(settings: config::Classification, inference: Inference) -> Result<Classification, ConfigError> {
        // Taken before reading, so that a change in between is not missed.
        let stamp = Stamp::of(settings.taxonomy.as_deref());
        let taxonomy = Taxonomy::open(settings.taxonomy.as_deref())?;
        Ok(Classification::stamped(stamp, taxonomy, settings, inference))
    }

    /// Creates a classifier for an already loaded taxonomy.
    pub fn with(taxonomy: Taxonomy, settings: config::Classification, inference: Inference) -> Classification {
        Classification::stamped(None, taxonomy, settings, inference)
    }

    fn stamped(
        stamp: Option<Stamp>,
        taxonomy: Taxonomy,
        settings: config::Classification,
        inference: Inference,
    ) -> Classification {
        for remark in taxonomy.remarks() {
            tracing::warn!("{remark}");
        }
        let published = ArcSwap::from_pointee(Published::new(taxonomy, settings.cache_entries));
        let (reloading, metrics) = (tokio::sync::Mutex::new(stamp), Metrics::default());
        let refused = Mutex::default();
        let (places, again) = (Mutex::default(), Notify::new());
        Classification(Arc::new(Shared { settings, inference, published, reloading, refused, metrics, places, again }))
    }

    pub fn settings(&self) -> &config::Classification {
        &self.0.settings
    }

    /// The current snapshot.
    pub fn published(&self) -> Arc<Published> {
        self.0.published.load_full()
    }

    /// Prepares the method, so the first text does not wait for it.
    pub async fn warm(&self) {
        self.published().method(None, self.with_settings()).await;
    }

    /// Classifies a text.
    pub async fn classify<'a>(&self, text: &'a str) -> Result<Classified<'a>, Unfit> {
        let text = text::clean(text, self.0.settings.max_text_length)?;
        let (published, started) = (self.published(), Instant::now());
        let verdict = match published.remembered(&text) {
            Some(verdict) => {
                self.0.metrics.remembered();
                verdict
            }
            None => published.classify(&text, self.with_settings()).await,
        };
        self.0.metrics.took(started.elapsed());
        self.0.metrics.observe(&published.taxonomy, &verdict);
        Ok(Classified { text, published, verdict })
    }

    /// Classifies many texts with one snapshot; each invalid text fails separately.
    pub async fn classify_many<'a>(&self, texts: &'a [String]) -> (Arc<Published>, Sorted<'a>) {
        let (published, started) = (self.published(), Instant::now());
        let texts: Vec<_> = texts.iter().map(|text| text::clean(text, self.0.settings.max_text_length)).collect();
        let fit: Vec<&str> = texts.iter().flatten().map(AsRef::as_ref).collect();
        let verdicts = published.classify_many(&fit, self.with_settings()).await;
        self.0.metrics.took(started.elapsed());
        for (verdict, remembered) in &verdicts {
            self.0.metrics.observe(&published.taxonomy, verdict);
            if *remembered {
                self.0.metrics.remembered();
            }
        }
        let mut verdicts = verdicts.into_iter().map(|(verdict, _)| verdict);
        let sorted = texts.into_iter().map(|fit| {
            let text = fit?;
            Ok((text, verdicts.next().expect("there is one for each fit text")))
        });
        let sorted = sorted.collect();
        (published, sorted)
    }

    /// Why the file was rejected when it was last read; the previous version stays in use.
    pub(in crate::classify) fn refused(&self) -> Option<String> {
        locked(&self.0.refused).clone()
    }

    fn with_settings(&self) -> With<'_> {
        With { settings: &self.0.settings, inference: &self.0.inference, turn: None }
    }

    /// Members of `GET /health` (T-40), and the impairment, if any.
    pub fn health(&self) -> (Map<String, Value>, Option<String>) {
        let published = self.published();
        let method = published.method_now();
        let taxonomy = &published.taxonomy;
        let model = method.as_ref().map_or_else(|| self.planned(), |method| method.describe());
        // Until the method is loaded, report the number of examples to be indexed.
        let indexed = match &method {
            Some(method) => method.learned().map_or(0, |learned| learned.examples().len()),
            None if self.0.settings.method == config::Method::Rules => 0,
            None => taxonomy.example_count(),
        };
        let members = json!({
            "categories": taxonomy.names().collect::<Vec<_>>(),
            "model": model,
            "index_size": indexed,
            "device": "cpu",
        });
        let Value::Object(mut members) = members else { unreachable!("it is an object") };
        if let Some(why) = &*locked(&self.0.refused) {
            members.insert("taxonomy_refused".into(), why.as_str().into());
        }
        (members, published.impairment())
    }

    pub fn register(&self, registry: &mut Registry) {
        self.0.metrics.register(registry);
    }

    /// The configured method, before it is loaded.
    fn planned(&self) -> String {
        let settings = &self.0.settings;
        match (settings.method, &settings.model.path) {
            (config::Method::Rules, _) => "rules".into(),
            (config::Method::Model, Some(path)) => format!("model:{}", inference::name_of(path)),
            (method, _) => format!("{}:{}", method.as_str(), self.0.inference.planned()),
        }
    }
}

//! Sorts texts into categories and recommends a model for each.
//!
//! One value is published at a time: a taxonomy, the rules and the method made from it, and the answers given with it.
//! Listing and classifying read the same value, and a reload replaces it as a whole, so that a number never means one
//! category here and another there (C-55, Z-7).

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

/// The classifier of one program. Cheap to clone; all clones are the same.
#[derive(Debug, Clone)]
pub struct Classification(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    settings: config::Classification,
    inference: Inference,
    published: ArcSwap<Published>,
    /// One reload at a time; those who classify never wait for it. It guards what the file was like when it was read.
    reloading: tokio::sync::Mutex<Option<Stamp>>,
    /// Why the file as it is now was refused.
    refused: Mutex<Option<String>>,
    metrics: Metrics,
    /// The names of categories in the order of their numbers, where other instances share them.
    places: Mutex<Option<Arc<[String]>>>,
    /// Somebody knows that the file has changed.
    again: Notify,
}

/// A verdict on a text, and what it was given with.
#[derive(Debug, Clone)]
pub struct Classified<'a> {
    /// The text without what has no say in it.
    pub text: Cow<'a, str>,
    pub published: Arc<Published>,
    pub verdict: Arc<Verdict>,
}

/// What became of each of many texts: the clean text with its verdict, or why there is none.
pub type Sorted<'a> = Vec<Result<(Cow<'a, str>, Arc<Verdict>), Unfit>>;

impl Classification {
    /// Reads the taxonomy. What has to be learned is learned with the first text, or by [`Classification::warm`].
    pub fn new(settings: config::Classification, inference: Inference) -> Result<Classification, ConfigError> {
        // Before it is read: a change in between must not be missed.
        let stamp = Stamp::of(settings.taxonomy.as_deref());
        let taxonomy = Taxonomy::open(settings.taxonomy.as_deref())?;
        Ok(Classification::stamped(stamp, taxonomy, settings, inference))
    }

    /// The same for a taxonomy at hand.
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

    /// What lists and verdicts are made from at this moment.
    pub fn published(&self) -> Arc<Published> {
        self.0.published.load_full()
    }

    /// Makes ready what the first text would have to wait for.
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

    /// Classifies many texts with one published value; texts that are unfit fail alone.
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

    /// Why the file as it was read last was refused; the one before it is in use.
    pub(in crate::classify) fn refused(&self) -> Option<String> {
        locked(&self.0.refused).clone()
    }

    fn with_settings(&self) -> With<'_> {
        With { settings: &self.0.settings, inference: &self.0.inference, turn: None }
    }

    /// Members for `GET /health` (T-40), and what is impaired, if anything is.
    pub fn health(&self) -> (Map<String, Value>, Option<String>) {
        let published = self.published();
        let method = published.method_now();
        let taxonomy = &published.taxonomy;
        let model = method.as_ref().map_or_else(|| self.planned(), |method| method.describe());
        // Before anything is loaded, what will be indexed.
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

    /// The method that the settings ask for, before anything was loaded.
    fn planned(&self) -> String {
        let settings = &self.0.settings;
        match (settings.method, &settings.model.path) {
            (config::Method::Rules, _) => "rules".into(),
            (config::Method::Model, Some(path)) => format!("model:{}", inference::name_of(path)),
            (method, _) => format!("{}:{}", method.as_str(), self.0.inference.planned()),
        }
    }
}

//! Immutable snapshot of one version of the taxonomy and everything derived from it. A reload swaps the whole snapshot.

use std::sync::{Arc, Mutex, OnceLock};

use corbie_infer::Purpose;
use serde_json::{Map, Value, json};
use tokio::sync::watch;

use super::cache::PredictionCache;
use super::method::{self, ClassifierBackend, FirstStage, MethodContext, Prediction, PredictionSource};
use super::rules::RuleSet;
use super::taxonomy::Taxonomy;
use super::training::TrainedClassifier;
use crate::inference;
use corbie_config::classification as config;
use corbie_util::lock::lock;

#[derive(Debug)]
pub struct TaxonomySnapshot {
    pub taxonomy: Taxonomy,
    /// The response of `list_categories`.
    pub listing: Arc<Value>,
    rules: RuleSet,
    /// Built by the first text, so a server that never classifies does not pay for it.
    method: OnceLock<Arc<ClassifierBackend>>,
    /// Closed when the method is ready. The first caller starts the build; a caller that times out does not cancel it.
    building: Mutex<Option<watch::Receiver<()>>>,
    /// Why a fallback method is in use.
    fallback_reason: Mutex<Option<String>>,
    /// Why the last text that needed a model was classified without one.
    model_failure: Mutex<Option<String>>,
    cache: PredictionCache,
}

/// A verdict, and whether it may be cached.
struct CacheablePrediction {
    prediction: Prediction,
    is_cacheable: bool,
}

impl TaxonomySnapshot {
    pub fn new(taxonomy: Taxonomy, cache_entries: usize) -> TaxonomySnapshot {
        TaxonomySnapshot {
            listing: Arc::new(listing(&taxonomy)),
            rules: RuleSet::new(&taxonomy),
            method: OnceLock::new(),
            building: Mutex::default(),
            fallback_reason: Mutex::default(),
            model_failure: Mutex::default(),
            cache: PredictionCache::new(cache_entries),
            taxonomy,
        }
    }

    /// The method, built now if necessary. An earlier snapshot may have trained on the same examples already.
    pub(super) async fn method(
        self: &Arc<Self>,
        before: Option<Arc<TrainedClassifier>>,
        with: MethodContext<'_>,
    ) -> Arc<ClassifierBackend> {
        if let Some(method) = self.method.get() {
            return method.clone();
        }
        let mut made = {
            let mut making = lock(&self.building);
            making.get_or_insert_with(|| self.start_build(before, with)).clone()
        };
        // The channel always ends up closed, whether the build succeeded or failed.
        let _ = made.changed().await;
        self.method.get_or_init(|| Arc::new(ClassifierBackend::Rules)).clone()
    }

    /// Builds the method inline, for a snapshot that is not shared: dropping the future cancels the work.
    pub(super) async fn build(&self, before: Option<Arc<TrainedClassifier>>, with: MethodContext<'_>) {
        let (method, why) = method::build(&self.taxonomy, &self.rules, before, with).await;
        *lock(&self.fallback_reason) = why;
        let _ = self.method.set(Arc::new(method));
    }

    /// Builds the method in a background task, so that a caller's timeout does not cancel minutes of work.
    fn start_build(
        self: &Arc<Self>,
        before: Option<Arc<TrainedClassifier>>,
        with: MethodContext<'_>,
    ) -> watch::Receiver<()> {
        let (done, made) = watch::channel(());
        let (published, settings, inference) = (self.clone(), with.settings.clone(), with.inference.clone());
        tokio::spawn(async move {
            *lock(&published.fallback_reason) = Some("cannot build the classifier; falling back to rules".into());
            let with = MethodContext { settings: &settings, inference: &inference, permit: None };
            let (method, why) = method::build(&published.taxonomy, &published.rules, before, with).await;
            if let Some(why) = &why {
                tracing::error!(error = %why, method = method.describe(), "classification is impaired");
            }
            *lock(&published.fallback_reason) = why;
            let _ = published.method.set(Arc::new(method));
            drop(done);
        });
        made
    }

    /// The method, if it is ready.
    pub fn ready_method(&self) -> Option<Arc<ClassifierBackend>> {
        self.method.get().cloned()
    }

    /// Deviation from the configured method, if any.
    pub fn impairment(&self) -> Option<String> {
        if self.method.get().is_none() {
            let learning = lock(&self.building).is_some();
            return learning.then(|| "training is in progress; calls wait for it".into());
        }
        lock(&self.fallback_reason).clone().or_else(|| lock(&self.model_failure).clone())
    }

    pub(super) fn rules(&self) -> &RuleSet {
        &self.rules
    }

    pub(super) fn cached(&self, text: &str) -> Option<Arc<Prediction>> {
        self.cache.get(text)
    }

    /// Classifies a sanitized text.
    pub(super) async fn classify(self: &Arc<Self>, text: &str, with: MethodContext<'_>) -> Arc<Prediction> {
        if let Some(verdict) = self.certain_match(text, with) {
            return self.store_in_cache(text, CacheablePrediction { prediction: verdict, is_cacheable: true });
        }
        let method = self.method(None, with).await;
        let judged = match self.first_stage(&method, text).await {
            FirstStage::Decided(verdict) => CacheablePrediction { prediction: verdict, is_cacheable: true },
            FirstStage::NeedsModel => {
                self.or_fall_back_to_rules(text, method.classify_text(text.to_owned(), &self.rules).await)
            }
            FirstStage::NeedsEmbedding(mended) => {
                self.classify_one(&method, mended.as_deref().unwrap_or(text), with).await
            }
        };
        self.store_in_cache(text, judged)
    }

    /// Classifies sanitized texts and embeds the ones that need a vector in one batch. Each verdict comes with a
    /// cache-hit flag.
    pub(super) async fn classify_many(
        self: &Arc<Self>,
        texts: &[&str],
        with: MethodContext<'_>,
    ) -> Vec<(Arc<Prediction>, bool)> {
        let method = self.method(None, with).await;
        let mut verdicts: Vec<Option<(Arc<Prediction>, bool)>> = Vec::with_capacity(texts.len());
        let mut waiting: Vec<(usize, String)> = Vec::new();
        for (index, text) in texts.iter().enumerate() {
            // A thousand texts would block this worker thread.
            if index % TEXTS_PER_YIELD == TEXTS_PER_YIELD - 1 {
                tokio::task::yield_now().await;
            }
            if let Some(verdict) = self.cached(text) {
                verdicts.push(Some((verdict, true)));
                continue;
            }
            let judged = match self.first_stage(&method, text).await {
                FirstStage::Decided(verdict) => Some(CacheablePrediction { prediction: verdict, is_cacheable: true }),
                FirstStage::NeedsModel => {
                    Some(self.or_fall_back_to_rules(text, method.classify_text((*text).to_owned(), &self.rules).await))
                }
                FirstStage::NeedsEmbedding(mended) => {
                    waiting.push((index, mended.unwrap_or_else(|| (*text).to_owned())));
                    None
                }
            };
            verdicts.push(judged.map(|judged| (self.store_in_cache(text, judged), false)));
        }
        let to_embed: Vec<String> = waiting.iter().map(|(_, text)| text.clone()).collect();
        let vectors = with.inference.embed(to_embed, Purpose::Query).await;
        for (place, (index, text)) in waiting.iter().enumerate() {
            let judged = match &vectors {
                Ok(vectors) => {
                    self.or_fall_back_to_rules(text, method.classify_embedded(text, &vectors[place], &self.rules))
                }
                // One text that the model rejects must not fail the rest of the batch.
                Err(inference::Error::Text { .. }) => self.classify_one(&method, text, with).await,
                Err(error) => self.or_fall_back_to_rules(text, Err(error.clone())),
            };
            verdicts[*index] = Some((self.store_in_cache(texts[*index], judged), false));
        }
        verdicts.into_iter().map(|verdict| verdict.expect("every text has a result")).collect()
    }

    /// While training is still running, `certain` rules decide without waiting for it.
    fn certain_match(&self, text: &str, with: MethodContext<'_>) -> Option<Prediction> {
        let waits = self.method.get().is_none() && with.settings.method == config::ClassificationMethod::Hybrid;
        let certain = waits.then(|| self.rules.certain(text)).flatten()?;
        Some(Prediction::from_heads(PredictionSource::Rules, certain))
    }

    /// The result without a model. Long texts run on a blocking thread: matching time grows with the number of rules.
    async fn first_stage(self: &Arc<Self>, method: &Arc<ClassifierBackend>, text: &str) -> FirstStage {
        if text.len() <= MAX_INLINE_BYTES {
            return method.first_stage(text, &self.rules);
        }
        let (published, method, text) = (self.clone(), method.clone(), text.to_owned());
        let looked = tokio::task::spawn_blocking(move || method.first_stage(&text, &published.rules));
        looked.await.unwrap_or(FirstStage::NeedsEmbedding(None))
    }

    async fn classify_one(
        &self,
        method: &ClassifierBackend,
        text: &str,
        with: MethodContext<'_>,
    ) -> CacheablePrediction {
        let embedded = with.inference.embed(vec![text.to_owned()], Purpose::Query).await;
        let judged = embedded.and_then(|vectors| match vectors.as_slice() {
            [vector] => method.classify_embedded(text, vector, &self.rules),
            _ => Err(inference::Error::Stopped),
        });
        self.or_fall_back_to_rules(text, judged)
    }

    /// A model failure does not fail the text: the rules decide, and `/health` reports it until a text succeeds. A text
    /// that the model rejects does not count as a model failure.
    fn or_fall_back_to_rules(&self, text: &str, judged: Result<Prediction, inference::Error>) -> CacheablePrediction {
        let by_rules = || Prediction::from_heads(PredictionSource::Rules, self.rules.classify(text));
        match judged {
            Ok(verdict) => {
                *lock(&self.model_failure) = None;
                CacheablePrediction { prediction: verdict, is_cacheable: true }
            }
            Err(inference::Error::Text { .. }) => CacheablePrediction { prediction: by_rules(), is_cacheable: true },
            Err(error) => {
                tracing::error!(%error, "model failed; falling back to rules");
                *lock(&self.model_failure) = Some(error.to_string());
                // A fallback verdict must not outlive the failure.
                CacheablePrediction { prediction: by_rules(), is_cacheable: false }
            }
        }
    }

    fn store_in_cache(&self, text: &str, judged: CacheablePrediction) -> Arc<Prediction> {
        let verdict = Arc::new(judged.prediction);
        if judged.is_cacheable {
            self.cache.insert(text, &verdict);
        }
        verdict
    }
}

/// Number of texts of one call between two yields to the scheduler.
const TEXTS_PER_YIELD: usize = 32;
/// Texts with more bytes than this are matched on a blocking thread.
const MAX_INLINE_BYTES: usize = 4096;

/// The response of `list_categories` (C-02, C-03, C-04).
fn listing(taxonomy: &Taxonomy) -> Value {
    let map = |of: fn(&super::taxonomy::Category) -> &str| -> Map<String, Value> {
        taxonomy.categories.iter().map(|category| (category.name.clone(), of(category).into())).collect()
    };
    json!({
        "categories": taxonomy.names().collect::<Vec<_>>(),
        "category_system_prompts": map(|category| &category.system_prompt),
        "category_descriptions": map(|category| &category.description),
    })
}

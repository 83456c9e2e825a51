//! Immutable snapshot of one version of the taxonomy and everything derived from it. A reload swaps the whole snapshot.

use std::sync::{Arc, Mutex, OnceLock};

use corbie_infer::Purpose;
use serde_json::{Map, Value, json};
use tokio::sync::watch;

use super::cache::Seen;
use super::learned::Learned;
use super::method::{self, By, First, Method, Verdict, With};
use super::rules::RuleSet;
use super::taxonomy::Taxonomy;
use crate::config::classification as config;
use crate::inference;
use crate::locked::locked;

#[derive(Debug)]
pub struct Published {
    pub taxonomy: Taxonomy,
    /// The response of `list_categories`.
    pub listing: Arc<Value>,
    rules: RuleSet,
    /// Built by the first text, so a server that never classifies does not pay for it.
    method: OnceLock<Arc<Method>>,
    /// Closed when the method is ready. The first caller starts the build; a caller that times out does not cancel it.
    making: Mutex<Option<watch::Receiver<()>>>,
    /// Why a fallback method is in use.
    fallen_back: Mutex<Option<String>>,
    /// Why the last text that needed a model was classified without one.
    failing: Mutex<Option<String>>,
    seen: Seen,
}

/// A verdict, and whether it may be cached.
struct Judged {
    verdict: Verdict,
    lasts: bool,
}

impl Published {
    pub fn new(taxonomy: Taxonomy, cache_entries: usize) -> Published {
        Published {
            listing: Arc::new(listing(&taxonomy)),
            rules: RuleSet::new(&taxonomy),
            method: OnceLock::new(),
            making: Mutex::default(),
            fallen_back: Mutex::default(),
            failing: Mutex::default(),
            seen: Seen::new(cache_entries),
            taxonomy,
        }
    }

    /// The method, built now if necessary. An earlier snapshot may have trained on the same examples already.
    pub(super) async fn method(self: &Arc<Self>, before: Option<Arc<Learned>>, with: With<'_>) -> Arc<Method> {
        if let Some(method) = self.method.get() {
            return method.clone();
        }
        let mut made = {
            let mut making = locked(&self.making);
            making.get_or_insert_with(|| self.begin(before, with)).clone()
        };
        // The channel always ends up closed, whether the build succeeded or failed.
        let _ = made.changed().await;
        self.method.get_or_init(|| Arc::new(Method::Rules)).clone()
    }

    /// Builds the method inline, for a snapshot that is not shared: dropping the future cancels the work.
    pub(super) async fn make(&self, before: Option<Arc<Learned>>, with: With<'_>) {
        let (method, why) = method::make(&self.taxonomy, &self.rules, before, with).await;
        *locked(&self.fallen_back) = why;
        let _ = self.method.set(Arc::new(method));
    }

    /// Builds the method in a background task, so that a caller's timeout does not cancel minutes of work.
    fn begin(self: &Arc<Self>, before: Option<Arc<Learned>>, with: With<'_>) -> watch::Receiver<()> {
        let (done, made) = watch::channel(());
        let (published, settings, inference) = (self.clone(), with.settings.clone(), with.inference.clone());
        tokio::spawn(async move {
            *locked(&published.fallen_back) = Some("making the classifier failed; only rules are used".into());
            let with = With { settings: &settings, inference: &inference, turn: None };
            let (method, why) = method::make(&published.taxonomy, &published.rules, before, with).await;
            if let Some(why) = &why {
                tracing::error!(%why, using = method.describe(), "classification is impaired");
            }
            *locked(&published.fallen_back) = why;
            let _ = published.method.set(Arc::new(method));
            drop(done);
        });
        made
    }

    /// The method, if it is ready.
    pub fn method_now(&self) -> Option<Arc<Method>> {
        self.method.get().cloned()
    }

    /// Deviation from the configured method, if any.
    pub fn impairment(&self) -> Option<String> {
        if self.method.get().is_none() {
            let learning = locked(&self.making).is_some();
            return learning.then(|| "still learning the examples; calls wait for it".into());
        }
        locked(&self.fallen_back).clone().or_else(|| locked(&self.failing).clone())
    }

    pub(super) fn rules(&self) -> &RuleSet {
        &self.rules
    }

    pub(super) fn remembered(&self, text: &str) -> Option<Arc<Verdict>> {
        self.seen.get(text)
    }

    /// Classifies a sanitized text.
    pub(super) async fn classify(self: &Arc<Self>, text: &str, with: With<'_>) -> Arc<Verdict> {
        if let Some(verdict) = self.certain_at_once(text, with) {
            return self.keep(text, Judged { verdict, lasts: true });
        }
        let method = self.method(None, with).await;
        let judged = match self.first(&method, text).await {
            First::Settled(verdict) => Judged { verdict, lasts: true },
            First::Read => self.or_rules(text, method.read(text.to_owned(), &self.rules).await),
            First::Embed(mended) => self.embed_alone(&method, mended.as_deref().unwrap_or(text), with).await,
        };
        self.keep(text, judged)
    }

    /// Classifies sanitized texts and embeds the ones that need a vector in one batch. Each verdict comes with a
    /// cache-hit flag.
    pub(super) async fn classify_many(self: &Arc<Self>, texts: &[&str], with: With<'_>) -> Vec<(Arc<Verdict>, bool)> {
        let method = self.method(None, with).await;
        let mut verdicts: Vec<Option<(Arc<Verdict>, bool)>> = Vec::with_capacity(texts.len());
        let mut waiting: Vec<(usize, String)> = Vec::new();
        for (index, text) in texts.iter().enumerate() {
            // A thousand texts would block this worker thread.
            if index % TURN == TURN - 1 {
                tokio::task::yield_now().await;
            }
            if let Some(verdict) = self.remembered(text) {
                verdicts.push(Some((verdict, true)));
                continue;
            }
            let judged = match self.first(&method, text).await {
                First::Settled(verdict) => Some(Judged { verdict, lasts: true }),
                First::Read => Some(self.or_rules(text, method.read((*text).to_owned(), &self.rules).await)),
                First::Embed(mended) => {
                    waiting.push((index, mended.unwrap_or_else(|| (*text).to_owned())));
                    None
                }
            };
            verdicts.push(judged.map(|judged| (self.keep(text, judged), false)));
        }
        let to_embed: Vec<String> = waiting.iter().map(|(_, text)| text.clone()).collect();
        let vectors = with.inference.embed(to_embed, Purpose::Query).await;
        for (place, (index, text)) in waiting.iter().enumerate() {
            let judged = match &vectors {
                Ok(vectors) => self.or_rules(text, method.judge(text, &vectors[place], &self.rules)),
                // One text that the model rejects must not fail the rest of the batch.
                Err(inference::Error::Text { .. }) => self.embed_alone(&method, text, with).await,
                Err(error) => self.or_rules(text, Err(error.clone())),
            };
            verdicts[*index] = Some((self.keep(texts[*index], judged), false));
        }
        verdicts.into_iter().map(|verdict| verdict.expect("every text was settled, read or judged")).collect()
    }

    /// While training is still running, `certain` rules decide without waiting for it.
    fn certain_at_once(&self, text: &str, with: With<'_>) -> Option<Verdict> {
        let waits = self.method.get().is_none() && with.settings.method == config::Method::Hybrid;
        let certain = waits.then(|| self.rules.certain(text)).flatten()?;
        Some(Verdict::by(By::Rules, certain))
    }

    /// The result without a model. Long texts run on a blocking thread: matching time grows with the number of rules.
    async fn first(self: &Arc<Self>, method: &Arc<Method>, text: &str) -> First {
        if text.len() <= LONG {
            return method.first(text, &self.rules);
        }
        let (published, method, text) = (self.clone(), method.clone(), text.to_owned());
        let looked = tokio::task::spawn_blocking(move || method.first(&text, &published.rules));
        looked.await.unwrap_or(First::Embed(None))
    }

    async fn embed_alone(&self, method: &Method, text: &str, with: With<'_>) -> Judged {
        let embedded = with.inference.embed(vec![text.to_owned()], Purpose::Query).await;
        let judged = embedded.and_then(|vectors| match vectors.as_slice() {
            [vector] => method.judge(text, vector, &self.rules),
            _ => Err(inference::Error::Stopped),
        });
        self.or_rules(text, judged)
    }

    /// A model failure does not fail the text: the rules decide, and `/health` reports it until a text succeeds. A text
    /// that the model rejects does not count as a model failure.
    fn or_rules(&self, text: &str, judged: Result<Verdict, inference::Error>) -> Judged {
        let by_rules = || Verdict::by(By::Rules, self.rules.classify(text));
        match judged {
            Ok(verdict) => {
                *locked(&self.failing) = None;
                Judged { verdict, lasts: true }
            }
            Err(inference::Error::Text { .. }) => Judged { verdict: by_rules(), lasts: true },
            Err(error) => {
                tracing::error!(%error, "the model failed; rules decided instead");
                *locked(&self.failing) = Some(error.to_string());
                // A fallback verdict must not outlive the failure.
                Judged { verdict: by_rules(), lasts: false }
            }
        }
    }

    fn keep(&self, text: &str, judged: Judged) -> Arc<Verdict> {
        let verdict = Arc::new(judged.verdict);
        if judged.lasts {
            self.seen.keep(text, &verdict);
        }
        verdict
    }
}

/// Number of texts of one call between two yields to the scheduler.
const TURN: usize = 32;
/// Texts with more bytes than this are matched on a blocking thread.
const LONG: usize = 4096;

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

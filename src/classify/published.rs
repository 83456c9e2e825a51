//! Everything that belongs to one version of the taxonomy. It is replaced as a whole, and never changed.

use std::sync::{Arc, Mutex, PoisonError};

use corbie_infer::Purpose;
use serde_json::{Map, Value, json};
use tokio::sync::OnceCell;

use super::cache::Seen;
use super::learned::{LearnError, Learned};
use super::method::{By, Embedding, First, Hybrid, Method, Model, Sequence, Verdict};
use super::rules::RuleSet;
use super::taxonomy::Taxonomy;
use crate::config::classification as config;
use crate::inference::{self, Inference};

#[derive(Debug)]
pub struct Published {
    pub taxonomy: Taxonomy,
    /// The answer of `list_categories`.
    pub listing: Arc<Value>,
    rules: RuleSet,
    /// Made with the first text, as a server that is never asked should not pay for it.
    method: OnceCell<Arc<Method>>,
    /// Why another method is used than was asked for.
    fallen_back: Mutex<Option<String>>,
    /// Why the last text that needed a model did not get one.
    failing: Mutex<Option<String>>,
    seen: Seen,
}

impl Published {
    pub fn new(taxonomy: Taxonomy, cache_entries: usize) -> Published {
        Published {
            listing: Arc::new(listing(&taxonomy)),
            rules: RuleSet::new(&taxonomy),
            method: OnceCell::new(),
            fallen_back: Mutex::default(),
            failing: Mutex::default(),
            seen: Seen::new(cache_entries),
            taxonomy,
        }
    }

    /// The method; made now if it was not needed yet.
    pub async fn method(&self, settings: &config::Classification, inference: &Inference) -> &Arc<Method> {
        self.method_after(None, settings, inference).await
    }

    /// The same, where an earlier value may have learned the same examples already.
    pub(super) async fn method_after(
        &self,
        before: Option<&Arc<Learned>>,
        settings: &config::Classification,
        inference: &Inference,
    ) -> &Arc<Method> {
        if let Some(method) = self.method.get() {
            return method;
        }
        let make = || async {
            let method = self.make(before, settings, inference).await;
            if let Some(why) = &*locked(&self.fallen_back) {
                tracing::error!(%why, using = method.describe(), "classification is impaired");
            }
            Arc::new(method)
        };
        self.method.get_or_init(make).await
    }

    /// The method, if it is ready.
    pub fn method_now(&self) -> Option<Arc<Method>> {
        self.method.get().cloned()
    }

    /// What does not work as the settings ask.
    pub fn impairment(&self) -> Option<String> {
        locked(&self.fallen_back).clone().or_else(|| locked(&self.failing).clone())
    }

    pub(super) fn remembered(&self, text: &str) -> Option<Arc<Verdict>> {
        self.seen.get(text)
    }

    /// Classifies a clean text.
    pub(super) async fn classify(
        &self,
        text: &str,
        settings: &config::Classification,
        inference: &Inference,
    ) -> Arc<Verdict> {
        let method = self.method(settings, inference).await;
        let verdict = match method.first(text, &self.rules) {
            First::Settled(verdict) => verdict,
            First::Read => self.or_rules(text, method.read(text.to_owned(), &self.rules).await),
            First::Embed(mended) => {
                let text = mended.as_deref().unwrap_or(text);
                let embedded = inference.embed(vec![text.to_owned()], Purpose::Query).await;
                let judged = embedded.and_then(|vectors| match vectors.as_slice() {
                    [vector] => method.judge(text, vector, &self.rules),
                    _ => Err(inference::Error::Stopped),
                });
                self.or_rules(text, judged)
            }
        };
        self.keep(text, verdict)
    }

    /// Classifies clean texts; those that need vectors get them together.
    pub(super) async fn classify_many(
        &self,
        texts: &[&str],
        settings: &config::Classification,
        inference: &Inference,
    ) -> Vec<Arc<Verdict>> {
        let method = self.method(settings, inference).await;
        let mut verdicts: Vec<Option<Arc<Verdict>>> = Vec::with_capacity(texts.len());
        let mut waiting: Vec<(usize, String)> = Vec::new();
        for (index, text) in texts.iter().enumerate() {
            // A thousand texts would hold up everyone else on this thread.
            if index % TURN == TURN - 1 {
                tokio::task::yield_now().await;
            }
            verdicts.push(match self.remembered(text) {
                Some(verdict) => Some(verdict),
                None => match method.first(text, &self.rules) {
                    First::Settled(verdict) => Some(self.keep(text, verdict)),
                    First::Read => {
                        let verdict = method.read((*text).to_owned(), &self.rules).await;
                        Some(self.keep(text, self.or_rules(text, verdict)))
                    }
                    First::Embed(mended) => {
                        waiting.push((index, mended.unwrap_or_else(|| (*text).to_owned())));
                        None
                    }
                },
            });
        }
        let to_embed: Vec<String> = waiting.iter().map(|(_, text)| text.clone()).collect();
        let vectors = inference.embed(to_embed, Purpose::Query).await;
        for (place, (index, text)) in waiting.iter().enumerate() {
            let judged = match &vectors {
                Ok(vectors) => method.judge(text, &vectors[place], &self.rules),
                Err(error) => Err(error.clone()),
            };
            verdicts[*index] = Some(self.keep(texts[*index], self.or_rules(text, judged)));
        }
        verdicts.into_iter().map(|verdict| verdict.expect("every text was settled, read or judged")).collect()
    }

    /// A model that fails does not fail the text: rules decide, and `/health` says so until a text succeeds.
    fn or_rules(&self, text: &str, judged: Result<Verdict, inference::Error>) -> Verdict {
        let mut failing = locked(&self.failing);
        match judged {
            Ok(verdict) => {
                *failing = None;
                verdict
            }
            Err(error) => {
                tracing::error!(%error, "the model failed; rules decided instead");
                *failing = Some(error.to_string());
                Verdict::by(By::Rules, self.rules.classify(text))
            }
        }
    }

    fn keep(&self, text: &str, verdict: Verdict) -> Arc<Verdict> {
        let verdict = Arc::new(verdict);
        // What was decided while the model failed must not outlive the failure.
        if locked(&self.failing).is_none() {
            self.seen.keep(text, &verdict);
        }
        verdict
    }

    /// The best method there is, from the one asked for downwards: a folder's model, trained heads, rules.
    async fn make(
        &self,
        before: Option<&Arc<Learned>>,
        settings: &config::Classification,
        inference: &Inference,
    ) -> Method {
        if settings.method == config::Method::Rules {
            if self.rules.is_empty() && self.taxonomy.categories.len() > 1 {
                tracing::warn!(
                    "`classification.method` is `rules`, but no category has `patterns`, `words` or `certain`"
                );
            }
            return Method::Rules;
        }
        let mut why = None;
        if let (config::Method::Model, Some(path)) = (settings.method, &settings.model.path) {
            let (path, max_tokens) = (path.clone(), settings.model.max_tokens);
            let (threads, taxonomy) = (inference.threads(), self.taxonomy.clone());
            let opened = tokio::task::spawn_blocking(move || Sequence::open(&path, max_tokens, threads, &taxonomy));
            match opened.await {
                Ok(Ok(sequence)) => return Method::Sequence(sequence),
                Ok(Err(error)) => why = Some(error.to_string()),
                Err(_) => why = Some("the model could not be opened".into()),
            }
        }
        let learned = match before.and_then(|before| before.reused(&self.taxonomy)) {
            Some(learned) => Ok(Some(learned)),
            None => Learned::of(&self.taxonomy, inference).await.map(|learned| learned.map(Arc::new)),
        };
        let method = match learned {
            Ok(Some(learned)) => match settings.method {
                config::Method::Embedding => Method::Embedding(Embedding(learned)),
                config::Method::Model if why.is_none() => Method::Model(Model(learned)),
                _ => Method::Hybrid(Hybrid(learned)),
            },
            // One category: there is nothing to learn, and nothing is wrong.
            Ok(None) => Method::Rules,
            Err(error) => {
                why.get_or_insert(reason(&error));
                Method::Rules
            }
        };
        *locked(&self.fallen_back) = why;
        method
    }
}

/// How many texts of one call are looked at before others have a turn.
const TURN: usize = 32;

fn reason(error: &LearnError) -> String {
    format!("only rules are used: {error}")
}

/// What `list_categories` answers (C-02, C-03, C-04).
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

/// Nothing is done under these locks that could leave a value half written.
fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

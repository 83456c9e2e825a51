//! Builds the configured classification method, or the best available fallback.

use std::sync::Arc;

use super::{Embedding, Hybrid, Method, Model, Sequence};
use crate::classify::learned::Learned;
use crate::classify::rules::RuleSet;
use crate::classify::taxonomy::Taxonomy;
use crate::classify::turns::Turn;
use crate::config::classification as config;
use crate::inference::Inference;

/// Dependencies of a method.
#[derive(Debug, Clone, Copy)]
pub(in crate::classify) struct With<'a> {
    pub(in crate::classify) settings: &'a config::Classification,
    pub(in crate::classify) inference: &'a Inference,
    /// Permit for training, where concurrent training is limited.
    pub(in crate::classify) turn: Option<&'a Turn>,
}

/// The best available method, starting with the configured one: model from a folder, trained heads, rules. Also returns
/// the reason for a fallback.
pub(in crate::classify) async fn make(
    taxonomy: &Taxonomy,
    rules: &RuleSet,
    before: Option<Arc<Learned>>,
    with: With<'_>,
) -> (Method, Option<String>) {
    let With { settings, inference, turn } = with;
    if settings.method == config::Method::Rules {
        if rules.is_empty() && taxonomy.categories.len() > 1 {
            tracing::warn!("`classification.method` is `rules`, but no category has `patterns`, `words` or `certain`");
        }
        return (Method::Rules, None);
    }
    let mut why = None;
    if let (config::Method::Model, Some(path)) = (settings.method, &settings.model.path) {
        let (path, max_tokens) = (path.clone(), settings.model.max_tokens);
        let (threads, aside, copy) = (inference.threads(), inference.aside().clone(), taxonomy.clone());
        let opened = move || Sequence::open(&path, max_tokens, threads, aside, &copy);
        match inference.aside().run(opened).await {
            Ok(Ok(sequence)) => return (Method::Sequence(sequence), None),
            Ok(Err(error)) => why = Some(error.to_string()),
            Err(error) => why = Some(format!("the model could not be opened: {error}")),
        }
    }
    let learned = match before.and_then(|before| before.reused(taxonomy)) {
        Some(learned) => Ok(Some(learned)),
        None => Learned::of(taxonomy, inference, turn.cloned()).await,
    };
    let method = match learned.map(|learned| learned.map(Arc::new)) {
        Ok(Some(learned)) => match settings.method {
            config::Method::Embedding => Method::Embedding(Embedding(learned)),
            config::Method::Model if why.is_none() => Method::Model(Model(learned)),
            _ => Method::Hybrid(Hybrid(learned)),
        },
        // With a single category no training is needed, and this is not an error.
        Ok(None) => Method::Rules,
        Err(error) => {
            why.get_or_insert_with(|| format!("only rules are used: {error}"));
            Method::Rules
        }
    };
    (method, why)
}

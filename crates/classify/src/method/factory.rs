//! Builds the configured classification method, or the best available fallback.

use std::sync::Arc;

use super::{ClassifierBackend, EmbeddingMethod, HybridMethod, SequenceMethod, TrainedHeads};
use crate::inference::Inference;
use crate::rules::RuleSet;
use crate::taxonomy::Taxonomy;
use crate::training::TrainedClassifier;
use corbie_config::classification as config;
use corbie_util::concurrency_limit::ConcurrencyPermit;

/// Dependencies of a method.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MethodContext<'a> {
    pub(crate) settings: &'a config::Classification,
    pub(crate) inference: &'a Inference,
    /// Permit for training, where concurrent training is limited.
    pub(crate) permit: Option<&'a ConcurrencyPermit>,
}

/// The best available method, starting with the configured one: model from a folder, trained heads, rules. Also returns
/// the reason for a fallback.
pub(crate) async fn build(
    taxonomy: &Taxonomy,
    rules: &RuleSet,
    before: Option<Arc<TrainedClassifier>>,
    with: MethodContext<'_>,
) -> (ClassifierBackend, Option<String>) {
    let MethodContext { settings, inference, permit: turn } = with;
    if settings.method == config::ClassificationMethod::Rules {
        if rules.is_empty() && taxonomy.categories.len() > 1 {
            tracing::warn!("`classification.method` is `rules`, but no category has `patterns`, `words` or `certain`");
        }
        return (ClassifierBackend::Rules, None);
    }
    let mut why = None;
    if let (config::ClassificationMethod::Model, Some(path)) = (settings.method, &settings.model.path) {
        let (path, max_tokens) = (path.clone(), settings.model.max_tokens);
        let (threads, aside, copy) = (inference.threads(), inference.executor().clone(), taxonomy.clone());
        let opened = move || SequenceMethod::open(&path, max_tokens, threads, aside, &copy);
        match inference.executor().run(opened).await {
            Ok(Ok(sequence)) => return (ClassifierBackend::Sequence(sequence), None),
            Ok(Err(error)) => why = Some(error.to_string()),
            Err(error) => why = Some(format!("cannot load the model: {error}")),
        }
    }
    let learned = match before.and_then(|before| before.reuse_for(taxonomy)) {
        Some(learned) => Ok(Some(learned)),
        None => TrainedClassifier::load_or_train(taxonomy, inference, turn.cloned()).await,
    };
    let method = match learned.map(|learned| learned.map(Arc::new)) {
        Ok(Some(learned)) => match settings.method {
            config::ClassificationMethod::Embedding => ClassifierBackend::Embedding(EmbeddingMethod(learned)),
            config::ClassificationMethod::Model if why.is_none() => ClassifierBackend::Model(TrainedHeads(learned)),
            _ => ClassifierBackend::Hybrid(HybridMethod(learned)),
        },
        // With a single category no training is needed, and this is not an error.
        Ok(None) => ClassifierBackend::Rules,
        Err(error) => {
            why.get_or_insert_with(|| format!("falling back to rules: {error}"));
            ClassifierBackend::Rules
        }
    };
    (method, why)
}

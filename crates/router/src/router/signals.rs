//! Routing signals of a prompt: its classification and the passages of the knowledge base.

use corbie_mcp::Caller;
use tokio::time::{Instant, timeout_at};

use super::Router;
use crate::classifier::PromptClassification;
use crate::grounding::{self, DocumentAccess, GroundingResult};
use crate::model_selector::ModelSelector;
use corbie_knowledge::Knowledge;

impl Router {
    /// Sets the knowledge base for grounding.
    pub fn set_knowledge(&self, knowledge: Knowledge) {
        let _ = self.0.knowledge.set(knowledge);
    }

    /// How the knowledge base is used for a caller, whose token may not permit access to it.
    pub fn document_access(&self, caller: &Caller) -> DocumentAccess {
        match caller.may_use("knowledge-search") && caller.may_access(&self.0.settings.grounding.knowledge_base) {
            true => DocumentAccess::Search,
            false => DocumentAccess::Hidden,
        }
    }

    /// Classifies the prompt if the settings require it, within half of the remaining time.
    ///
    /// A policy without classification still honours `restricted_categories`: its prompts are classified, and the result
    /// is dropped unless the category must stay.
    async fn classify(&self, prompt: &str, wish: ModelSelector<'_>, deadline: Instant) -> Option<PromptClassification> {
        let (enabled, stay) = (wish.settings.enabled, &wish.settings.restricted_categories);
        let guards = self.0.settings.enabled && !stay.is_empty();
        if wish.model.is_some() || !(enabled || guards) {
            return None;
        }
        let half = Instant::now() + deadline.saturating_duration_since(Instant::now()) / 2;
        let looked = timeout_at(half, self.0.classifier.classify(prompt)).await.ok().flatten()?;
        let stays = || self.decide(Some(&looked), None, wish).category.is_some_and(|category| stay.contains(&category));
        (enabled || stays()).then_some(looked)
    }

    /// The classification and the grounding of a prompt.
    pub(super) async fn gather_signals(
        &self,
        prompt: &str,
        wish: ModelSelector<'_>,
        documents: DocumentAccess,
        deadline: Instant,
    ) -> (Option<PromptClassification>, Option<GroundingResult>) {
        let looked = self.classify(prompt, wish, deadline).await;
        let settings = &self.0.settings.grounding;
        let stays = || self.decide(looked.as_ref(), None, wish).is_pinned_local();
        let grounds = match (self.0.knowledge.get(), documents) {
            // A prompt that must stay gets no passages, because they could change its model.
            _ if wish.model.is_some() || !settings.enabled || stays() => None,
            (_, DocumentAccess::Provided(relevance)) => Some(GroundingResult { relevance, passages: Vec::new() }),
            (Some(knowledge), DocumentAccess::Search) => grounding::search_passages(knowledge, settings, prompt).await,
            (_, DocumentAccess::Hidden) | (None, DocumentAccess::Search) => None,
        };
        (looked, grounds)
    }
}

//! What is known of a prompt before anybody is asked: what the classifier says, and what the documents know.

use corbie_mcp::Caller;
use tokio::time::{Instant, timeout_at};

use super::Router;
use crate::knowledge::Knowledge;
use crate::route::classifier::Looked;
use crate::route::ground::{self, Documents, Grounds};
use crate::route::wish::Wish;

impl Router {
    /// Lets documents have a say, as far as the settings want it.
    pub fn ground(&self, knowledge: Knowledge) {
        let _ = self.0.knowledge.set(knowledge);
    }

    /// What documents may say about the prompts of a caller: its token may keep it from the base they are in.
    pub fn documents_for(&self, caller: &Caller) -> Documents {
        match caller.may_use("knowledge-search") && caller.may_see(&self.0.settings.grounding.knowledge_base) {
            true => Documents::Asked,
            false => Documents::Hidden,
        }
    }

    /// What the classifier says, where it has a say. It may take half of the time there is.
    ///
    /// A policy that does not classify still keeps what must stay: its prompts are looked at, and those of other
    /// categories are then treated as if they were not.
    async fn look(&self, prompt: &str, wish: Wish<'_>, deadline: Instant) -> Option<Looked> {
        let (enabled, stay) = (wish.settings.enabled, &wish.settings.stay);
        let guards = self.0.settings.enabled && !stay.is_empty();
        if wish.model.is_some() || !(enabled || guards) {
            return None;
        }
        let half = Instant::now() + deadline.saturating_duration_since(Instant::now()) / 2;
        let looked = timeout_at(half, self.0.classifier.look(prompt)).await.ok().flatten()?;
        let stays = || self.decide(Some(&looked), None, wish).category.is_some_and(|category| stay.contains(&category));
        (enabled || stays()).then_some(looked)
    }

    /// What the classifier says, and what the documents know.
    pub(super) async fn see(
        &self,
        prompt: &str,
        wish: Wish<'_>,
        documents: Documents,
        deadline: Instant,
    ) -> (Option<Looked>, Option<Grounds>) {
        let looked = self.look(prompt, wish, deadline).await;
        let settings = &self.0.settings.grounding;
        let stays = || self.decide(looked.as_ref(), None, wish).stays();
        let grounds = match (self.0.knowledge.get(), documents) {
            // What must stay where it is takes no documents along, nor another way.
            _ if wish.model.is_some() || !settings.enabled || stays() => None,
            (_, Documents::Brought(relevance)) => Some(Grounds { relevance, passages: Vec::new() }),
            (Some(knowledge), Documents::Asked) => ground::look(knowledge, settings, prompt).await,
            (_, Documents::Hidden) | (None, Documents::Asked) => None,
        };
        (looked, grounds)
    }
}

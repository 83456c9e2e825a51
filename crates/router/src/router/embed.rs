//! Embedding requests: sends texts to a provider of the model that the caller named.
//!
//! Vectors of different models are not comparable, so no other model is used, regardless of the settings.

use std::sync::Arc;
use std::time::Instant as Clock;

use tokio::time::Instant;
use tracing::Instrument;

use super::failover::FailoverIter;
use super::{Plan, ResolvedCandidate, Router};
use crate::decide::ChoiceReason;
use crate::decision_record::DecisionRecord;
use crate::error::Error;
use crate::grounding::DocumentAccess;
use crate::model_selector::ModelSelector;
use crate::routed_request::RoutedRequest;
use corbie_config::providers::Price;
use corbie_llm::call;
use corbie_llm::embeddings::{EmbeddingRequest, EmbeddingResponse};
use corbie_llm::provider_selection::SelectionRule;

/// Vectors with their decision record.
#[derive(Debug, Clone)]
pub struct RoutedEmbeddings {
    pub response: EmbeddingResponse,
    pub record: DecisionRecord,
}

impl Router {
    /// Embeds texts. The model is as the caller names it, with or without a provider prefix.
    pub async fn embed(&self, embed: EmbeddingRequest, caller: Arc<str>) -> Result<RoutedEmbeddings, Error> {
        let mut journey = self.begin(Some(&embed.model), Some(caller.clone()));
        let span = journey.span();
        match self.embed_with_failover(embed, &caller, &mut journey).instrument(span).await {
            Ok((embedded, price)) => {
                let record = journey.succeed(embedded.usage, price);
                Ok(RoutedEmbeddings { response: embedded, record })
            }
            Err(error) => Err(journey.fail(error)),
        }
    }

    /// Calls candidates in order until one responds.
    async fn embed_with_failover(
        &self,
        mut embed: EmbeddingRequest,
        caller: &str,
        journey: &mut RoutedRequest,
    ) -> Result<(EmbeddingResponse, Option<Price>), Error> {
        let deadline = Instant::now() + self.0.settings.timeout.get();
        self.check_budget(caller)?;
        let plan = self.embedding_plan(&embed.model, deadline).await?;
        journey.record_plan(&plan);
        let mut walk = FailoverIter::new(&plan.candidates, self.0.settings.failover, deadline);
        while let Some((contender, hope)) = walk.next_attempt() {
            let ResolvedCandidate { provider, candidate, price } = contender;
            embed.model.clone_from(&candidate.model);
            let started = Clock::now();
            let outcome = call::embed(provider, candidate.key, &embed, deadline, hope).await;
            if let Some(embedded) = walk.record_outcome(contender, outcome, started, journey) {
                return Ok((embedded, *price));
            }
        }
        Err(walk.into_error())
    }

    /// A plan with at least one candidate that supports embeddings.
    async fn embedding_plan(&self, model: &str, deadline: Instant) -> Result<Plan, Error> {
        let wish = ModelSelector { model: Some(model), settings: &self.0.settings, default_model: None };
        let mut plan = self.resolve("", wish, DocumentAccess::Hidden, deadline).await?;
        plan.candidates.retain(|contender| contender.candidate.reason == ChoiceReason::Requested);
        let meant = plan.candidates.first().filter(|first| first.candidate.selected_by != SelectionRule::Default);
        let meant = meant.map(|first| first.provider.name.clone());
        plan.candidates.retain(|contender| contender.provider.supports_embeddings());
        match (plan.candidates.is_empty(), meant) {
            (false, _) => Ok(plan),
            (true, Some(provider)) => Err(Error::NoEmbeddings { provider }),
            (true, None) => Err(self.no_candidate_error(plan, Some(model))),
        }
    }
}

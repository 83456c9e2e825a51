//! Embedding requests: sends texts to a provider of the model that the caller named.
//!
//! Vectors of different models are not comparable, so no other model is used, regardless of the settings.

use std::sync::Arc;
use std::time::Instant as Clock;

use tokio::time::Instant;
use tracing::Instrument;

use super::walk::Walk;
use super::{Contender, Plan, Router};
use crate::config::providers::Price;
use crate::providers::call;
use crate::providers::catalog::By;
use crate::providers::embeddings::{Embed, Embedded};
use crate::route::decide::Why;
use crate::route::error::Error;
use crate::route::ground::Documents;
use crate::route::journey::Journey;
use crate::route::record::Record;
use crate::route::wish::Wish;

/// Vectors with their decision record.
#[derive(Debug, Clone)]
pub struct RoutedVectors {
    pub embedded: Embedded,
    pub record: Record,
}

impl Router {
    /// Embeds texts. The model is as the caller names it, with or without a provider prefix.
    pub async fn embed(&self, embed: Embed, caller: Arc<str>) -> Result<RoutedVectors, Error> {
        let mut journey = self.begin(Some(&embed.model), Some(caller.clone()));
        let span = journey.span();
        match self.vectors(embed, &caller, &mut journey).instrument(span).await {
            Ok((embedded, price)) => {
                let record = journey.answered(embedded.usage, price);
                Ok(RoutedVectors { embedded, record })
            }
            Err(error) => Err(journey.failed(error)),
        }
    }

    /// Calls candidates in order until one responds.
    async fn vectors(
        &self,
        mut embed: Embed,
        caller: &str,
        journey: &mut Journey,
    ) -> Result<(Embedded, Option<Price>), Error> {
        let deadline = Instant::now() + self.0.settings.timeout.get();
        self.check_budget(caller)?;
        let plan = self.embedding(&embed.model, deadline).await?;
        journey.planned(&plan);
        let mut walk = Walk::along(&plan.candidates, self.0.settings.failover, deadline);
        while let Some((contender, hope)) = walk.step() {
            let Contender { provider, candidate, price } = contender;
            embed.model.clone_from(&candidate.model);
            let started = Clock::now();
            let outcome = call::embed(provider, candidate.key, &embed, deadline, hope).await;
            if let Some(embedded) = walk.attempted(contender, outcome, started, journey) {
                return Ok((embedded, *price));
            }
        }
        Err(walk.failed())
    }

    /// A plan with at least one candidate that supports embeddings.
    async fn embedding(&self, model: &str, deadline: Instant) -> Result<Plan, Error> {
        let wish = Wish { model: Some(model), settings: &self.0.settings, default_model: None };
        let mut plan = self.resolve("", wish, Documents::Hidden, deadline).await?;
        plan.candidates.retain(|contender| contender.candidate.why == Why::Asked);
        let meant = plan.candidates.first().filter(|first| first.candidate.by != By::Default);
        let meant = meant.map(|first| first.provider.name.clone());
        plan.candidates.retain(|contender| contender.provider.embeds());
        match (plan.candidates.is_empty(), meant) {
            (false, _) => Ok(plan),
            (true, Some(provider)) => Err(Error::NoEmbeddings { provider }),
            (true, None) => Err(self.nobody(plan, Some(model))),
        }
    }
}

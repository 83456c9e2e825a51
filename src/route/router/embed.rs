//! Takes texts to the provider that makes vectors of them with the model the caller named.
//!
//! Vectors of two models mean nothing to each other, so no other model ever stands in, whatever the settings say.

use std::sync::Arc;
use std::time::Instant as Clock;

use tokio::time::Instant;
use tracing::Instrument;

use super::answer::{goes_on, hope};
use super::{Contender, Plan, Router, today};
use crate::config::providers::Price;
use crate::providers::call::{self, Outcome};
use crate::providers::catalog::By;
use crate::providers::embeddings::{Embed, Embedded};
use crate::route::decide::Why;
use crate::route::error::Error;
use crate::route::ground::Documents;
use crate::route::journey::Journey;
use crate::route::record::Record;
use crate::route::wish::Wish;

/// Vectors, and how they came about.
#[derive(Debug, Clone)]
pub struct RoutedVectors {
    pub embedded: Embedded,
    pub record: Record,
}

impl Router {
    /// Brings vectors. The model of the wish is as the caller names it, with or without a provider before it.
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

    /// Asks one after the other until somebody answers.
    async fn vectors(
        &self,
        mut embed: Embed,
        caller: &str,
        journey: &mut Journey,
    ) -> Result<(Embedded, Option<Price>), Error> {
        let deadline = Instant::now() + self.0.settings.timeout.get();
        let today = today();
        self.0.budgets.check(caller, today).map_err(|used_up| Error::OverBudget { used_up, left: today.left })?;
        let plan = self.embedding(&embed.model, deadline).await?;
        journey.planned(&plan);
        let failover = self.0.settings.failover;
        let mut worst: Option<Error> = None;
        for (place, Contender { provider, candidate, price }) in plan.candidates.iter().enumerate() {
            embed.model.clone_from(&candidate.model);
            let hope = hope(failover, candidate, plan.candidates.get(place + 1).map(|next| &next.candidate));
            let started = Clock::now();
            let Outcome { result, attempts } = call::embed(provider, candidate.key, &embed, deadline, hope).await;
            journey.attempted(provider, candidate, attempts, started, result.as_ref().err());
            let error = match result {
                Ok(embedded) => {
                    journey.chosen(provider, candidate);
                    return Ok((embedded, *price));
                }
                Err(error) => error,
            };
            let go_on = goes_on(failover, &error, candidate) && Instant::now() < deadline;
            let (provider, model, asked) = (provider.name.clone(), candidate.model.clone(), place + 1);
            worst = Some(Error::Provider { provider, model, error, asked }.unless(worst));
            if !go_on {
                break;
            }
        }
        Err(worst.expect("a plan that was resolved has somebody to ask"))
    }

    /// A plan with at least one to ask who makes vectors.
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

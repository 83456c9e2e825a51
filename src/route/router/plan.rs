//! Routing plan: the candidates of a prompt in order, or the reason why there is none.

use std::sync::Arc;
use std::time::Instant as Clock;

use tokio::time::{Instant, timeout_at};

use super::{Router, clip};
use crate::config::providers::Price;
use crate::providers::catalog::By;
use crate::providers::pool::{FRESH, Listing, offers};
use crate::providers::provider::Provider;
use crate::route::candidates::{Candidate, Candidates, candidates};
use crate::route::classifier::Looked;
use crate::route::decide::{Decision, Policy, decide};
use crate::route::error::Error;
use crate::route::ground::{Documents, Grounds, Say, Verdict};
use crate::route::near::near;
use crate::route::wish::{AUTO, Wish};

/// How a prompt would be routed.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    pub looked: Option<Looked>,
    /// Search results, if grounding is enabled.
    pub grounds: Option<Grounds>,
    /// Effect of grounding.
    pub say: Option<Say>,
    pub decision: Decision,
    /// Candidates in the order in which they would be called.
    pub candidates: Vec<Contender>,
    pub unserved: Vec<String>,
}

/// A candidate with its provider and price.
#[derive(Debug, Clone)]
pub struct Contender {
    pub provider: Arc<Provider>,
    pub candidate: Candidate,
    pub price: Option<Price>,
}

/// Bounds a model name.
const LONGEST_NAME: usize = 256;

impl Router {
    /// Plans a prompt without calling a model.
    pub async fn plan(&self, prompt: &str, model: Option<&str>, documents: Documents) -> Plan {
        let deadline = Instant::now() + self.0.settings.timeout.get();
        let Ok(wish) = self.wish(model) else { return Plan::unserved(model) };
        let seen = self.see(prompt, wish, documents, deadline).await;
        self.plan_for(seen, wish)
    }

    /// The same, but fetches model lists as a real request would. Also returns why there is no candidate.
    pub async fn explain(&self, prompt: &str, model: Option<&str>, documents: Documents) -> (Plan, Option<Error>) {
        let deadline = Instant::now() + self.0.settings.timeout.get();
        let wish = match self.wish(model) {
            Ok(wish) => wish,
            Err(error) => return (Plan::unserved(model), Some(error)),
        };
        let plan = match self.settle(prompt, wish, documents, deadline).await {
            Ok(plan) => plan,
            Err(_) => self.plan(prompt, model, documents).await,
        };
        let nobody = plan.candidates.is_empty().then(|| self.nobody(plan.clone(), wish.model));
        (plan, nobody)
    }

    /// Parses the requested model.
    pub(super) fn wish<'a>(&'a self, model: Option<&'a str>) -> Result<Wish<'a>, Error> {
        let policies = &self.0.policies;
        Wish::of(model, &self.0.settings, |name| policies.get(name)).map_err(|_| Error::UnknownModel {
            model: clip(model.unwrap_or_default()),
            near: policies.keys().map(|name| format!("{AUTO}:{name}")).collect(),
            unlisted: Vec::new(),
        })
    }

    /// A plan with at least one candidate.
    pub(super) async fn resolve(
        &self,
        question: &str,
        wish: Wish<'_>,
        documents: Documents,
        deadline: Instant,
    ) -> Result<Plan, Error> {
        if let Some(model) = wish.model.filter(|model| model.len() > LONGEST_NAME) {
            return Err(Error::UnknownModel { model: clip(model), near: Vec::new(), unlisted: Vec::new() });
        }
        let plan = self.settle(question, wish, documents, deadline).await?;
        if plan.candidates.is_empty() { Err(self.nobody(plan, wish.model)) } else { Ok(plan) }
    }

    /// The final plan. If no provider is certain to serve the model, the model lists of all providers are refreshed
    /// first.
    async fn settle(
        &self,
        question: &str,
        wish: Wish<'_>,
        documents: Documents,
        deadline: Instant,
    ) -> Result<Plan, Error> {
        let seen = self.see(question, wish, documents, deadline).await;
        let plan = self.plan_for(seen, wish);
        if self.is_certain(&plan) {
            return Ok(plan);
        }
        let listing = timeout_at(deadline, self.0.pool.list(self.freshness(&plan)));
        listing.await.map_err(|_| Error::Timeout)?;
        Ok(self.plan_for((plan.looked, plan.grounds), wish))
    }

    /// Why a plan has no candidate.
    pub(super) fn nobody(&self, plan: Plan, model: Option<&str>) -> Error {
        match model {
            _ if self.0.pool.providers().is_empty() => Error::NoProvider,
            Some(model) => {
                let Listing { models, failed } = self.0.pool.known();
                let near = near(model, models.iter().map(|offered| offered.model.id.as_str()));
                let unlisted = failed.into_iter().map(|(provider, _)| provider).collect();
                Error::UnknownModel { model: clip(model), near, unlisted }
            }
            None => Error::NoModel { stays: plan.decision.stays(), advised: plan.unserved },
        }
    }

    /// Whether refreshing model lists cannot change the plan. A list that was never fetched may contain the model.
    fn is_certain(&self, plan: &Plan) -> bool {
        let Some(first) = plan.candidates.first() else { return false };
        let sure = match first.candidate.by {
            By::Prefix | By::Family => true,
            By::List => !first.provider.detected,
            By::Default => false,
        };
        let providers = self.0.pool.providers();
        let is_known = |provider: &Arc<Provider>| {
            let state = provider.state();
            provider.detected || state.listed.is_some() || state.not_listed.is_some()
        };
        (sure && plan.unserved.is_empty()) || providers.iter().all(is_known)
    }

    /// Maximum age of model lists. Lower if there is no candidate, because a provider may have just got the model.
    fn freshness(&self, plan: &Plan) -> std::time::Duration {
        if plan.candidates.is_empty() { FRESH / 20 } else { FRESH }
    }

    pub(super) fn decide(&self, looked: Option<&Looked>, grounds: Option<&Grounds>, wish: Wish<'_>) -> Decision {
        let default_model = wish.default_model.map(str::to_owned);
        let policy = Policy {
            threshold: self.0.threshold,
            settings: wish.settings,
            default_model: default_model.or_else(|| self.0.pool.default_model()),
            grounds: grounds.map(|grounds| Verdict::of(grounds.relevance, &self.0.settings.grounding)),
        };
        decide(wish.model, looked.map(|looked| &looked.seen), &policy)
    }

    fn plan_for(&self, (looked, grounds): (Option<Looked>, Option<Grounds>), wish: Wish<'_>) -> Plan {
        let decision = self.decide(looked.as_ref(), grounds.as_ref(), wish);
        let providers = self.0.pool.providers();
        let now = Clock::now();
        let lacks = |provider: usize, model: &str| providers[provider].lacks(model, now);
        let default = self.0.pool.default_provider();
        let Candidates { asked, unserved } =
            candidates(&decision.models, &offers(&providers), lacks, default.as_deref());
        let candidates = asked.into_iter().map(|candidate| {
            let provider = providers[candidate.provider].clone();
            Contender { price: provider.price(&candidate.model), provider, candidate }
        });
        let say = grounds.as_ref().map(|grounds| Say {
            verdict: Verdict::of(grounds.relevance, &self.0.settings.grounding),
            otherwise: self.decide(looked.as_ref(), None, wish).models.into_iter().next().map(|choice| choice.model),
        });
        Plan { looked, grounds, say, decision, candidates: candidates.collect(), unserved }
    }
}

impl Plan {
    /// The plan for an unknown name.
    fn unserved(model: Option<&str>) -> Plan {
        Plan { unserved: model.map(clip).into_iter().collect(), ..Plan::default() }
    }
}

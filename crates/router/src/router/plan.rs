//! Routing plan: the candidates of a prompt in order, or the reason why there is none.

use std::sync::Arc;
use std::time::Instant as Clock;

use tokio::time::{Instant, timeout_at};

use super::{Router, truncate_chars};
use crate::candidates::{Candidates, FailoverCandidate, candidates};
use crate::classifier::PromptClassification;
use crate::decide::{Decision, DecisionPolicy, decide};
use crate::error::Error;
use crate::grounding::{DocumentAccess, GroundingEffect, GroundingResult, GroundingVerdict};
use crate::model_selector::{AUTO, ModelSelector};
use crate::suggest_model::similar_names;
use corbie_config::providers::Price;
use corbie_llm::provider::Provider;
use corbie_llm::provider_selection::SelectionRule;
use corbie_llm::registry::{Listing, MODEL_LIST_TTL, RegistrySnapshot, offers};

/// How a prompt would be routed.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    pub classification: Option<PromptClassification>,
    /// Search results, if grounding is enabled.
    pub grounding: Option<GroundingResult>,
    /// Effect of grounding.
    pub grounding_effect: Option<GroundingEffect>,
    pub decision: Decision,
    /// Candidates in the order in which they would be called.
    pub candidates: Vec<ResolvedCandidate>,
    pub unserved: Vec<String>,
}

/// A candidate with its provider and price.
#[derive(Debug, Clone)]
pub struct ResolvedCandidate {
    pub provider: Arc<Provider>,
    pub candidate: FailoverCandidate,
    pub price: Option<Price>,
}

/// Bounds a model name.
const MAX_MODEL_NAME_LEN: usize = 256;

impl Router {
    /// Plans a prompt without calling a model.
    pub async fn plan(&self, prompt: &str, model: Option<&str>, documents: DocumentAccess) -> Plan {
        let deadline = Instant::now() + self.0.settings.timeout.get();
        let Ok(wish) = self.model_selector(model) else { return Plan::unserved(model) };
        let seen = self.gather_signals(prompt, wish, documents, deadline).await;
        self.plan_for(seen, wish)
    }

    /// The same, but fetches model lists as a real request would. Also returns why there is no candidate.
    pub async fn explain(&self, prompt: &str, model: Option<&str>, documents: DocumentAccess) -> (Plan, Option<Error>) {
        let deadline = Instant::now() + self.0.settings.timeout.get();
        let wish = match self.model_selector(model) {
            Ok(wish) => wish,
            Err(error) => return (Plan::unserved(model), Some(error)),
        };
        let plan = match self.plan_with_refresh(prompt, wish, documents, deadline).await {
            Ok(plan) => plan,
            Err(_) => self.plan(prompt, model, documents).await,
        };
        let nobody = plan.candidates.is_empty().then(|| self.no_candidate_error(plan.clone(), wish.model));
        (plan, nobody)
    }

    /// Parses the requested model.
    pub(super) fn model_selector<'a>(&'a self, model: Option<&'a str>) -> Result<ModelSelector<'a>, Error> {
        let policies = &self.0.policies;
        ModelSelector::of(model, &self.0.settings, |name| policies.get(name)).map_err(|_| Error::UnknownModel {
            model: truncate_chars(model.unwrap_or_default()),
            near: policies.keys().map(|name| format!("{AUTO}:{name}")).collect(),
            unlisted: Vec::new(),
        })
    }

    /// A plan with at least one candidate.
    pub(super) async fn resolve(
        &self,
        question: &str,
        wish: ModelSelector<'_>,
        documents: DocumentAccess,
        deadline: Instant,
    ) -> Result<Plan, Error> {
        if let Some(model) = wish.model.filter(|model| model.len() > MAX_MODEL_NAME_LEN) {
            return Err(Error::UnknownModel { model: truncate_chars(model), near: Vec::new(), unlisted: Vec::new() });
        }
        let plan = self.plan_with_refresh(question, wish, documents, deadline).await?;
        if plan.candidates.is_empty() { Err(self.no_candidate_error(plan, wish.model)) } else { Ok(plan) }
    }

    /// The final plan. If no provider is certain to serve the model, the model lists of all providers are refreshed
    /// first.
    async fn plan_with_refresh(
        &self,
        question: &str,
        wish: ModelSelector<'_>,
        documents: DocumentAccess,
        deadline: Instant,
    ) -> Result<Plan, Error> {
        let seen = self.gather_signals(question, wish, documents, deadline).await;
        let plan = self.plan_for(seen, wish);
        if self.is_certain(&plan) {
            return Ok(plan);
        }
        let listing = timeout_at(deadline, self.0.providers.refresh_models(self.model_list_ttl(&plan)));
        listing.await.map_err(|_| Error::Timeout)?;
        Ok(self.plan_for((plan.classification, plan.grounding), wish))
    }

    /// Why a plan has no candidate.
    pub(super) fn no_candidate_error(&self, plan: Plan, model: Option<&str>) -> Error {
        match model {
            _ if self.0.providers.providers().is_empty() => Error::NoProvider,
            Some(model) => {
                let Listing { models, failed } = self.0.providers.known_models();
                let near = similar_names(model, models.iter().map(|offered| offered.model.id.as_str()));
                let unlisted = failed.into_iter().map(|(provider, _)| provider).collect();
                Error::UnknownModel { model: truncate_chars(model), near, unlisted }
            }
            None => Error::NoModel { stays: plan.decision.is_pinned_local(), advised: plan.unserved },
        }
    }

    /// Whether refreshing model lists cannot change the plan. A list that was never fetched may contain the model.
    fn is_certain(&self, plan: &Plan) -> bool {
        let Some(first) = plan.candidates.first() else { return false };
        let sure = match first.candidate.selected_by {
            SelectionRule::Prefix | SelectionRule::Family => true,
            SelectionRule::List => !first.provider.detected,
            SelectionRule::Default => false,
        };
        let providers = self.0.providers.providers();
        let is_known = |provider: &Arc<Provider>| {
            let state = provider.health();
            provider.detected || state.models.is_some() || state.listing_error.is_some()
        };
        (sure && plan.unserved.is_empty()) || providers.iter().all(is_known)
    }

    /// Maximum age of model lists. Lower if there is no candidate, because a provider may have just got the model.
    fn model_list_ttl(&self, plan: &Plan) -> std::time::Duration {
        if plan.candidates.is_empty() { MODEL_LIST_TTL / 20 } else { MODEL_LIST_TTL }
    }

    pub(super) fn decide(
        &self,
        looked: Option<&PromptClassification>,
        grounds: Option<&GroundingResult>,
        wish: ModelSelector<'_>,
    ) -> Decision {
        self.decide_among(&self.0.providers.snapshot(), looked, grounds, wish)
    }

    /// The same with the providers of a snapshot.
    fn decide_among(
        &self,
        registry: &RegistrySnapshot,
        looked: Option<&PromptClassification>,
        grounds: Option<&GroundingResult>,
        wish: ModelSelector<'_>,
    ) -> Decision {
        let default_model = wish.default_model.map(str::to_owned);
        let policy = DecisionPolicy {
            threshold: self.0.threshold,
            settings: wish.settings,
            default_model: default_model.or_else(|| registry.default_model()),
            grounding: grounds.map(|grounds| GroundingVerdict::of(grounds.relevance, &self.0.settings.grounding)),
        };
        decide(wish.model, looked.map(|looked| &looked.output), &policy)
    }

    fn plan_for(
        &self,
        (looked, grounds): (Option<PromptClassification>, Option<GroundingResult>),
        wish: ModelSelector<'_>,
    ) -> Plan {
        let registry = self.0.providers.snapshot();
        let decision = self.decide_among(&registry, looked.as_ref(), grounds.as_ref(), wish);
        let providers = registry.providers();
        let now = Clock::now();
        let lacks = |provider: usize, model: &str| providers[provider].lacks(model, now);
        let Candidates { ranked: asked, unserved } =
            candidates(&decision.models, &offers(providers), lacks, registry.default_provider());
        let candidates = asked.into_iter().map(|candidate| {
            let provider = providers[candidate.provider].clone();
            ResolvedCandidate { price: provider.price(&candidate.model), provider, candidate }
        });
        let say = grounds.as_ref().map(|grounds| GroundingEffect {
            verdict: GroundingVerdict::of(grounds.relevance, &self.0.settings.grounding),
            model_without_documents: self
                .decide_among(&registry, looked.as_ref(), None, wish)
                .models
                .into_iter()
                .next()
                .map(|choice| choice.model),
        });
        Plan {
            classification: looked,
            grounding: grounds,
            grounding_effect: say,
            decision,
            candidates: candidates.collect(),
            unserved,
        }
    }
}

impl Plan {
    /// The plan for an unknown name.
    fn unserved(model: Option<&str>) -> Plan {
        Plan { unserved: model.map(truncate_chars).into_iter().collect(), ..Plan::default() }
    }
}

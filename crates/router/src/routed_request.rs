//! A routed request and its decision record.

use std::sync::Arc;
use std::time::Instant;

use tracing::Span;
use tracing::field::Empty;

use super::candidates::FailoverCandidate;
use super::decision_record::{Attempt, ClassificationRecord, DecisionOutcome, DecisionRecord, TokenUsage, cost};
use super::error::Error;
use super::router::{Inner, Plan, ResolvedCandidate, today};
use corbie_config::providers::Price;
use corbie_llm as providers;
use corbie_llm::chat::Usage;
use corbie_llm::provider::Provider;
use corbie_util::number::shortest_f64;
use corbie_util::span_target::COLLECTOR_TARGET;

/// A request being routed. Writes exactly one record, also on drop: if dropped before it finished, the request counts
/// as cancelled.
#[derive(Debug)]
pub(super) struct RoutedRequest {
    router: Arc<Inner>,
    record: DecisionRecord,
    caller: Option<Arc<str>>,
    started: Instant,
    ended: bool,
    /// Covers the whole request; exported to collectors.
    span: Span,
}

impl RoutedRequest {
    pub(super) fn begin(router: Arc<Inner>, record: DecisionRecord, caller: Option<Arc<str>>) -> RoutedRequest {
        let span = tracing::info_span!(
            target: COLLECTOR_TARGET,
            "route",
            id = record.id,
            category = Empty,
            reason = Empty,
            attempts = Empty,
            "error.type" = Empty,
        );
        RoutedRequest { router, record, caller, started: Instant::now(), ended: false, span }
    }

    /// The span to use for all work on the request.
    pub(super) fn span(&self) -> Span {
        self.span.clone()
    }

    pub(super) fn record(&self) -> &DecisionRecord {
        &self.record
    }

    pub(super) fn record_plan(&mut self, plan: &Plan) {
        let record = &mut self.record;
        let name = |contender: &ResolvedCandidate| format!("{}/{}", contender.provider.name, contender.candidate.model);
        record.candidates = plan.candidates.iter().map(name).collect();
        record.candidates.dedup();
        record.unavailable_models.clone_from(&plan.unserved);
        record.use_reasoning = plan.decision.use_reasoning;
        record.classified = plan.classification.as_ref().map(|looked| ClassificationRecord {
            category: plan.decision.category.clone().unwrap_or_default(),
            class: looked.class,
            confidence: shortest_f64(looked.output.confidence),
            entropy: looked.entropy,
            method: looked.method.to_owned(),
            used_fallback: plan.decision.fell_back,
            duration_ms: looked.took.as_secs_f64() * 1e3,
        });
        for model in &plan.unserved {
            self.router.warn_once(model, record.candidates.first());
        }
        if let Some(first) = plan.candidates.first() {
            self.record.set_reason(&first.candidate.reason);
        }
    }

    pub(super) fn record_attempt(
        &mut self,
        provider: &Provider,
        candidate: &FailoverCandidate,
        requests: usize,
        started: Instant,
        error: Option<&providers::Error>,
    ) {
        let took = started.elapsed();
        let result = error.map_or("ok", |error| error.kind());
        self.router.metrics.record_attempt(&provider.name, result, requests, took);
        if let Some(error) = error {
            tracing::warn!(provider = provider.name, model = candidate.model, requests, %error, "attempt failed");
        }
        self.record.attempts.push(Attempt {
            provider: provider.name.clone(),
            model: candidate.model.clone(),
            key: candidate.key + 1,
            requests,
            duration_ms: took.as_secs_f64() * 1e3,
            result: result.to_owned(),
        });
    }

    /// A provider has started to respond.
    pub(super) fn record_choice(&mut self, provider: &Provider, candidate: &FailoverCandidate) {
        self.record.provider = Some(provider.name.clone());
        self.record.model = Some(candidate.model.clone());
        self.record.set_reason(&candidate.reason);
    }

    /// The request succeeded. Returns its record.
    pub(super) fn succeed(&mut self, usage: Usage, price: Option<Price>) -> DecisionRecord {
        self.record.outcome = DecisionOutcome::Answered;
        self.spend(usage, price);
        self.end();
        self.record.clone()
    }

    /// Records the usage of a complete or partial response and charges the caller.
    pub(super) fn spend(&mut self, usage: Usage, price: Option<Price>) {
        self.record.usage = Some(TokenUsage::from(usage));
        self.record.cost = price.map(|price| cost(usage, price));
        if let Some(caller) = &self.caller {
            self.router.budgets.spend(caller, usage, self.record.cost, today());
        }
    }

    /// The response came from the cache and costs nothing.
    pub(super) fn finish_from_cache(mut self, provider: &str, model: &str) -> DecisionRecord {
        let record = &mut self.record;
        record.outcome = DecisionOutcome::Answered;
        "cache".clone_into(&mut record.reason);
        (record.provider, record.model) = (Some(provider.to_owned()), Some(model.to_owned()));
        self.end();
        self.record.clone()
    }

    /// The request failed. Returns the error.
    pub(super) fn fail(&mut self, error: Error) -> Error {
        self.record.outcome = DecisionOutcome::Failed;
        self.record.error = Some(error.kind().to_owned());
        self.end();
        error
    }

    fn end(&mut self) {
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        let record = &mut self.record;
        record.latency_ms = self.started.elapsed().as_secs_f64() * 1e3;
        tracing::info!(
            id = record.id,
            provider = record.provider,
            model = record.model,
            category = record.classified.as_ref().map(|classified| classified.category.as_str()),
            reason = record.reason,
            rule = record.rule,
            reasoning = record.use_reasoning,
            attempts = record.attempts.len(),
            outcome = ?record.outcome,
            error = record.error,
            ms = record.latency_ms.round(),
            "routed"
        );
        self.span.record("category", record.classified.as_ref().map(|classified| classified.category.as_str()));
        self.span.record("reason", record.reason.as_str()).record("attempts", record.attempts.len());
        self.span.record("error.type", record.error.as_deref());
        self.router.metrics.record_decision(record);
        self.router.decision_log.push(record.clone());
    }
}

impl Drop for RoutedRequest {
    fn drop(&mut self) {
        self.end();
    }
}

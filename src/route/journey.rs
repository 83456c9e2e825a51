//! A routed request and its decision record.

use std::sync::Arc;
use std::time::Instant;

use tracing::Span;
use tracing::field::Empty;

use super::candidates::Candidate;
use super::error::Error;
use super::record::{Attempt, Classified, Outcome, Record, Tokens, cost};
use super::router::{Contender, Plan, Shared, today};
use crate::classify::tools::short;
use crate::config::providers::Price;
use crate::providers;
use crate::providers::chat::Usage;
use crate::providers::provider::Provider;
use crate::telemetry::FOR_COLLECTORS;

/// A request being routed. Writes exactly one record, also on drop: if dropped before it finished, the request counts
/// as cancelled.
#[derive(Debug)]
pub(super) struct Journey {
    router: Arc<Shared>,
    record: Record,
    caller: Option<Arc<str>>,
    started: Instant,
    ended: bool,
    /// Covers the whole request; exported to collectors.
    span: Span,
}

impl Journey {
    pub(super) fn begin(router: Arc<Shared>, record: Record, caller: Option<Arc<str>>) -> Journey {
        let span = tracing::info_span!(
            target: FOR_COLLECTORS,
            "route",
            id = record.id,
            category = Empty,
            reason = Empty,
            attempts = Empty,
            "error.type" = Empty,
        );
        Journey { router, record, caller, started: Instant::now(), ended: false, span }
    }

    /// The span to use for all work on the request.
    pub(super) fn span(&self) -> Span {
        self.span.clone()
    }

    pub(super) fn record(&self) -> &Record {
        &self.record
    }

    pub(super) fn planned(&mut self, plan: &Plan) {
        let record = &mut self.record;
        let name = |contender: &Contender| format!("{}/{}", contender.provider.name, contender.candidate.model);
        record.candidates = plan.candidates.iter().map(name).collect();
        record.candidates.dedup();
        record.unavailable_models.clone_from(&plan.unserved);
        record.use_reasoning = plan.decision.use_reasoning;
        record.classified = plan.looked.as_ref().map(|looked| Classified {
            category: plan.decision.category.clone().unwrap_or_default(),
            class: looked.class,
            confidence: short(looked.seen.confidence),
            entropy: looked.entropy,
            method: looked.method.to_owned(),
            used_fallback: plan.decision.fell_back,
            duration_ms: looked.took.as_secs_f64() * 1e3,
        });
        for model in &plan.unserved {
            self.router.warn_once(model, record.candidates.first());
        }
        if let Some(first) = plan.candidates.first() {
            self.record.chosen_by(&first.candidate.why);
        }
    }

    pub(super) fn attempted(
        &mut self,
        provider: &Provider,
        candidate: &Candidate,
        requests: usize,
        started: Instant,
        error: Option<&providers::Error>,
    ) {
        let took = started.elapsed();
        let result = error.map_or("ok", |error| error.kind());
        self.router.metrics.attempted(&provider.name, result, requests, took);
        if let Some(error) = error {
            tracing::warn!(provider = provider.name, model = candidate.model, requests, %error, "no answer");
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
    pub(super) fn chosen(&mut self, provider: &Provider, candidate: &Candidate) {
        self.record.provider = Some(provider.name.clone());
        self.record.model = Some(candidate.model.clone());
        self.record.chosen_by(&candidate.why);
    }

    /// The request succeeded. Returns its record.
    pub(super) fn answered(&mut self, usage: Usage, price: Option<Price>) -> Record {
        self.record.outcome = Outcome::Answered;
        self.spend(usage, price);
        self.end();
        self.record.clone()
    }

    /// Records the usage of a complete or partial response and charges the caller.
    pub(super) fn spend(&mut self, usage: Usage, price: Option<Price>) {
        self.record.usage = Some(Tokens::from(usage));
        self.record.cost = price.map(|price| cost(usage, price));
        if let Some(caller) = &self.caller {
            self.router.budgets.spend(caller, usage, self.record.cost, today());
        }
    }

    /// The response came from the cache and costs nothing.
    pub(super) fn given_again(mut self, provider: &str, model: &str) -> Record {
        let record = &mut self.record;
        record.outcome = Outcome::Answered;
        "cache".clone_into(&mut record.reason);
        (record.provider, record.model) = (Some(provider.to_owned()), Some(model.to_owned()));
        self.end();
        self.record.clone()
    }

    /// The request failed. Returns the error.
    pub(super) fn failed(&mut self, error: Error) -> Error {
        self.record.outcome = Outcome::Failed;
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
        self.router.metrics.ended(record);
        self.router.records.keep(record.clone());
    }
}

impl Drop for Journey {
    fn drop(&mut self) {
        self.end();
    }
}

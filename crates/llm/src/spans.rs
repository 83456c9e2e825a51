//! Tracing spans for provider attempts, following OpenTelemetry's GenAI semantic conventions.
//!
//! A span records the provider, model, outcome and token usage. It never contains prompt or response content, and no
//! setting adds it (S-15). No span is created when no collector is configured.

use serde::Deserialize;
use tracing::field::Empty;
use tracing::{Instrument, Span};

use super::chat::{StopReason, Usage};
use super::embeddings::EmbeddingResponse;
use super::provider::Provider;
use super::{ChatResponse, Completion, Delta, Error};
use corbie_util::span_target::COLLECTOR_TARGET;

/// The kind of request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    Chat,
    Embeddings,
}

/// Records response attributes in a span.
pub(super) trait RecordAttributes {
    fn record_attributes(&mut self, span: Span);
}

/// The fields read from a passthrough response.
#[derive(Deserialize)]
struct ResponseSummary {
    model: Option<String>,
    #[serde(default)]
    choices: Vec<Choice>,
}

#[derive(Deserialize)]
struct Choice {
    finish_reason: Option<String>,
}

/// Runs one attempt in its span.
pub(super) async fn run_attempt<T: RecordAttributes>(
    provider: &Provider,
    operation: Operation,
    model: &str,
    trying: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    let span = span(provider, operation, model);
    if span.is_disabled() {
        return trying.await;
    }
    let mut result = trying.instrument(span.clone()).await;
    match &mut result {
        Ok(answer) => answer.record_attributes(span),
        Err(error) => record_error(&span, error),
    }
    result
}

fn span(provider: &Provider, operation: Operation, model: &str) -> Span {
    let operation = match operation {
        Operation::Chat => "chat",
        Operation::Embeddings => "embeddings",
    };
    let (host, port) = provider.host();
    tracing::info_span!(
        target: COLLECTOR_TARGET,
        "try",
        otel.name = %format_args!("{operation} {model}"),
        otel.kind = "client",
        gen_ai.operation.name = operation,
        gen_ai.provider.name = provider.otel_name(),
        gen_ai.request.model = model,
        gen_ai.response.model = Empty,
        gen_ai.response.finish_reasons = Empty,
        gen_ai.usage.input_tokens = Empty,
        gen_ai.usage.output_tokens = Empty,
        server.address = host,
        server.port = port,
        "error.type" = Empty,
        provider = provider.name,
    )
}

pub(super) fn record_error(span: &Span, error: &Error) {
    span.record("error.type", error.kind());
}

/// Records attributes found in stream deltas.
pub(super) fn record_deltas(span: &Span, deltas: &[Delta]) {
    if span.is_disabled() {
        return;
    }
    for delta in deltas {
        match delta {
            Delta::Started { model, .. } => record_model(span, model),
            Delta::Stopped { stop } => record_stop_reason(span, stop),
            Delta::Used { usage } => record_usage(span, *usage),
            _ => {}
        }
    }
}

fn record_model(span: &Span, model: &str) {
    if !model.is_empty() {
        span.record("gen_ai.response.model", model);
    }
}

fn record_usage(span: &Span, usage: Usage) {
    span.record("gen_ai.usage.input_tokens", usage.prompt);
    span.record("gen_ai.usage.output_tokens", usage.completion);
}

fn record_stop_reason(span: &Span, stop: &StopReason) {
    let word = match stop {
        StopReason::Finished | StopReason::StopSequence => "stop",
        StopReason::Length => "length",
        StopReason::Tools => "tool_calls",
        StopReason::Refused => "content_filter",
        // The provider's own reason is free text.
        StopReason::Other(_) => "other",
    };
    span.record("gen_ai.response.finish_reasons", word);
}

impl RecordAttributes for Completion {
    fn record_attributes(&mut self, span: Span) {
        record_model(&span, &self.model);
        record_stop_reason(&span, &self.stop);
        record_usage(&span, self.usage);
    }
}

impl RecordAttributes for ChatResponse {
    fn record_attributes(&mut self, span: Span) {
        match self {
            ChatResponse::Parsed(completion) => completion.record_attributes(span),
            ChatResponse::Passthrough { body, usage } => {
                record_usage(&span, *usage);
                let Ok(glance) = serde_json::from_slice::<ResponseSummary>(body) else { return };
                record_model(&span, glance.model.as_deref().unwrap_or_default());
                let words = glance.choices.iter().filter_map(|choice| choice.finish_reason.as_deref());
                let known = words.map(|word| match word {
                    "stop" | "length" | "tool_calls" | "content_filter" => word,
                    _ => "other",
                });
                let known: Vec<&str> = known.collect();
                if !known.is_empty() {
                    span.record("gen_ai.response.finish_reasons", known.join(","));
                }
            }
        }
    }
}

impl RecordAttributes for EmbeddingResponse {
    fn record_attributes(&mut self, span: Span) {
        span.record("gen_ai.usage.input_tokens", self.usage.prompt);
    }
}

//! Tracing spans for provider attempts, following OpenTelemetry's GenAI semantic conventions.
//!
//! A span records the provider, model, outcome and token usage. It never contains prompt or response content, and no
//! setting adds it (S-15). No span is created when no collector is configured.

use serde::Deserialize;
use tracing::field::Empty;
use tracing::{Instrument, Span};

use super::chat::{Stop, Usage};
use super::embeddings::Embedded;
use super::provider::Provider;
use super::stream::Stream;
use super::{Answered, Completion, Delta, Error};
use crate::telemetry::FOR_COLLECTORS;

/// The kind of request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    Chat,
    Embeddings,
}

/// Records response attributes in a span.
pub(super) trait Tells {
    fn tell(&mut self, span: Span);
}

/// The fields read from a passthrough response.
#[derive(Deserialize)]
struct Glance {
    model: Option<String>,
    #[serde(default)]
    choices: Vec<Choice>,
}

#[derive(Deserialize)]
struct Choice {
    finish_reason: Option<String>,
}

/// Runs one attempt in its span.
pub(super) async fn once<T: Tells>(
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
        Ok(answer) => answer.tell(span),
        Err(error) => failed(&span, error),
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
        target: FOR_COLLECTORS,
        "try",
        otel.name = %format_args!("{operation} {model}"),
        otel.kind = "client",
        gen_ai.operation.name = operation,
        gen_ai.provider.name = provider.known_as(),
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

pub(super) fn failed(span: &Span, error: &Error) {
    span.record("error.type", error.kind());
}

/// Records attributes found in stream deltas.
pub(super) fn came(span: &Span, deltas: &[Delta]) {
    if span.is_disabled() {
        return;
    }
    for delta in deltas {
        match delta {
            Delta::Started { model, .. } => answered_by(span, model),
            Delta::Stopped { stop } => stopped(span, stop),
            Delta::Used { usage } => used(span, *usage),
            _ => {}
        }
    }
}

fn answered_by(span: &Span, model: &str) {
    if !model.is_empty() {
        span.record("gen_ai.response.model", model);
    }
}

fn used(span: &Span, usage: Usage) {
    span.record("gen_ai.usage.input_tokens", usage.prompt);
    span.record("gen_ai.usage.output_tokens", usage.completion);
}

fn stopped(span: &Span, stop: &Stop) {
    let word = match stop {
        Stop::Finished | Stop::StopSequence => "stop",
        Stop::Length => "length",
        Stop::Tools => "tool_calls",
        Stop::Refused => "content_filter",
        // The provider's own reason is free text.
        Stop::Other(_) => "other",
    };
    span.record("gen_ai.response.finish_reasons", word);
}

impl Tells for Completion {
    fn tell(&mut self, span: Span) {
        answered_by(&span, &self.model);
        stopped(&span, &self.stop);
        used(&span, self.usage);
    }
}

impl Tells for Answered {
    fn tell(&mut self, span: Span) {
        match self {
            Answered::Read(completion) => completion.tell(span),
            Answered::AsItCame { body, usage } => {
                used(&span, *usage);
                let Ok(glance) = serde_json::from_slice::<Glance>(body) else { return };
                answered_by(&span, glance.model.as_deref().unwrap_or_default());
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

impl Tells for Embedded {
    fn tell(&mut self, span: Span) {
        span.record("gen_ai.usage.input_tokens", self.usage.prompt);
    }
}

impl Tells for Stream {
    /// The span ends with the stream.
    fn tell(&mut self, span: Span) {
        self.within(span);
    }
}

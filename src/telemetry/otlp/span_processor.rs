//! Tracing layer that queues closed spans for export. It never blocks: if the queue is full, spans are dropped and
//! counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use tokio::sync::mpsc;
use tracing::span::{Attributes, Id, Record};
use tracing::{Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use super::attributes::SpanAttributes;
use super::proto::Span;
use super::span_context::{SpanContext, trace_id};

/// Queues spans when they close.
#[derive(Debug)]
pub(in crate::telemetry) struct SpanProcessor {
    pub(super) spans: mpsc::Sender<Span>,
    /// Spans dropped because the queue was full.
    pub(super) dropped: Arc<AtomicU64>,
    /// Sampling ratio of traces.
    pub(super) ratio: f64,
}

/// A span that is not closed yet.
struct OpenSpan {
    context: SpanContext,
    attributes: SpanAttributes,
    started_at: SystemTime,
}

/// Spans of corbie's own crates at level `info` or above.
pub(in crate::telemetry) fn is_exported(metadata: &Metadata<'_>) -> bool {
    let ours = metadata.target().split("::").next().is_some_and(|krate| krate.starts_with("corbie"));
    ours && metadata.is_span() && *metadata.level() <= tracing::Level::INFO
}

impl SpanProcessor {
    /// The parent is the enclosing span, or else the span of the caller.
    fn span_context(&self, around: Option<SpanContext>, said: &SpanAttributes) -> SpanContext {
        around
            .map(|around| SpanContext::child_of(&around))
            .or_else(|| SpanContext::from_traceparent(said.text("traceparent")?))
            .or_else(|| Some(SpanContext::in_trace(trace_id(said.text("trace_id")?)?, self.ratio)))
            .unwrap_or_else(|| SpanContext::root(self.ratio))
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for SpanProcessor {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut said = SpanAttributes::default();
        attributes.record(&mut said);
        let around = span.parent().and_then(|parent| parent.extensions().get::<OpenSpan>().map(|open| open.context));
        let place = self.span_context(around, &said);
        span.extensions_mut().insert(OpenSpan { context: place, attributes: said, started_at: SystemTime::now() });
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        // Formatting a value may log or panic, so the extensions lock is not held meanwhile.
        let Some(mut open) = span.extensions_mut().remove::<OpenSpan>() else { return };
        if open.context.sampled {
            values.record(&mut open.attributes);
        }
        span.extensions_mut().insert(open);
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let Some(span) = context.span(&id) else { return };
        let Some(open) = span.extensions_mut().remove::<OpenSpan>() else { return };
        if !open.context.sampled {
            return;
        }
        let ended = open.attributes.into_span(span.name(), &open.context, open.started_at, SystemTime::now());
        if self.spans.try_send(ended).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use tracing::field::Empty;
    use tracing_subscriber::layer::SubscriberExt;

    use super::super::proto::{SpanKind, StatusCode, Value};
    use super::*;

    /// The spans queued while `happens` runs, and the number of dropped ones.
    fn collected(room: usize, ratio: f64, happens: impl FnOnce()) -> (Vec<Span>, u64) {
        // With a single subscriber, tracing caches a callsite as disabled if the thread of another test reaches it
        // first.
        let _second = tracing::Dispatch::new(tracing::subscriber::NoSubscriber::default());
        let (spans, mut ended) = mpsc::channel(room);
        let dropped = Arc::new(AtomicU64::new(0));
        let collect = SpanProcessor { spans, dropped: dropped.clone(), ratio };
        let filter = tracing_subscriber::filter::filter_fn(is_exported);
        let subscriber = tracing_subscriber::registry().with(collect.with_filter(filter));
        tracing::subscriber::with_default(subscriber, happens);
        let spans = std::iter::from_fn(|| ended.try_recv().ok()).collect();
        (spans, dropped.load(Ordering::Relaxed))
    }

    fn attribute<'a>(span: &'a Span, key: &str) -> Option<&'a Value> {
        span.attributes.iter().find(|attribute| attribute.key == key)?.value.as_ref()?.value.as_ref()
    }

    fn text(text: &str) -> Value {
        Value::StringValue(text.into())
    }

    #[test]
    fn a10_a_request_is_a_server_span_below_its_caller_and_has_what_happens_within_below_it() {
        let (spans, _) = collected(8, 0.0, || {
            let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
            let request =
                tracing::info_span!("request", request_id = %"r1", method = "tools/call", traceparent = parent);
            let _request = request.entered();
            let call = tracing::info_span!("try", otel.name = "chat small", otel.kind = "client", "error.type" = Empty);
            call.record("error.type", "timeout");
        });
        let [call, request] = &spans[..] else { panic!("{spans:?}") };
        assert_eq!((request.name.as_str(), request.kind()), ("tools/call", SpanKind::Server));
        assert_eq!(request.trace_id, 0x4bf92f3577b34da6a3ce929d0e0e4736_u128.to_be_bytes());
        assert_eq!(request.parent_span_id, 0x00f067aa0ba902b7_u64.to_be_bytes());
        assert_eq!(attribute(request, "mcp.method.name"), Some(&text("tools/call")));
        assert_eq!(attribute(request, "corbie.request_id"), Some(&text("r1")));
        assert_eq!(attribute(request, "traceparent"), None);
        assert_eq!((call.name.as_str(), call.kind()), ("chat small", SpanKind::Client));
        assert_eq!((&call.trace_id, &call.parent_span_id), (&request.trace_id, &request.span_id));
        assert_eq!(call.status.as_ref().map(|status| status.code()), Some(StatusCode::Error));
        assert_eq!((request.flags, call.flags), (0x301, 0x101));
        assert!(request.status.is_none() && request.end_time_unix_nano >= call.end_time_unix_nano);
    }

    #[test]
    fn a10_a_trace_that_is_only_named_is_kept_and_other_paths_are_no_methods() {
        let (spans, _) = collected(8, 1.0, || {
            let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
            drop(tracing::info_span!("request", method = "/v1/models", trace_id = %trace));
            drop(tracing::info_span!("request", method = "ping", trace_id = "no trace"));
            drop(tracing::info_span!("request", method = "tools/call", tool = "echo", session_id = "s1"));
        });
        assert_eq!(spans[0].trace_id, 0x4bf92f3577b34da6a3ce929d0e0e4736_u128.to_be_bytes());
        assert!(spans[0].parent_span_id.is_empty());
        assert_eq!(attribute(&spans[0], "url.path"), Some(&text("/v1/models")));
        assert_eq!(attribute(&spans[0], "mcp.method.name"), None);
        assert_ne!(spans[1].trace_id, spans[0].trace_id);
        assert_eq!(spans[2].name, "tools/call echo");
        assert_eq!(attribute(&spans[2], "gen_ai.tool.name"), Some(&text("echo")));
        assert_eq!(attribute(&spans[2], "mcp.session.id"), Some(&text("s1")));
    }

    #[test]
    fn a10_what_finds_no_room_is_counted_and_nobody_waits() {
        let (spans, dropped) = collected(2, 1.0, || (0..5).for_each(|_| drop(tracing::info_span!("route"))));
        assert_eq!((spans.len(), dropped), (2, 3));
    }

    #[test]
    fn a10_only_spans_of_ours_and_of_sampled_traces_are_sent() {
        let (spans, _) = collected(8, 1.0, || {
            drop(tracing::info_span!(target: "rmcp::service", "message"));
            drop(tracing::debug_span!("details"));
        });
        assert!(spans.is_empty(), "{spans:?}");
        let (spans, dropped) = collected(8, 0.0, || {
            let _outer = tracing::info_span!("request").entered();
            drop(tracing::info_span!("route"));
        });
        assert!(spans.is_empty() && dropped == 0, "{spans:?}");
    }

    #[test]
    fn s15_texts_are_cut_and_lists_are_lists() {
        let (spans, _) = collected(8, 1.0, || {
            let long = "ä".repeat(10_000);
            drop(tracing::info_span!(
                "try",
                gen_ai.request.model = long,
                gen_ai.response.finish_reasons = "stop,length"
            ));
        });
        let Some(Value::StringValue(model)) = attribute(&spans[0], "gen_ai.request.model") else { panic!("{spans:?}") };
        assert_eq!(model.chars().count(), 128);
        let Some(Value::ArrayValue(list)) = attribute(&spans[0], "gen_ai.response.finish_reasons") else {
            panic!("{spans:?}")
        };
        assert_eq!(list.values.len(), 2);
    }
}

//! Tracing layer that formats each event, with the fields of its spans, as one line.

use std::time::SystemTime;

use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use super::log_event::{Fields, LogEvent};

/// Formats one line, including the newline.
pub(super) type FormatLine = fn(&LogEvent<'_>) -> String;

/// Writes each event to the sink in a single call, so that lines of different threads do not interleave.
pub(super) struct LineLayer<Sink> {
    write: FormatLine,
    sink: Sink,
}

impl<Sink: Fn(&str)> LineLayer<Sink> {
    pub(super) fn new(write: FormatLine, sink: Sink) -> LineLayer<Sink> {
        LineLayer { write, sink }
    }
}

impl<S, Sink> Layer<S> for LineLayer<Sink>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    Sink: Fn(&str) + 'static,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        if let Some(span) = context.span(id) {
            span.extensions_mut().insert(fields);
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        // Formatting a value may log or panic, so the extensions lock is not held meanwhile.
        let mut fields = span.extensions_mut().remove::<Fields>().unwrap_or_default();
        values.record(&mut fields);
        span.extensions_mut().insert(fields);
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let scope = context.event_scope(event).into_iter().flat_map(|scope| scope.from_root());
        let spans: Vec<_> =
            scope.map(|span| (span.name(), span.extensions().get::<Fields>().cloned().unwrap_or_default())).collect();
        let entry = LogEvent {
            time: SystemTime::now(),
            level: *event.metadata().level(),
            fields,
            spans: spans.iter().map(|(name, fields)| (*name, fields)).collect(),
        };
        (self.sink)(&(self.write)(&entry));
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::{Arc, Mutex};

    use tracing_subscriber::layer::SubscriberExt;

    use super::*;

    /// The lines logged while `happens` runs.
    pub(crate) fn logged(write: FormatLine, happens: impl FnOnce()) -> Vec<String> {
        // With a single subscriber, tracing caches a callsite as disabled if the thread of another test reaches it
        // first.
        let _second = tracing::Dispatch::new(tracing::subscriber::NoSubscriber::default());
        let lines = Arc::new(Mutex::new(Vec::new()));
        let kept = lines.clone();
        let layer = LineLayer::new(write, move |line: &str| kept.lock().unwrap().push(line.to_owned()));
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), happens);
        let lines = lines.lock().unwrap();
        lines.clone()
    }
}

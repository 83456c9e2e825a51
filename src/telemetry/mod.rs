//! Logging to stderr, never to stdout, and span export.

mod json;
mod layer;
mod log_event;
pub mod otlp;
mod text;

use std::io::{IsTerminal, Write};

use tracing::level_filters::LevelFilter;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::colour;
use crate::config::Config;
use crate::config::log::{Log, LogFormat, LogLevelSetting};
use crate::util::span_target::COLLECTOR_TARGET;
use layer::LineLayer;
pub use otlp::ExporterHandle;

/// Name of the span around every request.
const REQUEST_SPAN: &str = "request";

/// Starts logging. Later calls have no effect, so tests may call it too.
pub fn start(settings: &Log) {
    start_with(filter(level(settings)), settings.format, None);
}

/// Starts logging for a server, which also exports spans if a collector is configured.
pub fn start_exporting(config: &Config) -> ExporterHandle {
    let (collect, exporting) = otlp::prepare(config);
    start_with(filter(level(&config.log)), config.log.format, collect);
    exporting
}

/// Logs at level `warn`, except for `modules`, which log errors only.
pub fn start_with_quiet_modules(modules: &[&'static str], format: LogFormat) {
    let errors = modules.iter().map(|module| (*module, LevelFilter::ERROR));
    start_with(filter(LevelFilter::WARN).with_targets(errors), format, None);
}

fn level(settings: &Log) -> LevelFilter {
    match settings.level {
        LogLevelSetting::Debug => LevelFilter::DEBUG,
        LogLevelSetting::Info => LevelFilter::INFO,
        LogLevelSetting::Warn => LevelFilter::WARN,
        LogLevelSetting::Error => LevelFilter::ERROR,
    }
}

fn start_with(filter: Targets, format: LogFormat, collect: Option<otlp::SpanProcessor>) {
    let write: layer::FormatLine = match format {
        LogFormat::Text if colour::is_enabled(std::io::stderr().is_terminal()) => text::with_colours,
        LogFormat::Text => text::plain,
        LogFormat::Json => json::line,
    };
    // A failure to write to stderr cannot be reported.
    let lines = LineLayer::new(write, |line: &str| drop(std::io::stderr().lock().write_all(line.as_bytes())));
    let registry = tracing_subscriber::registry();
    let started = match collect {
        // One global filter is cheaper than one filter per layer.
        None => registry.with(lines).with(filter).try_init(),
        Some(collect) => registry.with(lines.with_filter(filter)).with(otlp::with_span_filter(collect)).try_init(),
    };
    if started.is_ok() {
        std::panic::set_hook(Box::new(log_panic));
    }
}

/// Logs a panic as an error. Its message may contain user text (S-15), so it is logged at level `debug` only.
fn log_panic(panic: &std::panic::PanicHookInfo<'_>) {
    let location = panic.location().map(ToString::to_string).unwrap_or_default();
    tracing::error!(location, "panic; set `log.level: debug` to log its message");
    tracing::debug!(payload = panic.payload_as_str().unwrap_or_default(), "panic message");
}

/// Silences `rmcp`, the MCP client library: it logs whole messages, including user text. `upstream` logs the relevant
/// parts.
fn filter(level: LevelFilter) -> Targets {
    let off = ["rmcp", COLLECTOR_TARGET].map(|target| (target, LevelFilter::OFF));
    Targets::new().with_default(level).with_targets(off)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracing::Level;

    #[test]
    fn s01_messages_of_other_servers_are_not_logged_at_any_level() {
        let filter = filter(LevelFilter::DEBUG);
        assert!(!filter.would_enable("rmcp::service", &Level::ERROR));
        assert!(filter.would_enable("corbie_classify::external_classifier::state", &Level::DEBUG));
        assert!(!filter.would_enable("corbie_classify::external_classifier::state", &Level::TRACE));
    }

    #[test]
    fn s03_s15_a_panic_is_a_line_and_its_words_are_for_debugging_alone() {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(log_panic));
        let lines = layer::tests::logged(text::plain, || {
            let _ = std::panic::catch_unwind(|| panic!("inside `my\ndiary\u{1b}[2J`"));
        });
        std::panic::set_hook(before);
        let [error, debug] = &lines[..] else { panic!("{lines:?}") };
        assert!(error.contains("ERROR panic; set `log.level") && error.contains("mod.rs:"), "{error}");
        assert!(!error.contains("diary"), "{error}");
        assert!(debug.contains("DEBUG") && debug.contains("diary"), "{debug}");
        assert!(lines.iter().all(|line| line.matches('\n').count() == 1 && !line.contains('\u{1b}')), "{lines:?}");
    }
}

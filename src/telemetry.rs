//! What the operator sees: events on stderr, never on stdout.

use std::io::IsTerminal;

use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::config::log::Level;

/// Starts logging. Later calls change nothing, so tests may call it too.
pub fn start(level: Level) {
    let level = match level {
        Level::Debug => LevelFilter::DEBUG,
        Level::Info => LevelFilter::INFO,
        Level::Warn => LevelFilter::WARN,
        Level::Error => LevelFilter::ERROR,
    };
    // The library that speaks to other MCP servers logs whole messages; what matters of them is told by `upstream`.
    let filter = Targets::new().with_default(level).with_target("rmcp", LevelFilter::OFF);
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false);
    let _ = tracing_subscriber::registry().with(lines).with(filter).try_init();
}

//! What the operator sees: events on stderr, never on stdout.

use std::io::IsTerminal;

use tracing::level_filters::LevelFilter;

use crate::config::log::Level;

/// Starts logging. Later calls change nothing, so tests may call it too.
pub fn start(level: Level) {
    let level = match level {
        Level::Debug => LevelFilter::DEBUG,
        Level::Info => LevelFilter::INFO,
        Level::Warn => LevelFilter::WARN,
        Level::Error => LevelFilter::ERROR,
    };
    let _ = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false)
        .try_init();
}

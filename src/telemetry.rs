//! What the operator sees: events on stderr, never on stdout.

use std::io::IsTerminal;

use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::config::log::Level;

/// Starts logging. Later calls change nothing, so tests may call it too.
pub fn start(level: Level) {
    start_with(filter(match level {
        Level::Debug => LevelFilter::DEBUG,
        Level::Info => LevelFilter::INFO,
        Level::Warn => LevelFilter::WARN,
        Level::Error => LevelFilter::ERROR,
    }));
}

/// Starts logging warnings of everything but some modules, of which only errors are told.
pub fn start_without(modules: &[&'static str]) {
    let errors = modules.iter().map(|module| (*module, LevelFilter::ERROR));
    start_with(filter(LevelFilter::WARN).with_targets(errors));
}

fn start_with(filter: Targets) {
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false);
    let _ = tracing_subscriber::registry().with(lines).with(filter).try_init();
}

/// The library that speaks to other MCP servers logs whole messages, with the texts of users in them. What matters of
/// it is told by `upstream`.
fn filter(level: LevelFilter) -> Targets {
    Targets::new().with_default(level).with_target("rmcp", LevelFilter::OFF)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracing::Level;

    #[test]
    fn s01_messages_of_other_servers_are_not_logged_at_any_level() {
        let filter = filter(LevelFilter::DEBUG);
        assert!(!filter.would_enable("rmcp::service", &Level::ERROR));
        assert!(filter.would_enable("corbie::upstream::state", &Level::DEBUG));
        assert!(!filter.would_enable("corbie::upstream::state", &Level::TRACE));
    }
}

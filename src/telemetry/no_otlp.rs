//! No-op exporter for builds without the `otlp` feature.

use tracing_subscriber::layer::Identity;

use crate::config::Config;

/// Exports nothing.
#[derive(Debug)]
pub struct Exporting;

pub(super) type Collect = Identity;

pub(super) fn prepare(_: &Config) -> (Option<Collect>, Exporting) {
    (None, Exporting)
}

/// Returns the no-op layer without a filter.
pub(super) fn wanted(collect: Collect) -> Identity {
    collect
}

impl Exporting {
    /// Returns immediately.
    pub fn finish(self) {}
}

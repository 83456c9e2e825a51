//! What takes the place of the exporter in a program that was built without one.

use tracing_subscriber::layer::Identity;

use crate::config::Config;

/// Nothing is exported.
#[derive(Debug)]
pub struct Exporting;

pub(super) type Collect = Identity;

pub(super) fn prepare(_: &Config) -> (Option<Collect>, Exporting) {
    (None, Exporting)
}

/// Has nothing to want.
pub(super) fn wanted(collect: Collect) -> Identity {
    collect
}

impl Exporting {
    /// There is nothing to wait for.
    pub fn finish(self) {}
}

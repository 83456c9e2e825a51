//! Tool discovery across modules (M-68).
//!
//! A module is a function that returns tools. A module that fails or panics is recorded and skipped; the scan
//! continues. The result of a scan is cached for a TTL and can be forced.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::error::RegistrationError;
use crate::tool::Tool;

/// A part of the program that provides tools.
#[derive(Clone)]
pub struct Module {
    pub name: String,
    pub(crate) load: Arc<dyn Fn() -> Result<Vec<Tool>, RegistrationError> + Send + Sync>,
}

/// Result of the last scan, per module.
#[derive(Debug, Clone, Default, Serialize)]
pub struct DiscoveryReport {
    pub modules: Vec<ModuleReport>,
}

#[derive(Debug, Clone, Serialize)]
pub struct ModuleReport {
    pub module: String,
    pub tools: usize,
    /// Why the module, or one of its tools, was skipped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The last scan and its time.
#[derive(Debug)]
pub(crate) struct LastScan {
    pub(crate) at: Instant,
    pub(crate) report: DiscoveryReport,
}

impl Module {
    pub fn new(
        name: impl Into<String>,
        load: impl Fn() -> Result<Vec<Tool>, RegistrationError> + Send + Sync + 'static,
    ) -> Module {
        Module { name: name.into(), load: Arc::new(load) }
    }
}

impl std::fmt::Debug for Module {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Module").field(&self.name).finish()
    }
}

impl LastScan {
    pub(crate) fn is_fresh(&self, ttl: Duration) -> bool {
        self.at.elapsed() < ttl
    }
}

/// Loads every module; `register` takes each tool and may reject it.
pub(crate) fn scan(
    modules: &[Module],
    mut register: impl FnMut(Tool) -> Result<(), RegistrationError>,
) -> DiscoveryReport {
    let modules = modules
        .iter()
        .map(|module| {
            let mut found = ModuleReport { module: module.name.clone(), tools: 0, error: None };
            match catch_unwind(AssertUnwindSafe(|| (module.load)())) {
                Ok(Ok(tools)) => {
                    for tool in tools {
                        match register(tool) {
                            Ok(()) => found.tools += 1,
                            Err(error) => found.error = Some(error.to_string()),
                        }
                    }
                }
                Ok(Err(error)) => found.error = Some(error.to_string()),
                Err(_) => found.error = Some("module panicked while loading".into()),
            }
            if let Some(error) = &found.error {
                tracing::warn!(module = %found.module, %error, "module skipped");
            }
            found
        })
        .collect();
    DiscoveryReport { modules }
}

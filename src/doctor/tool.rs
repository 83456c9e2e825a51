//! `check_setup`: the checks as an MCP tool, without those of the user's environment. Only for trusted callers, because
//! it returns paths.

use std::sync::Arc;
use std::time::{Duration, Instant};

use corbie_mcp::{Json, RegistrationError, Tool, TrustLevel};
use tokio::sync::Mutex;

use super::{SetupContext, SetupReport, run_checks};
use crate::classify::Classification;
use crate::config::{Config, Sources};
use crate::inference::Inference;

const DESCRIPTION: &str = "Diagnose the server's setup: checks the configuration, models, document processing, OCR, \
providers, permissions, disk space and certificate, and returns each problem with how to fix it. Changes nothing and \
makes no network requests to other machines. Only for trusted callers, because it returns paths.";

/// Sum of the timeouts of all checks.
const TOOL_TIMEOUT: Duration = Duration::from_secs(6 * 60);
/// How long a report is cached: the checks start processes and run models.
const CACHE_TTL: Duration = Duration::from_secs(10);

/// A running server as the subject of the checks.
#[derive(Debug, Clone)]
pub struct ServerContext {
    /// The settings it was started with.
    pub config: Config,
    /// Sources for reloading the settings; `None` if they were constructed in the program.
    pub sources: Option<Sources>,
    pub inference: Inference,
    pub classification: Classification,
}

pub fn tool(server: ServerContext) -> Result<Tool, RegistrationError> {
    let server = Arc::new(server);
    let last: Arc<Mutex<Option<(Instant, SetupReport)>>> = Arc::default();
    Tool::builder("check_setup")
        .title("Check the setup")
        .description(DESCRIPTION)
        .module("corbie::doctor")
        .no_input()
        .output::<Json<SetupReport>>()
        .min_trust(TrustLevel::Trusted)
        .timeout(TOOL_TIMEOUT)
        .run(move |_, _| {
            let (server, last) = (server.clone(), last.clone());
            async move {
                // One run at a time. Callers that waited get the report of the previous run.
                let mut last = last.lock().await;
                if let Some((_, report)) = last.as_ref().filter(|(at, _)| at.elapsed() < CACHE_TTL) {
                    return Json(report.clone());
                }
                let report = run_checks(server.subject(), |_| {}).await;
                *last = Some((Instant::now(), report.clone()));
                Json(report)
            }
        })
}

impl ServerContext {
    /// If the settings cannot be loaded any more, the error is reported and the active settings are checked.
    fn subject(&self) -> SetupContext {
        let read = self.sources.clone().map(Config::load);
        let fresh = read.as_ref().and_then(|read| read.as_ref().ok()).map(|loaded| loaded.config.clone());
        SetupContext {
            config: Some(fresh.unwrap_or_else(|| self.config.clone())),
            load_result: read,
            client_dirs: None,
            servers: Vec::new(),
            online: false,
            running: Some((self.inference.clone(), self.classification.clone())),
        }
    }
}

//! `check_setup`: the same checks for who looks after a server from elsewhere, without those about the person's own
//! surroundings. It shows paths, so it is for trusted callers alone.

use std::sync::Arc;
use std::time::{Duration, Instant};

use corbie_mcp::{Json, RegistrationError, Tool, TrustLevel};
use tokio::sync::Mutex;

use super::{Report, Subject, examine};
use crate::classify::Classification;
use crate::config::{Config, Sources};
use crate::inference::Inference;

const DESCRIPTION: &str = "Checks how this server is set up: settings, models, documents, OCR, providers, permissions, \
disk, certificate. Tells what was found and what to do about problems. Changes nothing and asks nobody outside the \
machine. For trusted callers, as it shows paths.";

/// Long enough for every check to take all its time.
const LIMIT: Duration = Duration::from_secs(6 * 60);
/// Whoever asks again within this gets the same answer: the checks start processes and run models.
const FRESH: Duration = Duration::from_secs(10);

/// What a server can be looked at with.
#[derive(Debug, Clone)]
pub struct Server {
    /// What it was started with.
    pub config: Config,
    /// Where the settings come from, to read them again; none where they were made in the program.
    pub sources: Option<Sources>,
    pub inference: Inference,
    pub classification: Classification,
}

pub fn tool(server: Server) -> Result<Tool, RegistrationError> {
    let server = Arc::new(server);
    let last: Arc<Mutex<Option<(Instant, Report)>>> = Arc::default();
    Tool::builder("check_setup")
        .title("Check the setup")
        .description(DESCRIPTION)
        .module("corbie::doctor")
        .no_input()
        .output::<Json<Report>>()
        .least_trust(TrustLevel::Trusted)
        .timeout(LIMIT)
        .run(move |_, _| {
            let (server, last) = (server.clone(), last.clone());
            async move {
                // One at a time; who waited gets what the one before found.
                let mut last = last.lock().await;
                if let Some((_, report)) = last.as_ref().filter(|(at, _)| at.elapsed() < FRESH) {
                    return Json(report.clone());
                }
                let report = examine(server.subject(), |_| {}).await;
                *last = Some((Instant::now(), report.clone()));
                Json(report)
            }
        })
}

impl Server {
    /// Settings that cannot be read any more are told of, and those that the server runs with are looked at.
    fn subject(&self) -> Subject {
        let read = self.sources.clone().map(Config::load);
        let fresh = read.as_ref().and_then(|read| read.as_ref().ok()).map(|loaded| loaded.config.clone());
        Subject {
            config: Some(fresh.unwrap_or_else(|| self.config.clone())),
            read,
            places: None,
            online: false,
            running: Some((self.inference.clone(), self.classification.clone())),
        }
    }
}

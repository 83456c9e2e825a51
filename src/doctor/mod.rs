//! Setup checks: settings, ports, models, documents, providers, permissions, disk. One file per check. Each reports its
//! findings and how to fix them.
//!
//! The checks send nothing to other machines unless that is requested, and change no stored data. A check that hangs or
//! panics is reported as a finding.

mod access;
mod certificate;
mod client_url;
mod clients;
mod configuration;
mod database;
mod disk;
mod health;
mod models;
mod ocr;
mod permissions;
mod ports;
mod process;
mod providers;
pub mod tool;
mod validity;
mod workers;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Serialize;
use tokio_util::task::AbortOnDropHandle;

use crate::classify::Classification;
use crate::config::{Config, ConfigError, Loaded, Sources};
use crate::connect::Places;
use crate::inference::Inference;

/// Input of the checks.
#[derive(Debug)]
pub struct Subject {
    /// `None` if the settings are invalid and no server runs with earlier ones.
    pub config: Option<Config>,
    /// Result of loading the settings; `None` if they do not come from files.
    pub read: Option<Result<Loaded, ConfigError>>,
    /// Locations of client configuration files; `None` to skip the checks of clients and ports.
    pub places: Option<Places>,
    /// Also contact remote providers.
    pub online: bool,
    /// Models and classifier of the running server.
    pub running: Option<(Inference, Classification)>,
}

/// Result of a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Check {
    pub name: &'static str,
    pub state: State,
    /// Finding of the check
    pub message: String,
    /// Suggested solution
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum State {
    Ok,
    /// A warning without a problem
    Warning,
    Problem,
}

/// Results of all checks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Report {
    pub checks: Vec<Check>,
    /// Number of checks with a problem
    pub problems: usize,
}

/// Findings of a check before they are merged.
#[derive(Debug, Default)]
struct Findings(Vec<(State, String, Option<String>)>);

/// A check with its limits.
struct Item {
    name: &'static str,
    /// Timeout.
    limit: Duration,
    /// Precondition of the check.
    needs: Needs,
    /// Returns `None` if the check does not apply.
    run: fn(Arc<Subject>) -> BoxFuture<'static, Option<Check>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Needs {
    Nothing,
    Settings,
    /// The user's environment.
    Places,
    Both,
}

/// Timeout of checks that only read.
const SHORT: Duration = Duration::from_secs(10);
/// Timeout of checks that compute or wait, with a margin for machines with few processors.
const LONG: Duration = Duration::from_secs(60);

const CHECKS: [Item; 12] = [
    Item { name: "configuration", limit: SHORT, needs: Needs::Nothing, run: |it| Box::pin(configuration::check(it)) },
    Item { name: "ports", limit: SHORT, needs: Needs::Both, run: |it| Box::pin(ports::check(it)) },
    Item { name: "access", limit: SHORT, needs: Needs::Settings, run: |it| Box::pin(access::check(it)) },
    Item { name: "certificate", limit: SHORT, needs: Needs::Settings, run: |it| Box::pin(certificate::check(it)) },
    Item { name: "models", limit: LONG, needs: Needs::Settings, run: |it| Box::pin(models::check(it)) },
    Item { name: "documents", limit: LONG, needs: Needs::Settings, run: |it| Box::pin(workers::check(it)) },
    Item { name: "ocr", limit: LONG, needs: Needs::Settings, run: |it| Box::pin(ocr::check(it)) },
    Item { name: "providers", limit: LONG, needs: Needs::Settings, run: |it| Box::pin(providers::check(it)) },
    Item { name: "permissions", limit: SHORT, needs: Needs::Settings, run: |it| Box::pin(permissions::check(it)) },
    Item { name: "disk", limit: LONG, needs: Needs::Settings, run: |it| Box::pin(disk::check(it)) },
    Item { name: "database", limit: LONG, needs: Needs::Settings, run: |it| Box::pin(database::check(it)) },
    Item { name: "clients", limit: SHORT, needs: Needs::Places, run: |it| Box::pin(clients::check(it)) },
];

/// Runs all applicable checks in order and reports the name of each before it starts.
pub async fn examine(subject: Subject, mut tell: impl FnMut(&str)) -> Report {
    let subject = Arc::new(subject);
    let mut checks = Vec::new();
    for item in CHECKS.iter().filter(|item| subject.has(item.needs)) {
        tell(item.name);
        checks.extend(bounded(item, subject.clone()).await);
    }
    let problems = checks.iter().filter(|check| check.state == State::Problem).count();
    Report { checks, problems }
}

/// Runs one check with a timeout, and catches panics.
async fn bounded(item: &Item, subject: Arc<Subject>) -> Option<Check> {
    // Dropping the future aborts the check.
    let mut task = AbortOnDropHandle::new(tokio::spawn((item.run)(subject)));
    let failed = |message: String| {
        let advice = "try again; if it stays so, report it with what `corbie doctor --json` prints".to_owned();
        Some(Check { name: item.name, state: State::Problem, message, advice: Some(advice) })
    };
    match tokio::time::timeout(item.limit, &mut task).await {
        Ok(Ok(check)) => check,
        Ok(Err(_)) => failed("the check itself failed in a way nobody expected".into()),
        Err(_) => {
            task.abort();
            failed(format!("the check did not end within {} seconds", item.limit.as_secs()))
        }
    }
}

impl Subject {
    /// For the command line: loads the settings from their sources.
    pub fn of(sources: Sources, online: bool) -> Subject {
        let places = Places::new(&sources.variables, &sources.folder);
        let read = Config::load(sources);
        let config = read.as_ref().ok().map(|loaded| loaded.config.clone());
        Subject { config, read: Some(read), places: Some(places), online, running: None }
    }

    fn has(&self, needs: Needs) -> bool {
        let (settings, places) = (self.config.is_some(), self.places.is_some());
        match needs {
            Needs::Nothing => true,
            Needs::Settings => settings,
            Needs::Places => places,
            Needs::Both => settings && places,
        }
    }
}

// === impl Findings ===

impl Findings {
    fn ok(&mut self, found: impl Into<String>) {
        self.0.push((State::Ok, found.into(), None));
    }

    fn note(&mut self, found: impl Into<String>, advice: impl Into<String>) {
        self.0.push((State::Warning, found.into(), Some(advice.into())));
    }

    fn problem(&mut self, found: impl Into<String>, advice: impl Into<String>) {
        self.0.push((State::Problem, found.into(), Some(advice.into())));
    }

    /// Merges the findings into one check with the highest severity. Findings of lower severity are omitted.
    fn check(self, name: &'static str) -> Option<Check> {
        let state = self.0.iter().map(|(state, ..)| *state).max()?;
        let told = || self.0.iter().filter(|(found, ..)| *found == state);
        let message = told().map(|(_, found, _)| found.as_str()).collect::<Vec<_>>().join("; ");
        let mut advice: Vec<&str> = told().filter_map(|(.., advice)| advice.as_deref()).collect();
        advice.dedup();
        let advice = (!advice.is_empty()).then(|| advice.join("; "));
        Some(Check { name, state, message, advice })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject() -> Subject {
        Subject { config: None, read: None, places: None, online: false, running: None }
    }

    async fn bounded_by(limit: Duration, run: fn(Arc<Subject>) -> BoxFuture<'static, Option<Check>>) -> Check {
        let item = Item { name: "one", limit, needs: Needs::Nothing, run };
        bounded(&item, Arc::new(subject())).await.unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_check_that_hangs_is_ended_and_told_of() {
        let check = bounded_by(SHORT, |_| Box::pin(std::future::pending())).await;
        assert_eq!((check.state, check.message.as_str()), (State::Problem, "the check did not end within 10 seconds"));
    }

    #[tokio::test]
    async fn a_check_that_panics_is_told_of() {
        let check = bounded_by(SHORT, |_| Box::pin(async { panic!("as the test wants it") })).await;
        assert_eq!(check.state, State::Problem);
        assert!(check.message.contains("nobody expected"), "{check:?}");
    }

    #[test]
    fn findings_are_as_bad_as_the_worst_of_them() {
        let mut findings = Findings::default();
        findings.ok("fine");
        findings.problem("one", "do this");
        findings.problem("two", "do this");
        let check = findings.check("x").unwrap();
        assert_eq!(
            (check.state, check.message.as_str(), check.advice.as_deref()),
            (State::Problem, "one; two", Some("do this"))
        );
        assert_eq!(Findings::default().check("x"), None);
    }
}

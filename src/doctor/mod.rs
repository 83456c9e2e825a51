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
mod health_probe;
mod listening_process;
mod models;
mod ocr;
mod permissions;
mod ports;
mod providers;
pub mod tool;
mod workers;
mod x509_validity;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Serialize;
use tokio_util::task::AbortOnDropHandle;

use crate::classify::Classification;
use crate::config::{Config, ConfigError, LoadedConfig, Sources};
use crate::connect::ClientDirs;
use crate::inference::Inference;
use crate::running_servers::{self, RunningServer};
use crate::util::os_error::plain_message;

/// Input of the checks.
#[derive(Debug)]
pub struct SetupContext {
    /// `None` if the settings are invalid and no server runs with earlier ones.
    pub config: Option<Config>,
    /// Result of loading the settings; `None` if they do not come from files.
    pub load_result: Option<Result<LoadedConfig, ConfigError>>,
    /// Locations of client configuration files; `None` to skip the checks of clients and ports.
    pub client_dirs: Option<ClientDirs>,
    /// Running servers of this user, wherever they listen.
    pub servers: Vec<RunningServer>,
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
pub struct SetupReport {
    pub checks: Vec<Check>,
    /// Number of checks with a problem
    pub problems: usize,
}

/// Findings of a check before they are merged.
#[derive(Debug, Default)]
struct Findings(Vec<(State, String, Option<String>)>);

/// A check with its limits.
struct CheckDefinition {
    name: &'static str,
    /// Timeout.
    limit: Duration,
    /// Precondition of the check.
    needs: Requirement,
    /// Returns `None` if the check does not apply.
    run: fn(Arc<SetupContext>) -> BoxFuture<'static, Option<Check>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Requirement {
    Nothing,
    Settings,
    /// The user's environment.
    ClientDirs,
    Both,
}

/// Timeout of checks that only read.
const QUICK_CHECK_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout of checks that compute or wait, with a margin for machines with few processors.
const SLOW_CHECK_TIMEOUT: Duration = Duration::from_secs(60);

const CHECKS: [CheckDefinition; 12] = [
    CheckDefinition {
        name: "configuration",
        limit: QUICK_CHECK_TIMEOUT,
        needs: Requirement::Nothing,
        run: |it| Box::pin(configuration::check(it)),
    },
    CheckDefinition {
        name: "ports",
        limit: QUICK_CHECK_TIMEOUT,
        needs: Requirement::Both,
        run: |it| Box::pin(ports::check(it)),
    },
    CheckDefinition {
        name: "access",
        limit: QUICK_CHECK_TIMEOUT,
        needs: Requirement::Settings,
        run: |it| Box::pin(access::check(it)),
    },
    CheckDefinition {
        name: "certificate",
        limit: QUICK_CHECK_TIMEOUT,
        needs: Requirement::Settings,
        run: |it| Box::pin(certificate::check(it)),
    },
    CheckDefinition {
        name: "models",
        limit: SLOW_CHECK_TIMEOUT,
        needs: Requirement::Settings,
        run: |it| Box::pin(models::check(it)),
    },
    CheckDefinition {
        name: "documents",
        limit: SLOW_CHECK_TIMEOUT,
        needs: Requirement::Settings,
        run: |it| Box::pin(workers::check(it)),
    },
    CheckDefinition {
        name: "ocr",
        limit: SLOW_CHECK_TIMEOUT,
        needs: Requirement::Settings,
        run: |it| Box::pin(ocr::check(it)),
    },
    CheckDefinition {
        name: "providers",
        limit: SLOW_CHECK_TIMEOUT,
        needs: Requirement::Settings,
        run: |it| Box::pin(providers::check(it)),
    },
    CheckDefinition {
        name: "permissions",
        limit: QUICK_CHECK_TIMEOUT,
        needs: Requirement::Settings,
        run: |it| Box::pin(permissions::check(it)),
    },
    CheckDefinition {
        name: "disk",
        limit: SLOW_CHECK_TIMEOUT,
        needs: Requirement::Settings,
        run: |it| Box::pin(disk::check(it)),
    },
    CheckDefinition {
        name: "database",
        limit: SLOW_CHECK_TIMEOUT,
        needs: Requirement::Settings,
        run: |it| Box::pin(database::check(it)),
    },
    CheckDefinition {
        name: "clients",
        limit: QUICK_CHECK_TIMEOUT,
        needs: Requirement::ClientDirs,
        run: |it| Box::pin(clients::check(it)),
    },
];

/// Runs all applicable checks in order and reports the name of each before it starts.
pub async fn run_checks(subject: SetupContext, mut tell: impl FnMut(&str)) -> SetupReport {
    let subject = Arc::new(subject);
    let mut checks = Vec::new();
    for item in CHECKS.iter().filter(|item| subject.satisfies(item.needs)) {
        tell(item.name);
        checks.extend(run_with_timeout(item, subject.clone()).await);
    }
    let problems = checks.iter().filter(|check| check.state == State::Problem).count();
    SetupReport { checks, problems }
}

/// Runs one check with a timeout, and catches panics.
async fn run_with_timeout(item: &CheckDefinition, subject: Arc<SetupContext>) -> Option<Check> {
    // Dropping the future aborts the check.
    let mut task = AbortOnDropHandle::new(tokio::spawn((item.run)(subject)));
    let failed = |message: String| {
        let advice =
            "try again; if the problem persists, report it with the output of `corbie doctor --json`".to_owned();
        Some(Check { name: item.name, state: State::Problem, message, advice: Some(advice) })
    };
    match tokio::time::timeout(item.limit, &mut task).await {
        Ok(Ok(check)) => check,
        Ok(Err(_)) => failed("the check failed with an internal error".into()),
        Err(_) => {
            task.abort();
            failed(format!("the check timed out after {} seconds", item.limit.as_secs()))
        }
    }
}

impl SetupContext {
    /// For the command line: loads the settings from their sources.
    pub fn from_sources(sources: Sources, online: bool) -> SetupContext {
        let places = ClientDirs::new(&sources.variables, &sources.folder);
        let servers = running_servers::find(&sources.variables);
        let read = Config::load(sources);
        let config = read.as_ref().ok().map(|loaded| loaded.config.clone());
        SetupContext { config, load_result: Some(read), client_dirs: Some(places), servers, online, running: None }
    }

    fn satisfies(&self, needs: Requirement) -> bool {
        let (settings, places) = (self.config.is_some(), self.client_dirs.is_some());
        match needs {
            Requirement::Nothing => true,
            Requirement::Settings => settings,
            Requirement::ClientDirs => places,
            Requirement::Both => settings && places,
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
        let message = told().map(|(_, found, _)| plain_message(found)).collect::<Vec<_>>().join("; ");
        let mut advice: Vec<&str> = told().filter_map(|(.., advice)| advice.as_deref()).collect();
        advice.dedup();
        let advice = (!advice.is_empty()).then(|| advice.join("; "));
        Some(Check { name, state, message, advice })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject() -> SetupContext {
        SetupContext {
            config: None,
            load_result: None,
            client_dirs: None,
            servers: Vec::new(),
            online: false,
            running: None,
        }
    }

    async fn bounded_by(limit: Duration, run: fn(Arc<SetupContext>) -> BoxFuture<'static, Option<Check>>) -> Check {
        let item = CheckDefinition { name: "one", limit, needs: Requirement::Nothing, run };
        run_with_timeout(&item, Arc::new(subject())).await.unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn hanging_check_times_out() {
        let check = bounded_by(QUICK_CHECK_TIMEOUT, |_| Box::pin(std::future::pending())).await;
        assert_eq!((check.state, check.message.as_str()), (State::Problem, "the check timed out after 10 seconds"));
    }

    #[tokio::test]
    async fn panicking_check_is_a_problem() {
        let check = bounded_by(QUICK_CHECK_TIMEOUT, |_| Box::pin(async { panic!("panic of the test") })).await;
        assert_eq!(check.state, State::Problem);
        assert!(check.message.contains("internal error"), "{check:?}");
    }

    #[test]
    fn merged_findings_have_the_highest_severity() {
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

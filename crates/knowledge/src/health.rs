//! Health of the knowledge base, measured on request (K-102, K-105).

use std::io::Write;

use serde_json::{Value, json};

use super::document::BaseName;
use super::store::HealthDiagnostic;
use super::{Knowledge, UPLOAD_DIR, run_blocking};
use corbie_util::fs::dir_permissions::{self, create_private_subdir};
use corbie_util::sanitize::without_folders;

/// Result of all health checks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    pub connected: bool,
    pub accessible: bool,
    pub model_loaded: bool,
    /// The embedding model that is in use or configured.
    pub model: String,
    /// Descriptions of the problems.
    pub issues: Vec<String>,
}

/// The knowledge base as a component of the server's health (T-40). Cheap to determine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HealthSummary {
    /// Of all bases. `None` until the knowledge base has been opened.
    pub documents: Option<usize>,
    /// Description of the problem, if any.
    pub impairment: Option<String>,
}

impl Knowledge {
    pub fn health_summary(&self) -> HealthSummary {
        HealthSummary {
            documents: self.open_state().map(|open| open.retriever.documents()),
            impairment: self.impairment(),
        }
    }

    fn impairment(&self) -> Option<String> {
        if let Some(error) = self.open_error() {
            return Some(error.to_string());
        }
        let Some(open) = self.open_state() else {
            // A missing SQLite store is created on first use; any other store is opened at startup.
            return match self.settings().store {
                Some(_) => Some("not connected to the database yet".to_owned()),
                None => self.is_opening().then(|| "the knowledge base is being opened".to_owned()),
            };
        };
        let health = open.store.cached_health();
        match (health.accessible, health.connected) {
            (Err(why), _) => Some(why),
            (Ok(()), Err(HealthDiagnostic { problem: what, .. })) => Some(format!("the database {what}")),
            (Ok(()), Ok(())) => None,
        }
    }

    /// Runs all health checks for one base.
    pub async fn health(&self, base: &BaseName) -> Health {
        let mut issues = Vec::new();
        let is_database = self.settings().store.is_some();
        let (connected, mut accessible) = match self.open().await {
            Ok(open) => match open.store.health().await {
                Ok(health) => {
                    if let Err(why) = &health.accessible {
                        issues.push(why.clone());
                    }
                    if let Err(HealthDiagnostic { problem: what, remedy: next }) = &health.connected {
                        issues.push(format!("Database {what}; {next}"));
                    }
                    (health.connected.is_ok(), health.accessible.is_ok())
                }
                Err(error) => {
                    issues.push(error.to_string());
                    (false, false)
                }
            },
            Err(error) if is_database => {
                issues.push(format!("Cannot open knowledge base: {error}"));
                (false, true)
            }
            Err(error) => {
                issues.push(format!("Storage directory not accessible: {error}"));
                (false, false)
            }
        };
        // The embedded store has already checked its folder.
        if is_database && let Err(why) = self.check_upload_dir().await {
            issues.push(format!("Storage directory not accessible: {why}"));
            accessible = false;
        }
        let inference = self.inference();
        let (model, model_loaded) = match inference.load().await {
            Ok(loaded) => (loaded.id.to_string(), true),
            Err(error) => {
                issues.push(format!("Embedding model unavailable: {error}"));
                (inference.configured_model(), false)
            }
        };
        let foreign = match self.open_state() {
            // A database error was reported above.
            Some(open) => open.retriever.documents_of_other_models(base).await.unwrap_or(0),
            None => 0,
        };
        if foreign > 0 && model_loaded {
            issues.push(format!(
                "{foreign} documents were embedded with another model and are found only by keyword search; add them \
                 again"
            ));
        }
        Health { connected, accessible, model_loaded, model, issues }
    }

    /// Writes to the local upload folder, which every backend needs.
    async fn check_upload_dir(&self) -> Result<(), String> {
        let uploads = self.storage().map_err(|error| error.to_string())?.join(UPLOAD_DIR);
        let tried = run_blocking(move || {
            create_private_subdir(&uploads).map_err(|error| match error {
                dir_permissions::Error::Io { error, .. } => error.kind().to_string(),
                exposed => exposed.to_string(),
            })?;
            let written = tempfile::tempfile_in(&uploads).and_then(|mut file| file.write_all(&[0; PROBE_BYTES]));
            written.map_err(|error| error.kind().to_string())
        });
        tried.await.map_err(|error| error.to_string())?
    }
}

/// Minimum free space for any write.
const PROBE_BYTES: usize = 64 << 10;

impl HealthSummary {
    /// A member of `GET /health`.
    pub fn to_json(&self) -> Value {
        let mut member = json!({
            "status": if self.impairment.is_none() { "healthy" } else { "degraded" },
            "documents": self.documents,
        });
        if let Some(why) = &self.impairment {
            // Callers of any trust level can read it, so it contains no paths.
            member["reason"] = without_folders(why).into();
        }
        member
    }
}

//! How the knowledge base is doing, measured when it is asked for (K-102, K-105).

use serde_json::{Value, json};

use super::Knowledge;
use super::document::BaseName;
use super::store::Trouble;

/// How it is doing, with everything that can be measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    pub connected: bool,
    pub accessible: bool,
    pub model_loaded: bool,
    /// The embedding model that is in use, or would be.
    pub model: String,
    /// What is wrong, in sentences.
    pub issues: Vec<String>,
}

/// The knowledge base as a part of the server (T-40): what costs next to nothing to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Of all bases together; none as long as nobody has opened them.
    pub documents: Option<usize>,
    /// What is wrong, if anything is.
    pub impaired: Option<String>,
}

impl Knowledge {
    pub fn part(&self) -> Part {
        Part { documents: self.opened().map(|open| open.finder.documents()), impaired: self.impaired() }
    }

    fn impaired(&self) -> Option<String> {
        if let Some(error) = self.failure() {
            return Some(error.to_string());
        }
        let Some(open) = self.opened() else {
            // A file is opened when it is first needed; a database is looked for from the beginning.
            return self.settings().store.as_ref().map(|_| "the database has not answered yet".to_owned());
        };
        let health = open.store.known_health();
        match (health.accessible, health.connected) {
            (Err(why), _) => Some(why),
            (Ok(()), Err(Trouble { what, .. })) => Some(format!("the database {what}")),
            (Ok(()), Ok(())) => None,
        }
    }

    /// Everything that can be known, for one base.
    pub async fn health(&self, base: &BaseName) -> Health {
        let mut issues = Vec::new();
        let (connected, accessible) = match self.open().await {
            Ok(open) => match open.store.health().await {
                Ok(health) => {
                    if let Err(why) = &health.accessible {
                        issues.push(why.clone());
                    }
                    if let Err(Trouble { what, next }) = &health.connected {
                        issues.push(format!("Database {what}; {next}"));
                    }
                    (health.connected.is_ok(), health.accessible.is_ok())
                }
                Err(error) => {
                    issues.push(error.to_string());
                    (false, false)
                }
            },
            Err(error) => {
                issues.push(format!("Storage directory not accessible: {error}"));
                (false, false)
            }
        };
        let inference = self.inference();
        let (model, model_loaded) = match inference.load().await {
            Ok(loaded) => (loaded.id.to_string(), true),
            Err(error) => {
                issues.push(format!("Embedding model cannot be used: {error}"));
                (inference.planned(), false)
            }
        };
        let foreign = match self.opened() {
            // A database that does not tell has been complained about above.
            Some(open) => open.finder.foreign(base).await.unwrap_or(0),
            None => 0,
        };
        if foreign > 0 && model_loaded {
            issues.push(format!(
                "{foreign} documents have vectors of another embedding model and are found by their words alone; \
                 add them again"
            ));
        }
        Health { connected, accessible, model_loaded, model, issues }
    }
}

impl Part {
    /// A member of `GET /health`.
    pub fn member(&self) -> Value {
        let mut member = json!({
            "status": if self.impaired.is_none() { "healthy" } else { "degraded" },
            "documents": self.documents,
        });
        if let Some(why) = &self.impaired {
            member["reason"] = json!(why);
        }
        member
    }
}

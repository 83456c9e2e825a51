//! How the knowledge base is doing, measured when it is asked for (K-102, K-105).

use super::Knowledge;
use super::document::BaseName;
use super::store::Store;

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

impl Knowledge {
    /// What is wrong, for the server's own health; what costs nothing to know.
    pub fn impaired(&self) -> Option<String> {
        if let Some(error) = self.failure() {
            return Some(error.to_string());
        }
        let health = self.opened()?.store.health();
        match (health.accessible, health.connected) {
            (Err(why), _) => Some(why),
            (Ok(()), false) => Some("the database does not answer, or is not the file it was".into()),
            (Ok(()), true) => None,
        }
    }

    /// Everything that can be known, for one base.
    pub async fn health(&self, base: &BaseName) -> Health {
        let mut issues = Vec::new();
        let (connected, accessible) = match self.open().await {
            Ok(open) => {
                let store: Store = open.store.clone();
                let health = tokio::task::spawn_blocking(move || store.health()).await;
                match health {
                    Ok(health) => {
                        if let Err(why) = &health.accessible {
                            issues.push(why.clone());
                        }
                        if !health.connected {
                            issues.push(
                                "Database does not answer, or is not the file it was; start the program again".into(),
                            );
                        }
                        (health.connected, health.accessible.is_ok())
                    }
                    Err(error) => {
                        issues.push(error.to_string());
                        (false, false)
                    }
                }
            }
            Err(error) => {
                issues.push(error.to_string());
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
        let foreign = self.opened().map_or(0, |open| open.library.foreign(base));
        if foreign > 0 {
            issues.push(format!(
                "{foreign} documents have vectors of another embedding model and are found by their words alone; \
                 add them again"
            ));
        }
        Health { connected, accessible, model_loaded, model, issues }
    }
}

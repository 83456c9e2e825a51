//! Snapshot of a usable server: connection, categories and a cache of recent verdicts.
//!
//! The snapshot is immutable and replaced as a whole: new categories make a new snapshot, so a verdict is never
//! interpreted with a different list than the one it was made for.

use std::sync::Arc;

use quick_cache::sync::Cache;
use serde_json::Map;

use super::connection::Connection;
use super::{Categories, Error, RemoteVerdict, Settings};
use crate::providers::client::Client;

pub(super) struct Known {
    pub(super) connection: Arc<Connection>,
    pub(super) categories: Arc<Categories>,
    verdicts: Cache<Box<str>, Arc<RemoteVerdict>>,
}

const VERDICTS: usize = 1024;
/// Maximum length of cached texts. Longer texts rarely repeat, and this bounds the memory.
const LONGEST_TEXT: usize = 4096;

impl Known {
    /// Connects, checks that the tools exist and lists the categories (C-61).
    pub(super) async fn start(settings: &Settings, client: &Client) -> Result<Known, Error> {
        let connection = Connection::open(settings, client).await?;
        let tools = connection.tools().await?;
        for (tool, key) in [
            (&settings.classify_tool, "classification.mcp_server.tools.classify"),
            (&settings.list_tool, "classification.mcp_server.tools.list_categories"),
        ] {
            if !tools.contains(tool) {
                return Err(Error::MissingTool { tool: tool.clone(), key });
            }
        }
        Known::list(settings, Arc::new(connection)).await
    }

    /// Lists the categories over an existing connection.
    pub(super) async fn list(settings: &Settings, connection: Arc<Connection>) -> Result<Known, Error> {
        let listed = connection.call(&settings.list_tool, Map::new()).await?;
        let categories = Arc::new(Categories::read(listed)?);
        let found = categories.names().len();
        match settings.num_categories {
            Some(expected) if expected != found => Err(Error::WrongCount { expected, found }),
            _ => Ok(Known { connection, categories, verdicts: Cache::new(VERDICTS) }),
        }
    }

    pub(super) fn seen(&self, text: &str) -> Option<Arc<RemoteVerdict>> {
        self.verdicts.get(text)
    }

    pub(super) fn keep(&self, text: &str, verdict: &Arc<RemoteVerdict>) {
        if text.len() <= LONGEST_TEXT {
            self.verdicts.insert(text.into(), verdict.clone());
        }
    }
}

//! Snapshot of a usable server: connection, categories and a cache of recent verdicts.
//!
//! The snapshot is immutable and replaced as a whole: new categories make a new snapshot, so a verdict is never
//! interpreted with a different list than the one it was made for.

use std::sync::Arc;

use quick_cache::sync::Cache;
use serde_json::Map;

use super::connection::ClassifierConnection;
use super::{Categories, Error, ExternalPrediction, Settings};
use corbie_llm::http_client::HttpClient;

pub(super) struct ServerSnapshot {
    pub(super) connection: Arc<ClassifierConnection>,
    pub(super) categories: Arc<Categories>,
    verdicts: Cache<Box<str>, Arc<ExternalPrediction>>,
}

const VERDICT_CACHE_CAPACITY: usize = 1024;
/// Maximum length of cached texts. Longer texts rarely repeat, and this bounds the memory.
const MAX_CACHED_BYTES: usize = 4096;

impl ServerSnapshot {
    /// Connects, checks that the tools exist and lists the categories (C-61).
    pub(super) async fn connect(settings: &Settings, client: &HttpClient) -> Result<ServerSnapshot, Error> {
        let connection = ClassifierConnection::open(settings, client).await?;
        let tools = connection.tools().await?;
        for (tool, key) in [
            (&settings.classify_tool, "classification.mcp_server.tools.classify"),
            (&settings.list_tool, "classification.mcp_server.tools.list_categories"),
        ] {
            if !tools.contains(tool) {
                return Err(Error::MissingTool { tool: tool.clone(), key });
            }
        }
        ServerSnapshot::with_fresh_categories(settings, Arc::new(connection)).await
    }

    /// Lists the categories over an existing connection.
    pub(super) async fn with_fresh_categories(
        settings: &Settings,
        connection: Arc<ClassifierConnection>,
    ) -> Result<ServerSnapshot, Error> {
        let listed = connection.call(&settings.list_tool, Map::new()).await?;
        let categories = Arc::new(Categories::parse(listed)?);
        let found = categories.names().len();
        match settings.num_categories {
            Some(expected) if expected != found => Err(Error::CategoryCountMismatch { expected, found }),
            _ => Ok(ServerSnapshot { connection, categories, verdicts: Cache::new(VERDICT_CACHE_CAPACITY) }),
        }
    }

    pub(super) fn cached(&self, text: &str) -> Option<Arc<ExternalPrediction>> {
        self.verdicts.get(text)
    }

    pub(super) fn cache(&self, text: &str, verdict: &Arc<ExternalPrediction>) {
        if text.len() <= MAX_CACHED_BYTES {
            self.verdicts.insert(text.into(), verdict.clone());
        }
    }
}

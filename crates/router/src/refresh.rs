//! Background refresh of model lists (P-06) and of the external classifier's categories (C-62).

use std::time::Duration;

use corbie_mcp::{Event, Server};
use serde_json::json;

use super::error::Error;
use super::model_sync;
use super::router::Router;
use corbie_llm::registry::MODEL_LIST_TTL;

/// Detects local servers, then refreshes model lists when they expire. Lists of remote providers are not fetched until
/// a request needs them. Clients and other instances are notified of changes.
pub async fn run_refresh(router: Router, server: Server) {
    let pool = router.providers();
    let mut changes = pool.subscribe();
    let keep = async {
        pool.detect_local_servers().await;
        if pool.providers().is_empty() {
            tracing::warn!("{}; chat completions are unavailable until then", Error::NoProvider);
        } else if pool.default_model().is_none() {
            tracing::warn!(
                "no default model is configured; prompts whose recommended model no provider serves will fail; set \
                 `DEFAULT_MODEL`"
            );
        }
        loop {
            tokio::time::sleep(DETECT_INTERVAL).await;
            // Also while the lists are fresh: a server that was just started is in none of them.
            pool.detect_local_servers().await;
            if pool.was_listed().await {
                pool.refresh_models(MODEL_LIST_TTL).await;
            }
        }
    };
    let tell = async {
        while changes.changed().await.is_ok() {
            let (method, params) = ("notifications/models/list_changed".into(), json!({}).into());
            server.publish(Event::Other { method, params, owner: None });
        }
    };
    let look_after = async {
        if let Some(external) = router.external_classifier() {
            external.clone().run().await;
        }
    };
    tokio::join!(keep, tell, look_after, model_sync::sync_models(&router));
}

/// How soon a newly started local server is detected.
const DETECT_INTERVAL: Duration = Duration::from_secs(30);

//! OpenAI's HTTP API over the same router: any program that speaks it gets `model: "auto"` without changing a line.
//!
//! A thin face: bodies are read and written here, everything else happens in [`crate::route`].

mod cache;
mod chat_completions;
mod counts;
mod decision_headers;
mod embeddings;
mod failure;
mod models;
mod others_first;
mod stream;

use axum::Router as Routes;
use axum::body::{Body, to_bytes};
use axum::routing::{any, get, post};
use bytes::Bytes;
use corbie_mcp::{Caller, Server, TrustLevel};

pub use failure::refuse;

use cache::Cache;

use crate::inference::Inference;
use crate::route::Router;
use failure::Failure;

/// What the paths share.
#[derive(Debug, Clone)]
struct Face {
    router: Router,
    inference: Inference,
    server: Server,
    /// None where nothing is kept.
    cache: Option<Cache>,
}

/// The paths of the API, to be served behind the server's guard.
pub fn routes(server: Server, router: Router, inference: Inference) -> Routes {
    let cache = Cache::new(&router.settings().cache, &inference);
    Routes::new()
        .route("/v1/chat/completions", post(chat_completions::post).fallback(failure::only_post))
        .route("/v1/embeddings", post(embeddings::post).fallback(failure::only_post))
        .route("/v1/models", get(models::list).fallback(failure::only_get))
        .route("/v1/models/{*id}", get(models::one).fallback(failure::only_get))
        .route("/v1", any(failure::nowhere))
        .route("/v1/", any(failure::nowhere))
        .route("/v1/{*path}", any(failure::nowhere))
        .with_state(Face { router, inference, server, cache })
}

impl Face {
    /// Lets in who may spend money, while the server takes requests, and takes what they send.
    async fn admit(&self, caller: &Caller, body: Body) -> Result<Bytes, Failure> {
        if self.server.is_draining() {
            return Err(Failure::shutting_down());
        }
        if caller.trust < TrustLevel::Verified {
            return Err(Failure::not_trusted());
        }
        let limits = self.server.limits();
        let most = limits.max_message_bytes;
        let read = tokio::time::timeout(limits.request_read_timeout, to_bytes(body, most)).await;
        read.map_err(|_| Failure::too_slow())?.map_err(|error| Failure::unread(&error, most))
    }
}

//! OpenAI-compatible HTTP API: existing clients use `model: "auto"` without code changes.
//!
//! A thin layer that parses and renders bodies; the logic is in [`crate::route`].

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
use axum::body::Body;
use axum::routing::{any, get, post};
use bytes::Bytes;
use corbie_mcp::transport::{Received, Reserved};
use corbie_mcp::{Caller, Server, Slot, TrustLevel};
use http::HeaderMap;

pub use failure::refuse;

use cache::Cache;

use crate::inference::Inference;
use crate::route::Router;
use failure::Failure;

/// State shared by the routes.
#[derive(Debug, Clone)]
struct Face {
    router: Router,
    inference: Inference,
    server: Server,
    /// `None` if caching is disabled.
    cache: Option<Cache>,
}

/// Resources of a request until its response is sent: the admission permit and the memory reserved for its body.
#[derive(Debug)]
struct Held {
    _slot: Option<Slot>,
    _reserved: Reserved,
}

/// The routes of the API, to be served behind the server's middleware.
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
    /// Authorizes the caller, receives the body and waits for admission. The caller needs permission for the equivalent
    /// tool and a trust level that may spend money. Admission comes after the body, so that slow senders occupy no
    /// permit.
    async fn admit(
        &self,
        caller: &Caller,
        tool: &str,
        headers: &HeaderMap,
        body: Body,
    ) -> Result<(Bytes, Held), Failure> {
        if self.server.is_draining() {
            return Err(Failure::shutting_down());
        }
        if !caller.may_use(tool) {
            return Err(Failure::not_granted(tool));
        }
        if caller.trust < TrustLevel::Verified {
            return Err(Failure::not_trusted());
        }
        let Received { bytes, reserved } = self.server.receive_json(headers, body).await?;
        let slot = self.server.admit(caller).await?;
        Ok((bytes, Held { _slot: slot, _reserved: reserved }))
    }
}

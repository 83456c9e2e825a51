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

/// What the paths share.
#[derive(Debug, Clone)]
struct Face {
    router: Router,
    inference: Inference,
    server: Server,
    /// None where nothing is kept.
    cache: Option<Cache>,
}

/// What a request holds until the last byte of its answer: its place among those worked on, and the memory of its body.
#[derive(Debug)]
struct Held {
    _slot: Option<Slot>,
    _reserved: Reserved,
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
    /// Lets in who may spend money and use the tool that does the same, and takes what they send. A place is asked for when
    /// the body is there, so that slow senders keep none from others.
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

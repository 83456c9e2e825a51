//! OpenAI-compatible HTTP API: existing clients use `model: "auto"` without code changes.
//!
//! A thin layer that parses and renders bodies; the logic is in `crate`.

mod cache;
mod chat_completions;
mod decision_headers;
mod embeddings;
mod error;
mod fair_yield;
mod models;
mod stream;
mod usage;

use axum::Router as Routes;
use axum::body::Body;
use axum::routing::{any, get, post};
use bytes::Bytes;
use corbie_mcp::transport::{BodyReservation, ReceivedBody};
use corbie_mcp::{AdmissionPermit, Caller, Server, TrustLevel};
use http::HeaderMap;

pub use error::render_rejection;

use cache::ResponseCache;

use crate::Router;
use corbie_classify::inference::Inference;
use error::ApiError;

/// State shared by the routes.
#[derive(Debug, Clone)]
struct ApiState {
    router: Router,
    inference: Inference,
    server: Server,
    /// `None` if caching is disabled.
    cache: Option<ResponseCache>,
}

/// Resources of a request until its response is sent: the admission permit and the memory reserved for its body.
#[derive(Debug)]
struct RequestGuard {
    _slot: Option<AdmissionPermit>,
    _reserved: BodyReservation,
}

/// The routes of the API, to be served behind the server's middleware.
pub fn routes(server: Server, router: Router, inference: Inference) -> Routes {
    let cache = ResponseCache::new(&router.settings().cache, &inference);
    Routes::new()
        .route("/v1/chat/completions", post(chat_completions::post).fallback(error::only_post))
        .route("/v1/embeddings", post(embeddings::post).fallback(error::only_post))
        .route("/v1/models", get(models::list).fallback(error::only_get))
        .route("/v1/models/{*id}", get(models::one).fallback(error::only_get))
        .route("/v1", any(error::not_found))
        .route("/v1/", any(error::not_found))
        .route("/v1/{*path}", any(error::not_found))
        .with_state(ApiState { router, inference, server, cache })
}

impl ApiState {
    /// Authorizes the caller, receives the body and waits for admission. The caller needs permission for the equivalent
    /// tool and a trust level that may spend money. Admission comes after the body, so that slow senders occupy no
    /// permit.
    async fn admit(
        &self,
        caller: &Caller,
        tool: &str,
        headers: &HeaderMap,
        body: Body,
    ) -> Result<(Bytes, RequestGuard), ApiError> {
        if self.server.is_draining() {
            return Err(ApiError::shutting_down());
        }
        if !caller.may_use(tool) {
            return Err(ApiError::not_granted(tool));
        }
        if caller.trust < TrustLevel::Verified {
            return Err(ApiError::not_trusted());
        }
        let ReceivedBody { bytes, reserved } = self.server.receive_json(headers, body).await?;
        let slot = self.server.admit(caller).await?;
        Ok((bytes, RequestGuard { _slot: slot, _reserved: reserved }))
    }
}

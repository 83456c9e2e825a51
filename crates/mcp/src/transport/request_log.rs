//! Tracing, metrics and audit log for custom routes, like for any call.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::{MatchedPath, Request};
use axum::middleware::Next;
use axum::response::Response;
use http::{Method, StatusCode};
use hyper::service::Service;
use tracing::Instrument;

use super::middleware::{Endpoint, Routes};
use crate::audit::{AuditOutcome, FinishedCall};
use crate::dispatch::{request_span, truncate_owned};
use crate::server::Server;
use crate::trace::{self, RequestTrace};
use crate::trust::{Caller, Effect};

/// The matched route pattern; patterns are few, while paths are unbounded.
#[derive(Debug, Clone)]
struct MatchedRoute(Arc<str>);

/// Recorded on drop. Without an outcome it counts as failed, because the caller has disconnected.
struct RequestLogGuard {
    server: Server,
    caller: Caller,
    request_trace: RequestTrace,
    /// The requested path, replaced by the matched pattern.
    path: Arc<str>,
    matched: Option<MatchedRoute>,
    started: Instant,
    status: Option<StatusCode>,
}

/// Paths served by the library, or counted by their handlers.
pub(super) fn is_builtin_path(path: &str) -> bool {
    path == "/mcp" || path.starts_with("/mcp/") || matches!(path, "/health" | "/live" | "/ready" | "/metrics")
}

/// Forwards a request to a custom route.
pub(super) async fn forward(endpoint: &Endpoint, routes: Routes, request: Request, caller: Caller) -> Response {
    let trail = request.extensions().get().cloned().unwrap_or_else(RequestTrace::new);
    let path = truncate_owned(request.uri().path());
    let span = request_span(&trail, &path, &caller);
    let trace = trail.trace.clone();
    let mut passage = RequestLogGuard {
        server: endpoint.server.clone(),
        caller,
        request_trace: trail,
        path: path.into(),
        matched: None,
        started: Instant::now(),
        status: None,
    };
    let effect = if matches!(*request.method(), Method::GET | Method::HEAD) { Effect::Reads } else { Effect::Changes };
    if let Err(error) = endpoint.server.audit().check_writable(effect) {
        passage.status = Some(StatusCode::FORBIDDEN);
        return endpoint.error_response(request.uri().path(), StatusCode::SERVICE_UNAVAILABLE, &error);
    }
    let Ok(response) = trace::scope(trace, routes.call(request)).instrument(span).await;
    passage.matched = response.extensions().get().cloned();
    passage.status = Some(response.status());
    response
}

/// Layer that adds the matched pattern to the response.
pub(super) async fn attach_matched_route(request: Request, next: Next) -> Response {
    let pattern = request.extensions().get::<MatchedPath>().map(|path| MatchedRoute(path.as_str().into()));
    let mut response = next.run(request).await;
    if let Some(pattern) = pattern {
        response.extensions_mut().insert(pattern);
    }
    response
}

impl Drop for RequestLogGuard {
    fn drop(&mut self) {
        let took = self.started.elapsed();
        let outcome = match self.status {
            Some(status) if status.is_success() || status.is_redirection() => AuditOutcome::Success,
            Some(StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => AuditOutcome::Blocked,
            _ => AuditOutcome::Error,
        };
        if let Some(MatchedRoute(pattern)) = &self.matched {
            self.server.metrics().count_route(pattern, took, outcome != AuditOutcome::Success);
        } else if self.status == Some(StatusCode::NOT_FOUND) {
            // No such route, so there was no call.
            return;
        }
        self.server.audit().record(FinishedCall {
            tool: self.matched.as_ref().map_or(&self.path, |matched| &matched.0),
            arguments_hash: None,
            caller: &self.caller,
            request: &self.request_trace.id,
            outcome,
            duration: took,
        });
    }
}

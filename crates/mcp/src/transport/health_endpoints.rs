//! Endpoints for operators: liveness, readiness, health and metrics.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{Extensions, HeaderMap, StatusCode, Uri};
use serde_json::{Map, Value, json};

use super::middleware::{Endpoint, error_response, json_response as reply};
use crate::error::Error;
use crate::metrics::ExpositionFormat;
use crate::server::Health;
use crate::trust::Caller;
use crate::version::{Era, Version};

/// Always 200; `degraded` names the impaired part (T-40, T-41). Unauthenticated callers get only the status.
pub(crate) async fn health(State(endpoint): State<Arc<Endpoint>>, extensions: Extensions) -> Response {
    let server = &endpoint.server;
    let health = check_health(&endpoint);
    let status = if health.impaired.is_empty() { "ok" } else { "degraded" };
    if !endpoint.is_authenticated(&extensions) {
        return respond_json(StatusCode::OK, json!({ "status": status }));
    }
    let mut body = json!({
        "status": status,
        "name": server.name(),
        "version": server.version(),
        "protocol_version": Version::ALL[0],
        "protocol_versions": Version::ALL,
        "tools_count": server.registry().len(),
        "uptime_seconds": server.uptime().as_secs(),
    });
    if let Some(members) = body.as_object_mut() {
        members.extend(health.members);
        if !health.impaired.is_empty() {
            let impaired: Map<String, Value> =
                health.impaired.into_iter().map(|(part, why)| (part, why.into())).collect();
            members.insert("impaired".into(), impaired.into());
        }
    }
    respond_json(StatusCode::OK, body)
}

pub(crate) async fn live() -> Response {
    respond_json(StatusCode::OK, json!({ "status": "ok" }))
}

/// 503 once a drain has begun, so that a load balancer uses another instance. `?for=PART` checks one part of the server
/// and also returns 503 if it is impaired. Without it, the unimpaired parts remain available: if all instances have the
/// same impairment, a load balancer would otherwise find no instance. Unauthenticated callers get only the status.
pub(crate) async fn ready(State(endpoint): State<Arc<Endpoint>>, uri: Uri, extensions: Extensions) -> Response {
    if endpoint.server.is_draining() {
        return respond_json(StatusCode::SERVICE_UNAVAILABLE, json!({ "status": "draining" }));
    }
    let impaired: Vec<String> =
        check_health(&endpoint).impaired.into_iter().map(|(part, _)| part.to_string()).collect();
    let wanted = uri.query().and_then(|query| query.split('&').find_map(|member| member.strip_prefix("for=")));
    let status = match wanted {
        Some(part) if impaired.iter().any(|impaired| impaired == part) => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::OK,
    };
    match impaired.is_empty() {
        true => respond_json(status, json!({ "status": "ok" })),
        false if endpoint.is_authenticated(&extensions) => {
            respond_json(status, json!({ "status": "degraded", "impaired": impaired }))
        }
        false => respond_json(status, json!({ "status": "degraded" })),
    }
}

/// Runs the health check. A check that fails counts as an impairment.
fn check_health(endpoint: &Endpoint) -> Health {
    let check = || endpoint.server.inner().health.as_ref().map(|check| check()).unwrap_or_default();
    catch_unwind(AssertUnwindSafe(check)).unwrap_or_else(|_| Health {
        impaired: vec![("health".into(), "health check failed to run".into())],
        members: Map::new(),
    })
}

/// OpenMetrics, or the Prometheus text format for clients that accept only that.
pub(crate) async fn metrics(
    State(endpoint): State<Arc<Endpoint>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
) -> Response {
    // Some labels contain names of collections.
    if caller.permissions.as_ref().is_some_and(|grant| !grant.collections.is_all()) {
        let error = Error::NotGranted { what: "`/metrics`, which includes all collections".into() };
        return error_response(StatusCode::FORBIDDEN, &error, Era::Legacy);
    }
    let form = ExpositionFormat::from_accept(headers.get(ACCEPT).and_then(|accept| accept.to_str().ok()));
    let server = endpoint.server.clone();
    // Some values are read from files and databases, which may block.
    let text = tokio::task::spawn_blocking(move || server.metrics().encode(&server, form)).await;
    match text {
        Ok(text) => ([(CONTENT_TYPE, form.content_type())], text).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

fn respond_json(status: StatusCode, body: Value) -> Response {
    reply(status, body.to_string().into_bytes())
}

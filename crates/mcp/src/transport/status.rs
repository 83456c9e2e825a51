//! Pages for operators: is it alive, is it ready, is it well, what has it done.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, StatusCode};
use serde_json::{Map, Value, json};

use super::guard::{Endpoint, json as reply};
use crate::metrics::Form;
use crate::server::Health;
use crate::version::Version;

/// 200 always; `degraded` names the impaired part (T-40, T-41). Strangers get the word alone.
pub(crate) async fn health(State(endpoint): State<Arc<Endpoint>>, headers: HeaderMap) -> Response {
    let server = &endpoint.server;
    let check = || server.inner().health.as_ref().map(|check| check()).unwrap_or_default();
    let health = catch_unwind(AssertUnwindSafe(check)).unwrap_or_else(|_| Health {
        impaired: vec![("health".into(), "the health check itself failed".into())],
        members: Map::new(),
    });
    let status = if health.impaired.is_empty() { "ok" } else { "degraded" };
    if !endpoint.is_known(&headers) {
        return page(StatusCode::OK, json!({ "status": status }));
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
    page(StatusCode::OK, body)
}

pub(crate) async fn live() -> Response {
    page(StatusCode::OK, json!({ "status": "ok" }))
}

/// 503 once a drain has begun, so that a load balancer looks elsewhere.
pub(crate) async fn ready(State(endpoint): State<Arc<Endpoint>>) -> Response {
    if endpoint.server.is_draining() {
        return page(StatusCode::SERVICE_UNAVAILABLE, json!({ "status": "draining" }));
    }
    page(StatusCode::OK, json!({ "status": "ok" }))
}

/// OpenMetrics, or the older form for those who ask for it alone.
pub(crate) async fn metrics(State(endpoint): State<Arc<Endpoint>>, headers: HeaderMap) -> Response {
    let form = Form::wanted(headers.get(ACCEPT).and_then(|accept| accept.to_str().ok()));
    let server = endpoint.server.clone();
    // Some of it is read from files and databases, which may take its time.
    let text = tokio::task::spawn_blocking(move || server.metrics().encode(&server, form)).await;
    match text {
        Ok(text) => ([(CONTENT_TYPE, form.content_type())], text).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

fn page(status: StatusCode, body: Value) -> Response {
    reply(status, body.to_string().into_bytes())
}

//! Pages for operators: is it alive, is it ready, is it well, what has it done.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, StatusCode, Uri};
use serde_json::{Map, Value, json};

use super::guard::{Endpoint, json as reply, refuse};
use crate::error::Error;
use crate::metrics::Form;
use crate::server::Health;
use crate::trust::Caller;
use crate::version::{Era, Version};

/// 200 always; `degraded` names the impaired part (T-40, T-41). Strangers get the word alone.
pub(crate) async fn health(State(endpoint): State<Arc<Endpoint>>, headers: HeaderMap) -> Response {
    let server = &endpoint.server;
    let health = examined(&endpoint);
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

/// 503 once a drain has begun, so that a load balancer looks elsewhere. `?for=PART` asks for one part of the server: 503 as
/// well where that is impaired. Without it the other parts are served: where all instances lack the same thing, a balancer
/// that looked elsewhere would find nobody. Strangers get the word alone.
pub(crate) async fn ready(State(endpoint): State<Arc<Endpoint>>, uri: Uri, headers: HeaderMap) -> Response {
    if endpoint.server.is_draining() {
        return page(StatusCode::SERVICE_UNAVAILABLE, json!({ "status": "draining" }));
    }
    let impaired: Vec<String> = examined(&endpoint).impaired.into_iter().map(|(part, _)| part.to_string()).collect();
    let wanted = uri.query().and_then(|query| query.split('&').find_map(|member| member.strip_prefix("for=")));
    let status = match wanted {
        Some(part) if impaired.iter().any(|impaired| impaired == part) => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::OK,
    };
    match impaired.is_empty() {
        true => page(status, json!({ "status": "ok" })),
        false if endpoint.is_known(&headers) => page(status, json!({ "status": "degraded", "impaired": impaired })),
        false => page(status, json!({ "status": "degraded" })),
    }
}

/// How the server is. A check that fails is one more thing that is wrong.
fn examined(endpoint: &Endpoint) -> Health {
    let check = || endpoint.server.inner().health.as_ref().map(|check| check()).unwrap_or_default();
    catch_unwind(AssertUnwindSafe(check)).unwrap_or_else(|_| Health {
        impaired: vec![("health".into(), "the health check itself failed".into())],
        members: Map::new(),
    })
}

/// OpenMetrics, or the older form for those who ask for it alone.
pub(crate) async fn metrics(
    State(endpoint): State<Arc<Endpoint>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
) -> Response {
    // Some of what is counted goes by the names of collections.
    if caller.grant.as_ref().is_some_and(|grant| !grant.collections.is_all()) {
        let error = Error::NotGranted { what: "`/metrics`, which tells of all collections".into() };
        return refuse(StatusCode::FORBIDDEN, &error, Era::Legacy);
    }
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

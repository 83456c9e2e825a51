//! `POST /mcp/<method>`: the REST style of docs/spec. The body has the params, the reply is the bare result.

use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use http::StatusCode;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::body::{ReceivedBody, read_body};
use super::endpoint::is_modern;
use super::inflight::InflightRequest;
use super::middleware::{Endpoint, error_response, json_response};
use crate::client::RequestMeta;
use crate::dispatch::TransportContext;
use crate::error::Error;
use crate::message::{self, Id, Params};
use crate::outcome::RequestStyle;
use crate::session::{MessageSink, Session};
use crate::trace::RequestTrace;
use crate::trust::Transport;
use crate::version::{Era, InitializeOrigin};

pub(crate) async fn call(
    State(endpoint): State<Arc<Endpoint>>,
    method: Result<Path<String>, PathRejection>,
    request: Request,
) -> Response {
    let Ok(Path(method)) = method else {
        let error = Error::MethodNotFound { method: "(not UTF-8)".into(), suggestion: None };
        return error_response(StatusCode::NOT_FOUND, &error, Era::Legacy);
    };
    let (head, body) = request.into_parts();
    let ReceivedBody { bytes: body, reserved } = match read_body(&endpoint.server, &head.headers, body).await {
        Ok(received) => received,
        Err(refused) => return *refused,
    };
    let params = match read_params(&method, &body, endpoint.server.limits().max_json_depth) {
        Ok(params) => params,
        Err(error) => return error_response(error.rest_status(), &error, Era::Legacy),
    };
    let exchange = TransportContext {
        caller: endpoint.caller(Transport::Rest, &head.extensions),
        session: Arc::new(Session::new()),
        style: RequestStyle::Plain,
        initialize_origin: InitializeOrigin::Rest,
        sink: MessageSink::Closed,
        cancel: CancellationToken::new(),
        closing: endpoint.server.never_cancelled().clone(),
        connected_caller: None,
        bucket: None,
        request_trace: head.extensions.get().cloned().unwrap_or_else(RequestTrace::new),
    };
    let params = Params::from_value(&params);
    let meta = RequestMeta::parse(&params);
    // The modern era has no REST style: its headers would have to be checked against a body they do not describe.
    if is_modern(&head.headers) || meta.as_ref().is_ok_and(|meta| meta.version.is_some()) {
        let error = Error::InvalidRequest("the REST style does not support 2026-07-28; use `POST /mcp`".into());
        return error_response(StatusCode::BAD_REQUEST, &error, Era::Legacy);
    }
    let request = message::Request { id: Id::Integer(0), method: method.into(), params, bare: true };
    let server = endpoint.server.clone();
    let work = Box::pin(async move {
        let _reserved = reserved;
        server.handle_request(request, meta, exchange).await
    });
    let answer = InflightRequest::new(work, Some(endpoint.server.clone())).await;
    match answer.result() {
        Ok(result) => json_response(StatusCode::OK, serde_json::to_vec(&result).expect("a reply has string keys")),
        Err(error) => error_response(error.rest_status(), error, answer.era),
    }
}

/// Parses the params in all supported forms: bare, wrapped, or empty (T-22…T-24).
fn read_params(method: &str, body: &[u8], max_depth: usize) -> Result<Map<String, Value>, Error> {
    if body.trim_ascii().is_empty() {
        return Ok(Map::new());
    }
    if message::exceeds_depth(body, max_depth) {
        return Err(Error::Parse(format!("request body is nested too deeply (maximum {max_depth} levels)")));
    }
    let unreadable = |error| Error::Parse(format!("request body is not valid JSON: {error}"));
    if body.trim_ascii_start().starts_with(b"{") {
        let UniqueMemberNames = serde_json::from_slice(body).map_err(unreadable)?;
    }
    let body: Value = serde_json::from_slice(body).map_err(unreadable)?;
    let mut members = match body {
        Value::Object(members) => members,
        Value::Null => Map::new(),
        _ => return Err(Error::InvalidRequest("request body must be a JSON object".into())),
    };
    // Router clients send `{"method":"","params":{…}}`.
    if members.get("method").is_some_and(Value::is_string) || members.contains_key("jsonrpc") {
        members = match members.remove("params") {
            Some(Value::Object(params)) => params,
            None | Some(Value::Null) => Map::new(),
            Some(_) => return Err(Error::invalid_params("`params` must be an object")),
        };
    }
    if method == "tools/call" {
        for (synonym, name) in [("tool", "name"), ("parameters", "arguments")] {
            if !members.contains_key(name)
                && let Some(value) = members.remove(synonym)
            {
                members.insert(name.into(), value);
            }
        }
    }
    Ok(members)
}

/// An object with unique member names: with duplicates, other parsers may use a different one.
struct UniqueMemberNames;

impl<'de> serde::Deserialize<'de> for UniqueMemberNames {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<UniqueMemberNames, D::Error> {
        struct UniqueMemberNamesVisitor;
        impl<'de> serde::de::Visitor<'de> for UniqueMemberNamesVisitor {
            type Value = UniqueMemberNames;

            fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                out.write_str("an object")
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<UniqueMemberNames, A::Error> {
                let mut names = std::collections::HashSet::new();
                while let Some((name, _)) = map.next_entry::<String, serde::de::IgnoredAny>()? {
                    if !names.insert(name) {
                        return Err(serde::de::Error::custom("duplicate member"));
                    }
                }
                Ok(UniqueMemberNames)
            }
        }
        deserializer.deserialize_map(UniqueMemberNamesVisitor)
    }
}

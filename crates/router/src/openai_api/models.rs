//! `GET /v1/models` and `GET /v1/models/{id}`.

use axum::Extension;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use corbie_mcp::Caller;
use http::HeaderValue;
use http::header::CONTENT_TYPE;
use serde_json::{Value, json};

use super::ApiState;
use super::error::ApiError;
use corbie_llm::registry::MODEL_LIST_TTL;

pub(super) async fn list(
    State(face): State<ApiState>,
    Extension(caller): Extension<Caller>,
) -> Result<Response, ApiError> {
    may_list(&caller)?;
    Ok(reply(&json!({ "object": "list", "data": all(&face).await })))
}

/// Requires permission for the equivalent tool.
fn may_list(caller: &Caller) -> Result<(), ApiError> {
    const TOOL: &str = "list_models";
    if caller.may_use(TOOL) { Ok(()) } else { Err(ApiError::not_granted(TOOL)) }
}

pub(super) async fn one(
    State(face): State<ApiState>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    may_list(&caller)?;
    let found = all(&face).await.into_iter().find(|model| model["id"] == id);
    found.map(|model| reply(&model)).ok_or_else(|| ApiError::no_such_model(&id))
}

/// `auto` and its policies, the built-in embedding model, and all models of the providers.
async fn all(face: &ApiState) -> Vec<Value> {
    face.router.providers().refresh_models(MODEL_LIST_TTL).await;
    let own = face.router.auto_models().chain([face.inference.configured_model()]).map(|id| entry(&id, "corbie"));
    let known = face.router.providers().known_models().models;
    let offered = known.iter().map(|offered| entry(&offered.model.id, &offered.provider.name));
    let mut models: Vec<Value> = own.chain(offered).collect();
    // A model that two providers offer is listed once.
    let mut seen = std::collections::HashSet::new();
    models.retain(|model| seen.insert(model["id"].to_string()));
    models
}

fn entry(id: &str, owner: &str) -> Value {
    json!({ "id": id, "object": "model", "created": 0, "owned_by": owner })
}

fn reply(body: &Value) -> Response {
    ([(CONTENT_TYPE, HeaderValue::from_static("application/json"))], body.to_string()).into_response()
}

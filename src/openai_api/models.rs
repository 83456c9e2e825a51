//! `GET /v1/models` and `GET /v1/models/{id}`.

use axum::Extension;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use corbie_mcp::Caller;
use http::HeaderValue;
use http::header::CONTENT_TYPE;
use serde_json::{Value, json};

use super::Face;
use super::failure::Failure;
use crate::providers::pool::FRESH;

pub(super) async fn list(State(face): State<Face>, Extension(caller): Extension<Caller>) -> Result<Response, Failure> {
    may_list(&caller)?;
    Ok(reply(&json!({ "object": "list", "data": all(&face).await })))
}

/// Requires permission for the equivalent tool.
fn may_list(caller: &Caller) -> Result<(), Failure> {
    const TOOL: &str = "list_models";
    if caller.may_use(TOOL) { Ok(()) } else { Err(Failure::not_granted(TOOL)) }
}

pub(super) async fn one(
    State(face): State<Face>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Response, Failure> {
    may_list(&caller)?;
    let found = all(&face).await.into_iter().find(|model| model["id"] == id);
    found.map(|model| reply(&model)).ok_or_else(|| Failure::no_such_model(&id))
}

/// `auto` and its policies, the built-in embedding model, and all models of the providers.
async fn all(face: &Face) -> Vec<Value> {
    face.router.pool().list(FRESH).await;
    let own = face.router.autos().chain([face.inference.planned()]).map(|id| entry(&id, "corbie"));
    let known = face.router.pool().known().models;
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

//! Errors in OpenAI's format. SDKs distinguish them by status and parse `error`.

use axum::response::{IntoResponse, Response};
use corbie_mcp::ErrorCode;
use corbie_mcp::transport::BodyError;
use http::header::{ALLOW, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderName, HeaderValue, Method, StatusCode, Uri};
use serde_json::{Value, json};

use crate as route;

/// An error response.
#[derive(Debug)]
pub(super) struct ApiError {
    status: StatusCode,
    message: String,
    /// OpenAI's error type.
    kind: &'static str,
    /// A more specific code.
    code: Option<String>,
    /// The invalid parameter.
    param: Option<String>,
    /// Value of `Retry-After`, in seconds.
    retry_after: Option<u64>,
    /// corbie has already retried.
    retried: bool,
}

/// Characters of an unknown path that are logged.
const MAX_LOGGED_PATH: usize = 128;

const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

impl ApiError {
    pub(super) fn invalid(message: impl Into<String>, param: Option<&str>) -> ApiError {
        let param = param.map(str::to_owned);
        ApiError { param, ..ApiError::new(StatusCode::BAD_REQUEST, "invalid_request_error", message) }
    }

    pub(super) fn shutting_down() -> ApiError {
        let message = "the server is shutting down; reconnect after it has restarted";
        ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "server_error", message)
    }

    pub(super) fn not_trusted() -> ApiError {
        let message = "chat completions require trust level `verified`, because they cost money; the operator can \
            raise the caller's trust level with `--trust verified` or `trust` in the configuration";
        ApiError::new(StatusCode::FORBIDDEN, "permission_error", message)
    }

    pub(super) fn not_granted(tool: &str) -> ApiError {
        let message = format!("the caller's token does not permit `{tool}`; the operator can create one that does");
        ApiError::new(StatusCode::FORBIDDEN, "permission_error", message)
    }

    pub(super) fn no_such_model(model: &str) -> ApiError {
        let message = format!("unknown model `{model}`; use `GET /v1/models` to list available models");
        let code = Some("model_not_found".to_owned());
        ApiError { code, ..ApiError::new(StatusCode::NOT_FOUND, "invalid_request_error", message) }
    }

    /// The same for embeddings, which also mentions the built-in model.
    pub(super) fn no_embedding_model(why: &route::Error, inside: &str) -> ApiError {
        let message = format!("{why}; `{inside}` is the built-in embedding model");
        let (code, param) = (Some("model_not_found".to_owned()), Some("model".to_owned()));
        ApiError {
            code,
            param,
            retried: true,
            ..ApiError::new(StatusCode::NOT_FOUND, "invalid_request_error", message)
        }
    }

    pub(super) fn internal(message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "server_error", message)
    }

    /// A temporary error with its `Retry-After`.
    fn busy(status: StatusCode, kind: &'static str, error: &corbie_mcp::Error) -> ApiError {
        ApiError { retry_after: error.retry_after_seconds(), ..ApiError::new(status, kind, error.to_string()) }
    }

    fn new(status: StatusCode, kind: &'static str, message: impl Into<String>) -> ApiError {
        let message = message.into();
        ApiError { status, message, kind, code: None, param: None, retry_after: None, retried: false }
    }

    /// The response body, also used for an error event in a stream.
    pub(super) fn body(&self) -> Value {
        let ApiError { message, kind, code, param, .. } = self;
        json!({ "error": { "message": message, "type": kind, "param": param, "code": code } })
    }
}

impl From<route::Error> for ApiError {
    fn from(error: route::Error) -> ApiError {
        let (status, kind) = match error.code() {
            ErrorCode::Authentication => (StatusCode::BAD_GATEWAY, "authentication_error"),
            ErrorCode::RateLimited => (StatusCode::TOO_MANY_REQUESTS, "rate_limit_error"),
            ErrorCode::ModelNotFound => (StatusCode::NOT_FOUND, "invalid_request_error"),
            ErrorCode::InvalidParams => (StatusCode::BAD_REQUEST, "invalid_request_error"),
            ErrorCode::Timeout => (StatusCode::GATEWAY_TIMEOUT, "server_error"),
            ErrorCode::Network => (StatusCode::BAD_GATEWAY, "server_error"),
            _ => (StatusCode::SERVICE_UNAVAILABLE, "server_error"),
        };
        ApiError {
            code: Some(error.kind().to_owned()),
            param: error.parameter().map(str::to_owned),
            retry_after: error.retry_after().map(|wait| wait.as_secs() + u64::from(wait.subsec_nanos() > 0)),
            retried: !matches!(error, route::Error::InvalidRequest(_)),
            ..ApiError::new(status, kind, error.to_string())
        }
    }
}

/// An incomplete body, or one for which there was no memory.
impl From<BodyError> for ApiError {
    fn from(not_received: BodyError) -> ApiError {
        let status = not_received.status();
        match not_received {
            BodyError::NoMemory(error) => ApiError::busy(status, "server_error", &error),
            other => ApiError::new(status, "invalid_request_error", other.to_string()),
        }
    }
}

/// Admission failed: the queue is full, or the wait was too long.
impl From<corbie_mcp::Error> for ApiError {
    fn from(error: corbie_mcp::Error) -> ApiError {
        ApiError::busy(StatusCode::TOO_MANY_REQUESTS, "rate_limit_error", &error)
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let json = [(CONTENT_TYPE, HeaderValue::from_static("application/json"))];
        let mut response = (self.status, json, self.body().to_string()).into_response();
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        // Prevents clients from repeating retries that corbie has already made.
        if self.retried {
            response.headers_mut().insert(SHOULD_RETRY, HeaderValue::from_static("false"));
        }
        response
    }
}

/// Renders errors of the server's middleware on the paths of this API.
pub fn render_rejection(path: &str, status: StatusCode, error: &corbie_mcp::Error) -> Option<Response> {
    let kind = match status {
        StatusCode::UNAUTHORIZED => "authentication_error",
        StatusCode::TOO_MANY_REQUESTS => "rate_limit_error",
        StatusCode::BAD_REQUEST => "invalid_request_error",
        StatusCode::SERVICE_UNAVAILABLE => "server_error",
        _ => "permission_error",
    };
    (path == "/v1" || path.starts_with("/v1/")).then(|| ApiError::busy(status, kind, error).into_response())
}

pub(super) async fn only_post() -> Response {
    let message = "method not allowed; use POST";
    let failure = ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "invalid_request_error", message);
    let mut response = failure.into_response();
    response.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
    response
}

pub(super) async fn only_get() -> Response {
    let failure = ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "invalid_request_error", "method not allowed; use GET");
    let mut response = failure.into_response();
    response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET"));
    response
}

/// Usually a wrong base URL, or a client that needs another API. The user often sees neither path nor response.
pub(super) async fn not_found(method: Method, uri: Uri) -> ApiError {
    let path: String = uri.path().chars().take(MAX_LOGGED_PATH).collect();
    tracing::info!(
        %method,
        path,
        "unknown path; use `/v1/chat/completions`, `/v1/models` or `/v1/embeddings`: the base URL of clients ends with `/v1`"
    );
    let message = "unknown path; use `/v1/chat/completions`, `/v1/models` or `/v1/embeddings`";
    ApiError::new(StatusCode::NOT_FOUND, "invalid_request_error", message)
}

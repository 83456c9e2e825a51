//! REST style: each method is a path below the URL, the body holds its params, the response its result.

use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};
use url::Url;

use super::Error;
use super::http_transport::HttpTransport;

/// A server with the REST style.
#[derive(Debug)]
pub(super) struct RestSession {
    transport: HttpTransport,
    /// Base URL; a trailing slash is ignored.
    url: Url,
}

impl RestSession {
    /// Initializes. `None` if the server does not support this style.
    pub(super) async fn open(exchange: HttpTransport, url: &Url) -> Result<Option<RestSession>, Error> {
        let rest = RestSession { transport: exchange, url: url.clone() };
        let greeting = json!({
            "protocolVersion": "2024-11-05",
            "capabilities": {},
            "clientInfo": {"name": "corbie", "version": env!("CARGO_PKG_VERSION")},
        });
        let (status, answer) = rest.post("initialize", &greeting).await?;
        let is_served = status.is_success() && answer.is_some_and(|answer| answer.get("error").is_none());
        match status.as_u16() {
            _ if is_served => Ok(Some(rest)),
            // No such path, method not allowed there, or JSON-RPC expected there: the server may support another style.
            200..=299 | 400 | 404 | 405 | 406 | 415 | 422 => Ok(None),
            _ => Err(Error::of_status(status)),
        }
    }

    /// The result of a method; `None` if the method returned an error.
    pub(super) async fn call(&self, method: &str, params: &Value) -> Result<Option<Value>, Error> {
        let (status, answer) = self.post(method, params).await?;
        // These statuses concern the server or our credentials, regardless of the body.
        if status.is_server_error() || matches!(status.as_u16(), 401 | 403 | 408 | 429) {
            return Err(Error::of_status(status));
        }
        match answer {
            Some(mut answer) if answer.get("jsonrpc").is_some() => Ok(answer.get_mut("result").map(Value::take)),
            Some(answer) if answer.get("error").is_some() => Ok(None),
            Some(answer) if status.is_success() => Ok(Some(answer)),
            None if status.is_success() => Err(Error::Unreadable("response is not a JSON object")),
            _ => Err(Error::of_status(status)),
        }
    }

    /// The status, and the body if it is a JSON object.
    async fn post(&self, method: &str, params: &Value) -> Result<(StatusCode, Option<Value>), Error> {
        let mut url = self.url.clone();
        url.set_path(&format!("{}/{method}", self.url.path().trim_end_matches('/')));
        let reply = self.transport.post(&url, "application/json", HeaderMap::new(), params.to_string()).await?;
        let status = reply.status();
        let body = reply.into_bytes().await?;
        Ok((status, serde_json::from_slice(&body).ok().filter(Value::is_object)))
    }
}

//! The plain style: every method is a path below the URL, its params are the body, its result is the answer.

use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};
use url::Url;

use super::Error;
use super::exchange::Exchange;

/// A server that is asked in the plain style.
#[derive(Debug)]
pub(super) struct Rest {
    exchange: Exchange,
    /// Without a slash at its end.
    url: Url,
}

impl Rest {
    /// Greets the server. None if it does not serve this style.
    pub(super) async fn open(exchange: Exchange, url: &Url) -> Result<Option<Rest>, Error> {
        let rest = Rest { exchange, url: url.clone() };
        let greeting = json!({
            "protocolVersion": "2024-11-05",
            "capabilities": {},
            "clientInfo": {"name": "corbie", "version": env!("CARGO_PKG_VERSION")},
        });
        let (status, answer) = rest.post("initialize", &greeting).await?;
        let is_served = status.is_success() && answer.is_some_and(|answer| answer.get("error").is_none());
        match status.as_u16() {
            _ if is_served => Ok(Some(rest)),
            // No such path, no such method there, or JSON-RPC expected there: another style may be served.
            200..=299 | 400 | 404 | 405 | 406 | 415 | 422 => Ok(None),
            _ => Err(Error::of_status(status)),
        }
    }

    /// The result of a method. None where the method itself failed.
    pub(super) async fn ask(&self, method: &str, params: &Value) -> Result<Option<Value>, Error> {
        let (status, answer) = self.post(method, params).await?;
        // These are about the server or about us, whatever the body says.
        if status.is_server_error() || matches!(status.as_u16(), 401 | 403 | 408 | 429) {
            return Err(Error::of_status(status));
        }
        match answer {
            Some(mut answer) if answer.get("jsonrpc").is_some() => Ok(answer.get_mut("result").map(Value::take)),
            Some(answer) if answer.get("error").is_some() => Ok(None),
            Some(answer) if status.is_success() => Ok(Some(answer)),
            None if status.is_success() => Err(Error::Unreadable("it is no JSON object")),
            _ => Err(Error::of_status(status)),
        }
    }

    /// The status, and the body if it is a JSON object.
    async fn post(&self, method: &str, params: &Value) -> Result<(StatusCode, Option<Value>), Error> {
        let mut url = self.url.clone();
        url.set_path(&format!("{}/{method}", self.url.path().trim_end_matches('/')));
        let reply = self.exchange.post(&url, "application/json", HeaderMap::new(), params.to_string()).await?;
        let status = reply.status();
        let body = reply.whole().await?;
        Ok((status, serde_json::from_slice(&body).ok().filter(Value::is_object)))
    }
}

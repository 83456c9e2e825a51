//! Transport adapter: `rmcp` sends over corbie's shared HTTP client.
//!
//! A server may answer a request with an event stream. Only the response matters here, so the adapter waits for it and
//! returns it like a plain response. Notifications and requests from the server are ignored, because this client
//! declares no capabilities.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::common::client_side_sse::BoxedSseResponse;
use rmcp::transport::common::http_header::HEADER_SESSION_ID;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse as Posted,
};
use serde::Deserialize;
use url::Url;

use super::Error;
use super::http_transport::{HttpTransport, ServerReply};
use corbie_llm::SseParser;

type TransportError = StreamableHttpError<Error>;

const ACCEPT: &str = "application/json, text/event-stream";
/// How long to wait for the end of a stream after its response.
const END_OF_STREAM_TIMEOUT: Duration = Duration::from_millis(10);

impl StreamableHttpClient for HttpTransport {
    type Error = Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        _: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<Posted, TransportError> {
        let in_session = session.is_some();
        let body = serde_json::to_vec(&message)?;
        let mut headers = with_session(headers, session)?;
        add_trace(&mut headers, &body);
        let reply = self.post(&address(&uri)?, ACCEPT, headers, body).await.map_err(client_error)?;
        let status = reply.status();
        let session = reply.headers().get(HEADER_SESSION_ID).and_then(|id| id.to_str().ok()).map(str::to_owned);
        match status {
            StatusCode::ACCEPTED | StatusCode::NO_CONTENT => return Ok(Posted::Accepted),
            StatusCode::NOT_FOUND if in_session => return Err(StreamableHttpError::SessionExpired),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => return Err(client_error(Error::of_status(status))),
            _ => {}
        }
        let response = response(reply).await.map_err(client_error)?;
        match response {
            Some(ServerJsonRpcMessage::Response(_)) if !status.is_success() => {
                Err(client_error(Error::of_status(status)))
            }
            Some(response) => Ok(Posted::Json(response, session)),
            None if !status.is_success() => Err(client_error(Error::of_status(status))),
            // A notification needs no response body; some servers return 200 instead of 202.
            None if !matches!(message, ClientJsonRpcMessage::Request(_)) => Ok(Posted::Accepted),
            None => Err(client_error(Error::Unreadable("not a JSON-RPC response"))),
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        _: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), TransportError> {
        // The status is ignored: a server need not support sessions.
        let headers = with_session(headers, Some(session))?;
        self.send(Method::DELETE, &address(&uri)?, headers, Bytes::new()).await.map_err(client_error)?;
        Ok(())
    }

    /// The client needs no messages between requests.
    async fn get_stream(
        &self,
        _: Arc<str>,
        _: Option<Arc<str>>,
        _: Option<String>,
        _: Option<String>,
        _: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxedSseResponse, TransportError> {
        Err(StreamableHttpError::ServerDoesNotSupportSse)
    }
}

/// The first response in a body, which is JSON or an event stream.
async fn response(mut reply: ServerReply) -> Result<Option<ServerJsonRpcMessage>, Error> {
    let answers = |message: &ServerJsonRpcMessage| {
        matches!(message, ServerJsonRpcMessage::Response(_) | ServerJsonRpcMessage::Error(_))
    };
    if !reply.has_content_type("text/event-stream") {
        let body = reply.into_bytes().await?;
        return Ok(serde_json::from_slice(&body).ok().filter(answers));
    }
    let mut events = SseParser::default();
    while let Some(bytes) = reply.next().await? {
        let complete = events.push(&bytes).map_err(|_| Error::Unreadable("event is too large"))?;
        let mut messages = complete.iter().filter_map(|event| serde_json::from_str(&event.data).ok());
        if let Some(response) = messages.find(answers) {
            // A stream that ends here leaves its connection reusable; a longer one is abandoned.
            let rest = async { while let Ok(Some(_)) = reply.next().await {} };
            let _ = tokio::time::timeout(END_OF_STREAM_TIMEOUT, rest).await;
            return Ok(Some(response));
        }
    }
    Ok(None)
}

/// Copies the trace context from the message to the headers: a task of the library sends the messages, outside the span
/// of the caller.
fn add_trace(headers: &mut HeaderMap, body: &[u8]) {
    #[derive(Deserialize)]
    struct Message {
        params: Params,
    }
    #[derive(Deserialize)]
    struct Params {
        #[serde(rename = "_meta")]
        meta: Meta,
    }
    #[derive(Deserialize)]
    struct Meta {
        traceparent: String,
        tracestate: Option<String>,
    }
    let Ok(Message { params: Params { meta } }) = serde_json::from_slice(body) else { return };
    let said = [("traceparent", Some(meta.traceparent)), ("tracestate", meta.tracestate)];
    for (name, value) in said {
        if let Some(Ok(value)) = value.map(HeaderValue::try_from) {
            headers.insert(name, value);
        }
    }
}

fn with_session(
    headers: HashMap<HeaderName, HeaderValue>,
    session: Option<Arc<str>>,
) -> Result<HeaderMap, TransportError> {
    let mut headers: HeaderMap = headers.into_iter().collect();
    if let Some(session) = session {
        let session =
            HeaderValue::from_str(&session).map_err(|_| client_error(Error::Unreadable("invalid session ID")))?;
        headers.insert(HEADER_SESSION_ID, session);
    }
    Ok(headers)
}

fn address(uri: &str) -> Result<Url, TransportError> {
    uri.parse().map_err(|_| client_error(Error::Unreachable("invalid `url`")))
}

fn client_error(error: Error) -> TransportError {
    StreamableHttpError::Client(error)
}

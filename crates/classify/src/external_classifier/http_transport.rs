//! HTTP requests to a server over corbie's shared client, bounded in time and size.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use tokio::time::Instant;
use url::Url;

use super::{Error, MAX_MESSAGE_BYTES};
use corbie_llm::http_client::{HttpClient, UnreadResponse};

/// Request settings of one server.
#[derive(Debug, Clone)]
pub(super) struct HttpTransport {
    pub(super) client: HttpClient,
    /// Configured headers.
    pub(super) headers: HeaderMap,
    /// Maximum duration of a request including its response body.
    pub(super) timeout: Duration,
}

/// A response whose body is still being received.
pub(super) struct ServerReply {
    response: UnreadResponse,
    received_bytes: usize,
    deadline: Instant,
}

impl HttpTransport {
    pub(super) async fn post(
        &self,
        url: &Url,
        accept: &'static str,
        more: HeaderMap,
        body: impl Into<Bytes>,
    ) -> Result<ServerReply, Error> {
        let mut headers = more;
        headers.insert(ACCEPT, HeaderValue::from_static(accept));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        self.send(Method::POST, url, headers, body.into()).await
    }

    pub(super) async fn send(
        &self,
        method: Method,
        url: &Url,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<ServerReply, Error> {
        let mut request = http::Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() = url.as_str().parse().map_err(|_| Error::Unreachable("invalid `url`"))?;
        *request.headers_mut() = self.headers.clone();
        request.headers_mut().extend(headers);
        let deadline = Instant::now() + self.timeout;
        let opened = self.client.open(request, deadline).await?;
        Ok(ServerReply { response: opened, received_bytes: 0, deadline })
    }
}

impl ServerReply {
    pub(super) fn status(&self) -> StatusCode {
        self.response.status
    }

    pub(super) fn headers(&self) -> &HeaderMap {
        &self.response.headers
    }

    pub(super) fn has_content_type(&self, kind: &str) -> bool {
        let given = self.response.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        given.is_some_and(|given| given.starts_with(kind))
    }

    /// The next bytes of the body; `None` at its end.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        let bytes = self.response.next(self.deadline).await?;
        self.received_bytes += bytes.as_ref().map_or(0, Bytes::len);
        if self.received_bytes > MAX_MESSAGE_BYTES {
            return Err(Error::Unreadable("response is larger than 4 MiB"));
        }
        Ok(bytes)
    }

    pub(super) async fn into_bytes(mut self) -> Result<Bytes, Error> {
        let mut whole = BytesMut::new();
        while let Some(bytes) = self.next().await? {
            whole.extend_from_slice(&bytes);
        }
        Ok(whole.freeze())
    }
}

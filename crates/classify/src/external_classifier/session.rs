//! JSON-RPC session with a server, over HTTP or stdio.

use std::time::Duration;

use corbie_mcp::TraceContext;
use rmcp::model::{CallToolRequestParams, ClientConfig, Implementation, PaginatedRequestParams, RequestParamsMeta};
use rmcp::service::{ClientInitializeError, RunningService};
use rmcp::transport::streamable_http_client::{StreamableHttpClientTransportConfig, StreamableHttpError};
use rmcp::transport::{DynamicTransportError, IntoTransport, StreamableHttpClientTransport};
use rmcp::{RoleClient, ServiceError, ServiceExt};
use serde_json::{Map, Value};
use tokio::process::Child;
use url::Url;

use super::http_transport::HttpTransport;
use super::{Error, stdio};

/// A session after `initialize`.
pub(super) struct JsonRpcSession {
    service: RunningService<RoleClient, ClientConfig>,
    timeout: Duration,
    /// The child process lives as long as the session.
    _program: Option<Child>,
}

/// Maximum concurrent requests; further ones wait.
const MAX_CONCURRENT_REQUESTS: usize = 64;

impl JsonRpcSession {
    pub(super) async fn over_http(exchange: HttpTransport, url: &Url) -> Result<JsonRpcSession, Error> {
        let timeout = exchange.timeout;
        let config = StreamableHttpClientTransportConfig::with_uri(url.as_str())
            .max_concurrent_requests(MAX_CONCURRENT_REQUESTS);
        let transport = StreamableHttpClientTransport::with_client(exchange, config);
        initialize(transport, timeout, None).await
    }

    pub(super) async fn over_stdio(
        program: (Child, stdio::StdioTransport),
        timeout: Duration,
    ) -> Result<JsonRpcSession, Error> {
        let (child, streams) = program;
        initialize(streams, timeout, Some(child)).await
    }

    /// One page of tool names, and the cursor of the next page.
    pub(super) async fn tools(&self, cursor: Option<String>) -> Result<(Vec<String>, Option<String>), Error> {
        let params = PaginatedRequestParams::default().with_cursor(cursor);
        let page = self.with_timeout(self.service.list_tools(Some(params))).await?;
        let page = page.ok_or(Error::Unreadable("cannot list tools"))?;
        Ok((page.tools.into_iter().map(|tool| tool.name.into_owned()).collect(), page.next_cursor))
    }

    /// The result of a tool; `None` if the call returned a JSON-RPC error.
    pub(super) async fn call(&self, tool: &str, arguments: Map<String, Value>) -> Result<Option<Value>, Error> {
        let mut params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        if let Some(trace) = TraceContext::current() {
            params.set_traceparent(&trace.child_traceparent());
            if let Some(state) = trace.tracestate() {
                params.set_tracestate(state);
            }
        }
        let result = self.with_timeout(self.service.call_tool(params)).await?;
        let result = result.map(serde_json::to_value).transpose();
        result.map_err(|_| Error::Unreadable("response is not a tool result"))
    }

    /// `None` if the server returned a JSON-RPC error.
    async fn with_timeout<T>(&self, answer: impl Future<Output = Result<T, ServiceError>>) -> Result<Option<T>, Error> {
        match tokio::time::timeout(self.timeout, answer).await {
            Err(_) => Err(Error::Timeout),
            Ok(Ok(answer)) => Ok(Some(answer)),
            Ok(Err(ServiceError::McpError(_))) => Ok(None),
            Ok(Err(ServiceError::TransportSend(error))) => Err(transport_error(&error)),
            Ok(Err(ServiceError::UnexpectedResponse)) => Err(Error::Unreadable("response has an unexpected ID")),
            Ok(Err(ServiceError::Timeout { .. })) => Err(Error::Timeout),
            Ok(Err(_)) => Err(CLOSED),
        }
    }
}

const CLOSED: Error = Error::Unreachable("connection closed");

async fn initialize<T, E, A>(transport: T, timeout: Duration, program: Option<Child>) -> Result<JsonRpcSession, Error>
where
    T: IntoTransport<RoleClient, E, A>,
    E: std::error::Error + Send + Sync + 'static,
{
    let identity = Implementation::new("corbie", env!("CARGO_PKG_VERSION"));
    let begun = ClientConfig::new(Default::default(), identity).serve(transport);
    match tokio::time::timeout(timeout, begun).await {
        Ok(Ok(service)) => Ok(JsonRpcSession { service, timeout, _program: program }),
        Ok(Err(ClientInitializeError::TransportError { error, .. })) => Err(transport_error(&error)),
        Ok(Err(ClientInitializeError::ConnectionClosed(_))) => Err(CLOSED),
        Ok(Err(_)) => Err(Error::Unreadable("`initialize` failed")),
        Err(_) => Err(Error::Timeout),
    }
}

/// The error of [`HttpTransport`], if it is the cause.
fn transport_error(error: &DynamicTransportError) -> Error {
    match error.error.downcast_ref::<StreamableHttpError<Error>>() {
        Some(StreamableHttpError::Client(error)) => error.clone(),
        _ => CLOSED,
    }
}

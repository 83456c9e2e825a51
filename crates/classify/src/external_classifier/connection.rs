//! Connection to a classification server, in REST or JSON-RPC style.

use serde_json::{Map, Value, json};

use super::http_transport::HttpTransport;
use super::rest::RestSession;
use super::session::JsonRpcSession;
use super::tool_result::{self, ToolResult};
use super::{Error, Settings, Transport, stdio};
use corbie_llm::http_client::HttpClient;

/// An initialized connection.
pub(super) enum ClassifierConnection {
    Rest(RestSession),
    JsonRpc(JsonRpcSession),
}

/// Maximum pages read from the tool list.
const MAX_PAGES: usize = 50;

impl ClassifierConnection {
    /// Connects and initializes.
    pub(super) async fn open(settings: &Settings, client: &HttpClient) -> Result<ClassifierConnection, Error> {
        let timeout = settings.timeout;
        let exchange =
            |headers: &http::HeaderMap| HttpTransport { client: client.clone(), headers: headers.clone(), timeout };
        let session = match &settings.transport {
            Transport::Http { url, headers } => match RestSession::open(exchange(headers), url).await? {
                Some(rest) => return Ok(ClassifierConnection::Rest(rest)),
                None => JsonRpcSession::over_http(exchange(headers), url).await?,
            },
            Transport::StreamableHttp { url, headers } => JsonRpcSession::over_http(exchange(headers), url).await?,
            Transport::Stdio { command, args, env } => {
                JsonRpcSession::over_stdio(stdio::start(command, args, env)?, timeout).await?
            }
        };
        Ok(ClassifierConnection::JsonRpc(session))
    }

    /// The names of all tools.
    pub(super) async fn tools(&self) -> Result<Vec<String>, Error> {
        let mut names = Vec::new();
        let mut cursor = None;
        for _ in 0..MAX_PAGES {
            let (page, next) = match self {
                ClassifierConnection::Rest(rest) => page_of_tools(rest, cursor).await?,
                ClassifierConnection::JsonRpc(session) => session.tools(cursor).await?,
            };
            names.extend(page);
            cursor = next;
            if cursor.is_none() {
                break;
            }
        }
        Ok(names)
    }

    /// Calls a tool and parses its result.
    pub(super) async fn call(&self, tool: &str, arguments: Map<String, Value>) -> Result<ToolResult, Error> {
        let result = match self {
            ClassifierConnection::Rest(rest) => {
                rest.call("tools/call", &json!({"name": tool, "arguments": arguments})).await?
            }
            ClassifierConnection::JsonRpc(session) => session.call(tool, arguments).await?,
        };
        tool_result::parse(tool, &result.ok_or_else(|| Error::Tool { tool: tool.into() })?)
    }
}

async fn page_of_tools(rest: &RestSession, cursor: Option<String>) -> Result<(Vec<String>, Option<String>), Error> {
    let params = cursor.map_or_else(|| json!({}), |cursor| json!({"cursor": cursor}));
    let unreadable = Error::Unreadable("cannot list tools");
    let page = rest.call("tools/list", &params).await?.ok_or(unreadable.clone())?;
    let tools = page.get("tools").and_then(Value::as_array).ok_or(unreadable)?;
    let names = tools.iter().filter_map(|tool| Some(tool.get("name")?.as_str()?.to_owned())).collect();
    let next = page.get("nextCursor").and_then(Value::as_str).map(str::to_owned);
    Ok((names, next))
}

//! Connection to a classification server, in REST or JSON-RPC style.

use serde_json::{Map, Value, json};

use super::answer::{self, Answer};
use super::exchange::Exchange;
use super::rest::Rest;
use super::session::Session;
use super::{Error, Settings, Transport, child};
use crate::providers::client::Client;

/// An initialized connection.
pub(super) enum Connection {
    Rest(Rest),
    JsonRpc(Session),
}

/// Maximum pages read from the tool list.
const MOST_PAGES: usize = 50;

impl Connection {
    /// Connects and initializes.
    pub(super) async fn open(settings: &Settings, client: &Client) -> Result<Connection, Error> {
        let timeout = settings.timeout;
        let exchange =
            |headers: &http::HeaderMap| Exchange { client: client.clone(), headers: headers.clone(), timeout };
        let session = match &settings.transport {
            Transport::Http { url, headers } => match Rest::open(exchange(headers), url).await? {
                Some(rest) => return Ok(Connection::Rest(rest)),
                None => Session::over_http(exchange(headers), url).await?,
            },
            Transport::StreamableHttp { url, headers } => Session::over_http(exchange(headers), url).await?,
            Transport::Stdio { command, args, env } => {
                Session::over_stdio(child::start(command, args, env)?, timeout).await?
            }
        };
        Ok(Connection::JsonRpc(session))
    }

    /// The names of all tools.
    pub(super) async fn tools(&self) -> Result<Vec<String>, Error> {
        let mut names = Vec::new();
        let mut cursor = None;
        for _ in 0..MOST_PAGES {
            let (page, next) = match self {
                Connection::Rest(rest) => page_of_tools(rest, cursor).await?,
                Connection::JsonRpc(session) => session.tools(cursor).await?,
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
    pub(super) async fn call(&self, tool: &str, arguments: Map<String, Value>) -> Result<Answer, Error> {
        let result = match self {
            Connection::Rest(rest) => rest.ask("tools/call", &json!({"name": tool, "arguments": arguments})).await?,
            Connection::JsonRpc(session) => session.call(tool, arguments).await?,
        };
        answer::read(tool, &result.ok_or_else(|| Error::Tool { tool: tool.into() })?)
    }
}

async fn page_of_tools(rest: &Rest, cursor: Option<String>) -> Result<(Vec<String>, Option<String>), Error> {
    let params = cursor.map_or_else(|| json!({}), |cursor| json!({"cursor": cursor}));
    let unreadable = Error::Unreadable("its tools cannot be listed");
    let page = rest.ask("tools/list", &params).await?.ok_or(unreadable.clone())?;
    let tools = page.get("tools").and_then(Value::as_array).ok_or(unreadable)?;
    let names = tools.iter().filter_map(|tool| Some(tool.get("name")?.as_str()?.to_owned())).collect();
    let next = page.get("nextCursor").and_then(Value::as_str).map(str::to_owned);
    Ok((names, next))
}

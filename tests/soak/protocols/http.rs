//! MCP over HTTP: stateless (2026-07-28), with a session (earlier versions), and REST style.

use std::time::Duration;

use serde_json::{Value, json};

use super::ProtocolClient;
use crate::call_outcome::{CallOutcome, is_notification};
use crate::http::{HttpConnection, HttpRequest, HttpResponse, ServerAddress};

const MODERN: &str = "2026-07-28";
const LEGACY: &str = "2025-06-18";

/// Posts JSON and returns the outcome.
struct HttpPoster {
    connection: HttpConnection,
    next_id: u64,
}

impl HttpPoster {
    fn new(place: ServerAddress) -> HttpPoster {
        HttpPoster { connection: HttpConnection::new(place), next_id: 1 }
    }

    fn send(
        &mut self,
        path: &str,
        more: &[(&str, &str)],
        body: &Value,
        patience: Duration,
    ) -> Result<HttpResponse, CallOutcome> {
        let mut headers = vec![("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream")];
        headers.extend(more);
        let body = body.to_string();
        let request = HttpRequest { method: "POST", path, headers: &headers, body: body.as_bytes() };
        self.connection.send(&request, patience).map_err(|error| CallOutcome::from_io_error(&error))
    }

    /// Sends a message and returns its reply.
    fn request(
        &mut self,
        more: &[(&str, &str)],
        method: &str,
        params: Value,
        patience: Duration,
    ) -> (CallOutcome, Option<HttpResponse>) {
        let id = self.next_id;
        self.next_id += 1;
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        match self.send("/mcp", more, &message, patience) {
            Ok(reply) => (parse_response(&reply, id), Some(reply)),
            Err(lost) => (lost, None),
        }
    }
}

/// The reply to a message, as JSON or as the last event of a stream.
fn parse_response(reply: &HttpResponse, id: u64) -> CallOutcome {
    let text = reply.text();
    if reply.header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream")) {
        return parse_events(&text, id);
    }
    match serde_json::from_str::<Value>(&text) {
        // A request rejected before its body was parsed gets a reply without its id.
        Ok(message) if message["jsonrpc"] == "2.0" && (reply.status == 200 || !message["id"].is_null()) => {
            CallOutcome::from_message(&message, id)
        }
        _ if reply.status != 200 => CallOutcome::from_status(reply.status, &text),
        _ => CallOutcome::Invalid(format!("no message: {text}")),
    }
}

/// Only notifications may precede the reply, and no event may follow it.
fn parse_events(text: &str, id: u64) -> CallOutcome {
    let mut answer = None;
    let events = text.lines().filter_map(|line| line.strip_prefix("data:")).filter(|data| !data.trim().is_empty());
    for data in events {
        match serde_json::from_str::<Value>(data) {
            Ok(message) if answer.is_none() && message["id"] == id => answer = Some(message),
            Ok(message) if answer.is_none() && is_notification(&message) => {}
            _ => return CallOutcome::Invalid(format!("an event that is no answer to {id}: {data}")),
        }
    }
    match answer {
        Some(message) => CallOutcome::from_message(&message, id),
        None => CallOutcome::Lost("the stream ended without the answer".to_owned()),
    }
}

/// One message without version or session, as a script sends it, to a TCP port or a Unix socket.
pub(crate) struct PlainHttp(HttpPoster);

impl PlainHttp {
    pub(crate) fn new(place: ServerAddress) -> PlainHttp {
        PlainHttp(HttpPoster::new(place))
    }
}

impl ProtocolClient for PlainHttp {
    fn call(&mut self, tool: &str, arguments: &Value, patience: Duration) -> CallOutcome {
        self.0.request(&[], "tools/call", json!({ "name": tool, "arguments": arguments }), patience).0
    }
}

/// The 2026-07-28 version: no session, the request carries everything.
pub(crate) struct ModernHttp(HttpPoster);

impl ModernHttp {
    pub(crate) fn new(place: ServerAddress) -> ModernHttp {
        ModernHttp(HttpPoster::new(place))
    }
}

impl ProtocolClient for ModernHttp {
    fn call(&mut self, tool: &str, arguments: &Value, patience: Duration) -> CallOutcome {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientInfo": { "name": "chaos", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let headers = [("MCP-Protocol-Version", MODERN), ("Mcp-Method", "tools/call"), ("Mcp-Name", tool)];
        let params = json!({ "name": tool, "arguments": arguments, "_meta": meta });
        self.0.request(&headers, "tools/call", params, patience).0
    }
}

/// A session as in earlier versions. A restarted server does not know it, so the client opens a new one.
pub(crate) struct SessionHttp {
    post: HttpPoster,
    id: Option<String>,
}

impl SessionHttp {
    pub(crate) fn new(place: ServerAddress) -> SessionHttp {
        SessionHttp { post: HttpPoster::new(place), id: None }
    }

    fn begin(&mut self, patience: Duration) -> Result<String, CallOutcome> {
        let params = json!({
            "protocolVersion": LEGACY, "capabilities": {}, "clientInfo": { "name": "chaos", "version": "1" },
        });
        let message = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
        let reply = self.post.send("/mcp", &[], &message, patience)?;
        if reply.status != 200 {
            return Err(CallOutcome::from_status(reply.status, &reply.text()));
        }
        let said: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
        let is_greeting = said["id"] == 0 && said["result"]["protocolVersion"] == LEGACY;
        let id = match reply.header("mcp-session-id") {
            Some(id) if is_greeting => id,
            _ if said["id"] == 0 && said["error"].is_object() => return Err(CallOutcome::from_message(&said, 0)),
            _ => return Err(CallOutcome::Invalid(format!("no beginning of a session: {}", reply.text()))),
        };
        let headers = [("MCP-Protocol-Version", LEGACY), ("Mcp-Session-Id", id)];
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        self.post.send("/mcp", &headers, &ready, patience)?;
        Ok(id.to_owned())
    }
}

impl ProtocolClient for SessionHttp {
    fn call(&mut self, tool: &str, arguments: &Value, patience: Duration) -> CallOutcome {
        let id = match self.id.take().map_or_else(|| self.begin(patience), Ok) {
            Ok(id) => id,
            Err(outcome @ (CallOutcome::Invalid(_) | CallOutcome::Failed(_))) => return outcome,
            // The call itself was not sent.
            Err(outcome) => return CallOutcome::Refused(format!("no session: {outcome:?}")),
        };
        let headers = [("MCP-Protocol-Version", LEGACY), ("Mcp-Session-Id", id.as_str())];
        let params = json!({ "name": tool, "arguments": arguments });
        let (outcome, reply) = self.post.request(&headers, "tools/call", params, patience);
        match reply.map(|reply| reply.status) {
            Some(404) => CallOutcome::Refused("the session is not known any more".to_owned()),
            Some(_) => {
                self.id = Some(id);
                outcome
            }
            None => outcome,
        }
    }
}

/// Arguments as the body, the result as the reply.
pub(crate) struct RestHttp(HttpPoster);

impl RestHttp {
    pub(crate) fn new(place: ServerAddress) -> RestHttp {
        RestHttp(HttpPoster::new(place))
    }
}

impl ProtocolClient for RestHttp {
    fn call(&mut self, tool: &str, arguments: &Value, patience: Duration) -> CallOutcome {
        let body = json!({ "name": tool, "arguments": arguments });
        let reply = match self.0.send("/mcp/tools/call", &[], &body, patience) {
            Ok(reply) => reply,
            Err(lost) => return lost,
        };
        let text = reply.text();
        match serde_json::from_str::<Value>(&text) {
            Ok(result) if reply.status == 200 => CallOutcome::from_tool_result(&result),
            _ if reply.status != 200 => CallOutcome::from_status(reply.status, &text),
            _ => CallOutcome::Invalid(format!("no result: {text}")),
        }
    }
}

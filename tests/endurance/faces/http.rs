//! MCP over HTTP: without a session, as 2026-07-28 has it, with a session as versions before, and in the REST style.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};

use super::Face;
use crate::http::{Line, Reply, Request};
use crate::outcome::Outcome;

const MODERN: &str = "2026-07-28";
const LEGACY: &str = "2025-06-18";

/// Posts JSON and gives what came, or that nothing did.
struct Post {
    line: Line,
    next: u64,
}

impl Post {
    fn new(address: SocketAddr) -> Post {
        Post { line: Line::new(address), next: 1 }
    }

    fn send(&mut self, path: &str, more: &[(&str, &str)], body: &Value, patience: Duration) -> Result<Reply, Outcome> {
        let mut headers = vec![("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream")];
        headers.extend(more);
        let body = body.to_string();
        let request = Request { method: "POST", path, headers: &headers, body: body.as_bytes() };
        self.line.exchange(&request, patience).map_err(|error| Outcome::of_error(&error))
    }

    /// Sends a message and gives its answer.
    fn ask(
        &mut self,
        more: &[(&str, &str)],
        method: &str,
        params: Value,
        patience: Duration,
    ) -> (Outcome, Option<Reply>) {
        let id = self.next;
        self.next += 1;
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        match self.send("/mcp", more, &message, patience) {
            Ok(reply) => (read(&reply, id), Some(reply)),
            Err(lost) => (lost, None),
        }
    }
}

/// The answer to a message: as JSON, or as the last event of a stream.
fn read(reply: &Reply, id: u64) -> Outcome {
    let text = reply.text();
    if reply.header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream")) {
        let events = text.lines().filter_map(|line| line.strip_prefix("data:")).filter(|data| !data.trim().is_empty());
        let messages: Result<Vec<Value>, _> = events.map(serde_json::from_str).collect();
        return match messages {
            Ok(messages) => match messages.iter().find(|message| message["id"] == id) {
                Some(message) => Outcome::of_message(message, id),
                None => Outcome::Lost("the stream ended without the answer".to_owned()),
            },
            Err(_) => Outcome::Wrong(format!("an event that is no JSON: {text}")),
        };
    }
    match serde_json::from_str::<Value>(&text) {
        Ok(message) if message["jsonrpc"] == "2.0" => Outcome::of_message(&message, id),
        _ if reply.status != 200 => Outcome::Refused(format!("{} {text}", reply.status)),
        _ => Outcome::Wrong(format!("no message: {text}")),
    }
}

/// One message, no version said and no session: what a script sends.
pub(crate) struct Plain(Post);

impl Plain {
    pub(crate) fn new(address: SocketAddr) -> Plain {
        Plain(Post::new(address))
    }
}

impl Face for Plain {
    fn name(&self) -> &'static str {
        "plain"
    }

    fn call(&mut self, tool: &str, arguments: &Value, patience: Duration) -> Outcome {
        self.0.ask(&[], "tools/call", json!({ "name": tool, "arguments": arguments }), patience).0
    }
}

/// The version of today: no session, everything in the request.
pub(crate) struct Modern(Post);

impl Modern {
    pub(crate) fn new(address: SocketAddr) -> Modern {
        Modern(Post::new(address))
    }
}

impl Face for Modern {
    fn name(&self) -> &'static str {
        "modern"
    }

    fn call(&mut self, tool: &str, arguments: &Value, patience: Duration) -> Outcome {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientInfo": { "name": "chaos", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let headers = [("MCP-Protocol-Version", MODERN), ("Mcp-Method", "tools/call"), ("Mcp-Name", tool)];
        let params = json!({ "name": tool, "arguments": arguments, "_meta": meta });
        self.0.ask(&headers, "tools/call", params, patience).0
    }
}

/// A session, as versions before had it; a server that was started anew does not know it, and another one is begun.
pub(crate) struct Session {
    post: Post,
    id: Option<String>,
}

impl Session {
    pub(crate) fn new(address: SocketAddr) -> Session {
        Session { post: Post::new(address), id: None }
    }

    fn begin(&mut self, patience: Duration) -> Result<String, Outcome> {
        let params = json!({
            "protocolVersion": LEGACY, "capabilities": {}, "clientInfo": { "name": "chaos", "version": "1" },
        });
        let (outcome, reply) = self.post.ask(&[], "initialize", params, patience);
        let Some(id) = reply.as_ref().and_then(|reply| reply.header("mcp-session-id")) else { return Err(outcome) };
        let headers = [("MCP-Protocol-Version", LEGACY), ("Mcp-Session-Id", id)];
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        self.post.send("/mcp", &headers, &ready, patience)?;
        Ok(id.to_owned())
    }
}

impl Face for Session {
    fn name(&self) -> &'static str {
        "session"
    }

    fn call(&mut self, tool: &str, arguments: &Value, patience: Duration) -> Outcome {
        let id = match self.id.clone().map_or_else(|| self.begin(patience), Ok) {
            Ok(id) => id,
            // The call itself was not sent.
            Err(outcome) => return Outcome::Refused(format!("no session: {outcome:?}")),
        };
        let headers = [("MCP-Protocol-Version", LEGACY), ("Mcp-Session-Id", id.as_str())];
        let params = json!({ "name": tool, "arguments": arguments });
        let (outcome, reply) = self.post.ask(&headers, "tools/call", params, patience);
        self.id = reply.is_some_and(|reply| reply.status != 404).then_some(id);
        outcome
    }
}

/// Parameters as the body, the result as the answer.
pub(crate) struct Rest(Post);

impl Rest {
    pub(crate) fn new(address: SocketAddr) -> Rest {
        Rest(Post::new(address))
    }
}

impl Face for Rest {
    fn name(&self) -> &'static str {
        "rest"
    }

    fn call(&mut self, tool: &str, arguments: &Value, patience: Duration) -> Outcome {
        let body = json!({ "name": tool, "arguments": arguments });
        let reply = match self.0.send("/mcp/tools/call", &[], &body, patience) {
            Ok(reply) => reply,
            Err(lost) => return lost,
        };
        let text = reply.text();
        match serde_json::from_str::<Value>(&text) {
            Ok(result) if reply.status == 200 => Outcome::of_result(&result),
            _ if reply.status != 200 => Outcome::Refused(format!("{} {text}", reply.status)),
            _ => Outcome::Wrong(format!("no result: {text}")),
        }
    }
}

//! MCP over HTTP: stateless (2026-07-28), with a session (earlier versions), and REST style.

use std::time::Duration;

use serde_json::{Value, json};

use super::Face;
use crate::http::{Line, Place, Reply, Request};
use crate::outcome::{Outcome, is_unasked};

const MODERN: &str = "2026-07-28";
const LEGACY: &str = "2025-06-18";

/// Posts JSON and returns the outcome.
struct Post {
    line: Line,
    next: u64,
}

impl Post {
    fn new(place: Place) -> Post {
        Post { line: Line::new(place), next: 1 }
    }

    fn send(&mut self, path: &str, more: &[(&str, &str)], body: &Value, patience: Duration) -> Result<Reply, Outcome> {
        let mut headers = vec![("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream")];
        headers.extend(more);
        let body = body.to_string();
        let request = Request { method: "POST", path, headers: &headers, body: body.as_bytes() };
        self.line.exchange(&request, patience).map_err(|error| Outcome::of_error(&error))
    }

    /// Sends a message and returns its reply.
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

/// The reply to a message, as JSON or as the last event of a stream.
fn read(reply: &Reply, id: u64) -> Outcome {
    let text = reply.text();
    if reply.header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream")) {
        return read_events(&text, id);
    }
    match serde_json::from_str::<Value>(&text) {
        // A request rejected before its body was parsed gets a reply without its id.
        Ok(message) if message["jsonrpc"] == "2.0" && (reply.status == 200 || !message["id"].is_null()) => {
            Outcome::of_message(&message, id)
        }
        _ if reply.status != 200 => Outcome::of_status(reply.status, &text),
        _ => Outcome::Wrong(format!("no message: {text}")),
    }
}

/// Only notifications may precede the reply, and no event may follow it.
fn read_events(text: &str, id: u64) -> Outcome {
    let mut answer = None;
    let events = text.lines().filter_map(|line| line.strip_prefix("data:")).filter(|data| !data.trim().is_empty());
    for data in events {
        match serde_json::from_str::<Value>(data) {
            Ok(message) if answer.is_none() && message["id"] == id => answer = Some(message),
            Ok(message) if answer.is_none() && is_unasked(&message) => {}
            _ => return Outcome::Wrong(format!("an event that is no answer to {id}: {data}")),
        }
    }
    match answer {
        Some(message) => Outcome::of_message(&message, id),
        None => Outcome::Lost("the stream ended without the answer".to_owned()),
    }
}

/// One message without version or session, as a script sends it, to a TCP port or a Unix socket.
pub(crate) struct Plain(Post);

impl Plain {
    pub(crate) fn new(place: Place) -> Plain {
        Plain(Post::new(place))
    }
}

impl Face for Plain {
    fn call(&mut self, tool: &str, arguments: &Value, patience: Duration) -> Outcome {
        self.0.ask(&[], "tools/call", json!({ "name": tool, "arguments": arguments }), patience).0
    }
}

/// The 2026-07-28 version: no session, the request carries everything.
pub(crate) struct Modern(Post);

impl Modern {
    pub(crate) fn new(place: Place) -> Modern {
        Modern(Post::new(place))
    }
}

impl Face for Modern {
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

/// A session as in earlier versions. A restarted server does not know it, so the client opens a new one.
pub(crate) struct Session {
    post: Post,
    id: Option<String>,
}

impl Session {
    pub(crate) fn new(place: Place) -> Session {
        Session { post: Post::new(place), id: None }
    }

    fn begin(&mut self, patience: Duration) -> Result<String, Outcome> {
        let params = json!({
            "protocolVersion": LEGACY, "capabilities": {}, "clientInfo": { "name": "chaos", "version": "1" },
        });
        let message = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
        let reply = self.post.send("/mcp", &[], &message, patience)?;
        if reply.status != 200 {
            return Err(Outcome::of_status(reply.status, &reply.text()));
        }
        let said: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
        let is_greeting = said["id"] == 0 && said["result"]["protocolVersion"] == LEGACY;
        let id = match reply.header("mcp-session-id") {
            Some(id) if is_greeting => id,
            _ if said["id"] == 0 && said["error"].is_object() => return Err(Outcome::of_message(&said, 0)),
            _ => return Err(Outcome::Wrong(format!("no beginning of a session: {}", reply.text()))),
        };
        let headers = [("MCP-Protocol-Version", LEGACY), ("Mcp-Session-Id", id)];
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        self.post.send("/mcp", &headers, &ready, patience)?;
        Ok(id.to_owned())
    }
}

impl Face for Session {
    fn call(&mut self, tool: &str, arguments: &Value, patience: Duration) -> Outcome {
        let id = match self.id.take().map_or_else(|| self.begin(patience), Ok) {
            Ok(id) => id,
            Err(outcome @ (Outcome::Wrong(_) | Outcome::Failed(_))) => return outcome,
            // The call itself was not sent.
            Err(outcome) => return Outcome::Refused(format!("no session: {outcome:?}")),
        };
        let headers = [("MCP-Protocol-Version", LEGACY), ("Mcp-Session-Id", id.as_str())];
        let params = json!({ "name": tool, "arguments": arguments });
        let (outcome, reply) = self.post.ask(&headers, "tools/call", params, patience);
        match reply.map(|reply| reply.status) {
            Some(404) => Outcome::Refused("the session is not known any more".to_owned()),
            Some(_) => {
                self.id = Some(id);
                outcome
            }
            None => outcome,
        }
    }
}

/// Arguments as the body, the result as the reply.
pub(crate) struct Rest(Post);

impl Rest {
    pub(crate) fn new(place: Place) -> Rest {
        Rest(Post::new(place))
    }
}

impl Face for Rest {
    fn call(&mut self, tool: &str, arguments: &Value, patience: Duration) -> Outcome {
        let body = json!({ "name": tool, "arguments": arguments });
        let reply = match self.0.send("/mcp/tools/call", &[], &body, patience) {
            Ok(reply) => reply,
            Err(lost) => return lost,
        };
        let text = reply.text();
        match serde_json::from_str::<Value>(&text) {
            Ok(result) if reply.status == 200 => Outcome::of_result(&result),
            _ if reply.status != 200 => Outcome::of_status(reply.status, &text),
            _ => Outcome::Wrong(format!("no result: {text}")),
        }
    }
}

//! A folder with settings and tokens, and servers that use them.

use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use crate::http::{Client, Reply};
use crate::process::{Ended, Running, Setup, corbie};

/// Data directory of one operator.
pub(crate) struct Operator(TempDir);

impl Operator {
    pub(crate) fn new() -> Operator {
        Operator(tempfile::tempdir().unwrap())
    }

    pub(crate) fn folder(&self) -> &Path {
        self.0.path()
    }

    /// The program with this operator's files.
    pub(crate) fn corbie(&self, arguments: &str) -> Setup {
        corbie(arguments).variable("XDG_DATA_HOME", self.folder().display())
    }

    /// A server that requires tokens, even on loopback.
    pub(crate) fn server(&self) -> Setup {
        self.corbie("serve --port 0").variable("CORBIE_SERVER__AUTH", "bearer")
    }

    pub(crate) fn run(&self, arguments: &str) -> Ended {
        self.corbie(arguments).run("")
    }

    /// Creates a token and returns its secret.
    #[track_caller]
    pub(crate) fn token(&self, arguments: &str) -> String {
        let ended = self.run(&format!("tokens create {arguments}"));
        assert_eq!(ended.code, Some(0), "{}", ended.err);
        ended.out.trim().to_owned()
    }
}

/// A REST tool call with a token.
#[track_caller]
pub(crate) fn call(client: Client, token: &str, tool: &str, arguments: &Value) -> Reply {
    let body = serde_json::json!({ "name": tool, "arguments": arguments });
    post(client, token, "/mcp/tools/call", &body)
}

#[track_caller]
pub(crate) fn post(client: Client, token: &str, path: &str, body: &Value) -> Reply {
    let bearer = format!("Bearer {token}");
    let headers: &[(&str, &str)] = if token.is_empty() { &[] } else { &[("Authorization", &bearer)] };
    client.call("POST", path, headers, &body.to_string())
}

/// Starts a server and returns it with its client.
pub(crate) fn started(setup: Setup) -> (Running, Client) {
    let mut running = setup.start();
    let client = running.client();
    (running, client)
}

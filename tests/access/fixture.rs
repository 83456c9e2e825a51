//! A folder with settings and tokens, and servers that use them.

use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use crate::http::{HttpClient, HttpResponse};
use crate::process::{ProcessOutput, TestCommand, TestProcess, corbie};

/// Data directory of one operator.
pub(crate) struct OperatorHome(TempDir);

impl OperatorHome {
    pub(crate) fn new() -> OperatorHome {
        OperatorHome(tempfile::tempdir().unwrap())
    }

    pub(crate) fn folder(&self) -> &Path {
        self.0.path()
    }

    /// The program with this operator's files.
    pub(crate) fn corbie(&self, arguments: &str) -> TestCommand {
        corbie(arguments).variable("XDG_DATA_HOME", self.folder().display())
    }

    /// A server that requires tokens, even on loopback.
    pub(crate) fn server(&self) -> TestCommand {
        self.corbie("serve --port 0").variable("CORBIE_SERVER__AUTH", "bearer")
    }

    pub(crate) fn run(&self, arguments: &str) -> ProcessOutput {
        self.corbie(arguments).run("")
    }

    /// Creates a token and returns its secret.
    #[track_caller]
    pub(crate) fn token(&self, arguments: &str) -> String {
        let ended = self.run(&format!("tokens create {arguments}"));
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        ended.stdout.trim().to_owned()
    }
}

/// A REST tool call with a token.
#[track_caller]
pub(crate) fn call(client: HttpClient, token: &str, tool: &str, arguments: &Value) -> HttpResponse {
    let body = serde_json::json!({ "name": tool, "arguments": arguments });
    post(client, token, "/mcp/tools/call", &body)
}

#[track_caller]
pub(crate) fn post(client: HttpClient, token: &str, path: &str, body: &Value) -> HttpResponse {
    let bearer = format!("Bearer {token}");
    let headers: &[(&str, &str)] = if token.is_empty() { &[] } else { &[("Authorization", &bearer)] };
    client.call("POST", path, headers, &body.to_string())
}

/// Starts a server and returns it with its client.
pub(crate) fn start_with_client(setup: TestCommand) -> (TestProcess, HttpClient) {
    let mut running = setup.start();
    let client = running.client();
    (running, client)
}

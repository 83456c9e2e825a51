//! Backend of the knowledge commands: a running server or this process.
//!
//! A running server is preferred: it has the index in memory, and continues the work after the command exits.

use std::io::Write;
use std::path::Path;

use corbie_mcp::{CallError, LineClient, Server, TrustLevel};
use serde_json::{Value, json};
use tokio::time::{Duration, Instant, timeout};

use super::failure::Failure;
use crate::app::{self, App};
use crate::config::Config;
use crate::knowledge::local;

#[derive(Debug)]
pub(in crate::cli) enum Peer {
    Server(LineClient),
    /// No other process has the knowledge base open, or it does not respond.
    Own(Box<App>),
}

/// Timeout for finishing work that has started.
const FINISH: Duration = Duration::from_secs(60);
/// Timeout after which a server counts as hanging or stopped.
const GREETING: Duration = Duration::from_secs(3);

/// The server that has the knowledge base open, if it responds. A timeout is reported on stderr.
pub(super) async fn server(storage: &Path) -> Result<Option<LineClient>, Failure> {
    let Some(client) = local::connect(storage).await? else { return Ok(None) };
    Ok(match timeout(GREETING, client.call("ping", &json!({}))).await {
        // A server that is shutting down, or is at its connection limit, closes the connection.
        Ok(answer) => answer.is_ok().then_some(client),
        Err(_) => {
            let _ = writeln!(
                std::io::stderr(),
                "corbie: the server that has the knowledge base open does not answer; going on without it"
            );
            None
        }
    })
}

impl Peer {
    pub(in crate::cli) async fn find(config: &Config) -> Result<Peer, Box<dyn std::error::Error>> {
        if !config.knowledge.enabled {
            return Err(Failure::Off.into());
        }
        let storage = config.knowledge.storage().ok_or(Failure::NoStorage)?;
        match server(&storage).await? {
            Some(client) => Ok(Peer::Server(client)),
            None => Ok(Peer::Own(Box::new(app::build(config)?))),
        }
    }

    /// The same for short commands, which do not resume the tasks of other processes.
    pub(in crate::cli) async fn find_for_a_moment(config: &Config) -> Result<Peer, Box<dyn std::error::Error>> {
        let peer = Peer::find(config).await?;
        if let Peer::Own(app) = &peer
            && let Some(knowledge) = &app.knowledge
        {
            knowledge.leave_tasks();
        }
        Ok(peer)
    }

    /// Calls a tool and returns its result, or its error as a failure.
    pub(in crate::cli) async fn call(&self, tool: &str, arguments: Value) -> Result<Value, Failure> {
        let result = self.request("tools/call", &json!({ "name": tool, "arguments": arguments })).await?;
        let reply = result["content"][0]["text"].as_str().and_then(|text| serde_json::from_str(text).ok());
        let reply: Value = reply.filter(Value::is_object).ok_or_else(|| Failure::Unreadable(tool.to_owned()))?;
        match result["isError"].as_bool().unwrap_or_default() || reply["success"] == false {
            true => Err(Failure::Tool(reply)),
            false => Ok(reply),
        }
    }

    /// Cancels a task that this backend started. Returns false if it has already ended.
    pub(in crate::cli) async fn cancel(&self, task: &str) -> Result<bool, Failure> {
        match self.request("tools/cancel", &json!({ "taskId": task })).await {
            Ok(_) => Ok(true),
            Err(Failure::Refused(_)) => Ok(false),
            Err(failure) => Err(failure),
        }
    }

    async fn request(&self, method: &str, params: &Value) -> Result<Value, Failure> {
        match self {
            Peer::Server(client) => client.call(method, params).await.map_err(|error| match error {
                CallError::Gone => Failure::Gone,
                refused @ CallError::Refused(_) => Failure::Refused(refused.to_string()),
            }),
            Peer::Own(app) => {
                let server: &Server = &app.server;
                let answer = server.request(TrustLevel::Trusted, method, params).await;
                answer.map_err(|error| Failure::Refused(error.to_string()))
            }
        }
    }

    /// Detects local model servers. A running server has already done so.
    pub(in crate::cli) async fn look_for_models(&self) {
        if let Peer::Own(app) = self {
            app.router.pool().detect().await;
        }
    }

    /// Waits for running work, then saves the index.
    pub(in crate::cli) async fn finish(self) {
        if let Peer::Own(app) = self
            && let Some(knowledge) = &app.knowledge
        {
            knowledge.finish(Instant::now() + FINISH).await;
        }
    }
}

//! Backend of the knowledge commands: a running server or this process.
//!
//! A running server is preferred: it has the index in memory, and continues the work after the command exits.

use std::io::Write;
use std::path::Path;

use corbie_mcp::{CallError, LineClient, Server, TrustLevel};
use serde_json::{Value, json};
use tokio::time::{Duration, Instant, timeout};

use super::error::KnowledgeError;
use crate::app::{self, App};
use crate::config::Config;
use crate::knowledge::control_socket;

#[derive(Debug)]
pub(in crate::cli) enum Backend {
    Server(LineClient),
    /// No other process has the knowledge base open, or it does not respond.
    InProcess(Box<App>),
}

/// Timeout for finishing work that has started.
const FINISH_TIMEOUT: Duration = Duration::from_secs(60);
/// Timeout after which a server counts as hanging or stopped.
const PING_TIMEOUT: Duration = Duration::from_secs(3);

/// The server that has the knowledge base open, if it responds. A timeout is reported on stderr.
pub(super) async fn connect_to_server(storage: &Path) -> Result<Option<LineClient>, KnowledgeError> {
    let Some(client) = control_socket::connect(storage).await? else { return Ok(None) };
    Ok(match timeout(PING_TIMEOUT, client.call("ping", &json!({}))).await {
        // A server that is shutting down, or is at its connection limit, closes the connection.
        Ok(answer) => answer.is_ok().then_some(client),
        Err(_) => {
            let _ = writeln!(
                std::io::stderr(),
                "corbie: the server that has the knowledge base open does not respond; continuing without it"
            );
            None
        }
    })
}

impl Backend {
    pub(in crate::cli) async fn find(config: &Config) -> Result<Backend, Box<dyn std::error::Error>> {
        if !config.knowledge.enabled {
            return Err(KnowledgeError::Disabled.into());
        }
        let storage = config.knowledge.storage_dir().ok_or(KnowledgeError::NoStorage)?;
        match connect_to_server(&storage).await? {
            Some(client) => Ok(Backend::Server(client)),
            None => Ok(Backend::InProcess(Box::new(app::build(config)?))),
        }
    }

    /// The same for short commands, which do not resume the tasks of other processes.
    pub(in crate::cli) async fn find_without_tasks(config: &Config) -> Result<Backend, Box<dyn std::error::Error>> {
        let peer = Backend::find(config).await?;
        if let Backend::InProcess(app) = &peer
            && let Some(knowledge) = &app.knowledge
        {
            knowledge.skip_adoption();
        }
        Ok(peer)
    }

    /// Calls a tool and returns its result, or its error as a failure.
    pub(in crate::cli) async fn call(&self, tool: &str, arguments: Value) -> Result<Value, KnowledgeError> {
        let result = self.request("tools/call", &json!({ "name": tool, "arguments": arguments })).await?;
        let reply = result["content"][0]["text"].as_str().and_then(|text| serde_json::from_str(text).ok());
        let reply: Value =
            reply.filter(Value::is_object).ok_or_else(|| KnowledgeError::InvalidReply(tool.to_owned()))?;
        match result["isError"].as_bool().unwrap_or_default() || reply["success"] == false {
            true => Err(KnowledgeError::Tool(reply)),
            false => Ok(reply),
        }
    }

    /// Cancels a task that this backend started. Returns false if it has already ended.
    pub(in crate::cli) async fn cancel(&self, task: &str) -> Result<bool, KnowledgeError> {
        match self.request("tools/cancel", &json!({ "taskId": task })).await {
            Ok(_) => Ok(true),
            Err(KnowledgeError::Rejected(_)) => Ok(false),
            Err(failure) => Err(failure),
        }
    }

    async fn request(&self, method: &str, params: &Value) -> Result<Value, KnowledgeError> {
        match self {
            Backend::Server(client) => client.call(method, params).await.map_err(|error| match error {
                CallError::ConnectionClosed => KnowledgeError::ServerGone,
                refused @ CallError::ErrorResponse(_) => KnowledgeError::Rejected(refused.to_string()),
            }),
            Backend::InProcess(app) => {
                let server: &Server = &app.server;
                let answer = server.request(TrustLevel::Trusted, method, params).await;
                answer.map_err(|error| KnowledgeError::Rejected(error.to_string()))
            }
        }
    }

    /// Detects local model servers. A running server has already done so.
    pub(in crate::cli) async fn detect_models(&self) {
        if let Backend::InProcess(app) = self {
            app.router.providers().detect_local_servers().await;
        }
    }

    /// Waits for running work, then saves the index.
    pub(in crate::cli) async fn finish(self) {
        if let Backend::InProcess(app) = self
            && let Some(knowledge) = &app.knowledge
        {
            knowledge.shut_down(Instant::now() + FINISH_TIMEOUT).await;
        }
    }
}

//! The servers and their commands.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, anyhow};
use clap::ValueEnum;

use crate::workload::{Era, Transport};

/// A contestant. The bare floor does the same work with no protocol around it: no server can be faster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum McpServer {
    Corbie,
    Rmcp,
    #[value(name = "typescript-v1")]
    TypeScriptV1,
    #[value(name = "typescript-v2")]
    TypeScriptV2,
    Python,
    Floor,
}

const PROGRAMS: &str = ".tools/bench/target/release";
const NODE: &str = ".tools/bench/npm/node_modules/.bin/node";
const PYTHON: &str = ".tools/bench/venv/bin/python";

impl McpServer {
    /// The servers with these names.
    pub(crate) fn select(names: &[String]) -> Result<Vec<McpServer>> {
        let chosen =
            names.iter().map(|name| McpServer::from_str(name, true).map_err(|_| anyhow!("no server `{name}`")));
        chosen.collect()
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            McpServer::Corbie => "corbie",
            McpServer::Rmcp => "rmcp 3.8",
            McpServer::TypeScriptV1 => "TypeScript v1",
            McpServer::TypeScriptV2 => "TypeScript v2",
            McpServer::Python => "Python",
            McpServer::Floor => "bare floor",
        }
    }

    pub(crate) fn serves(self, era: Era) -> bool {
        self != McpServer::TypeScriptV1 || era == Era::Legacy
    }

    /// Slow peers are measured only on the headline workloads; the remaining ones would take long and add little.
    pub(crate) fn is_slow(self) -> bool {
        matches!(self, McpServer::TypeScriptV1 | McpServer::TypeScriptV2 | McpServer::Python)
    }

    /// Uses stdio, or HTTP if a port is given.
    pub(crate) fn command(self, port: Option<u16>) -> Command {
        let mut command = match self {
            McpServer::Corbie => Command::new(Path::new(PROGRAMS).join("corbie_server")),
            McpServer::Rmcp => Command::new(Path::new(PROGRAMS).join("rmcp_server")),
            McpServer::Floor => Command::new(Path::new(PROGRAMS).join("floor_server")),
            McpServer::TypeScriptV1 => with_script(NODE, "bench/peers/typescript_v1.mjs"),
            McpServer::TypeScriptV2 => with_script(NODE, "bench/peers/typescript_v2.mjs"),
            McpServer::Python => with_script(PYTHON, "bench/peers/python_server.py"),
        };
        if let Some(port) = port {
            command.args(["--port", &port.to_string()]);
        }
        command
    }

    /// Path of its log.
    pub(crate) fn log(self, transport: Transport) -> String {
        format!(".tools/bench/logs/{}-{}.log", self.name().to_lowercase().replace(' ', "-"), transport.name())
    }
}

fn with_script(interpreter: &str, script: &str) -> Command {
    let mut command = Command::new(interpreter);
    command.arg(script);
    command
}

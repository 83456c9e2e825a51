//! The servers and their commands.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, anyhow};
use clap::ValueEnum;

use crate::workload::{Era, Transport};

/// A contestant. The bare floor does the same work with no protocol around it: no server can be faster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Server {
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

impl Server {
    /// The servers with these names.
    pub(crate) fn chosen(names: &[String]) -> Result<Vec<Server>> {
        let chosen = names.iter().map(|name| Server::from_str(name, true).map_err(|_| anyhow!("no server `{name}`")));
        chosen.collect()
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Server::Corbie => "corbie",
            Server::Rmcp => "rmcp 3.8",
            Server::TypeScriptV1 => "TypeScript v1",
            Server::TypeScriptV2 => "TypeScript v2",
            Server::Python => "Python",
            Server::Floor => "bare floor",
        }
    }

    pub(crate) fn serves(self, era: Era) -> bool {
        self != Server::TypeScriptV1 || era == Era::Legacy
    }

    /// Slow peers are measured only on the headline workloads; the remaining ones would take long and add little.
    pub(crate) fn is_slow(self) -> bool {
        matches!(self, Server::TypeScriptV1 | Server::TypeScriptV2 | Server::Python)
    }

    /// Uses stdio, or HTTP if a port is given.
    pub(crate) fn command(self, port: Option<u16>) -> Command {
        let mut command = match self {
            Server::Corbie => Command::new(Path::new(PROGRAMS).join("corbie_server")),
            Server::Rmcp => Command::new(Path::new(PROGRAMS).join("rmcp_server")),
            Server::Floor => Command::new(Path::new(PROGRAMS).join("floor_server")),
            Server::TypeScriptV1 => with_script(NODE, "bench/peers/typescript_v1.mjs"),
            Server::TypeScriptV2 => with_script(NODE, "bench/peers/typescript_v2.mjs"),
            Server::Python => with_script(PYTHON, "bench/peers/python_server.py"),
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

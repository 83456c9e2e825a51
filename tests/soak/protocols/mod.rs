//! Transports by which clients reach the program. All of them serve the same tools and must give the same results.

mod http;
mod stdio;
mod websocket;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;

use crate::call_outcome::CallOutcome;
use crate::http::ServerAddress;
use crate::program::ProgramConfig;
use crate::rng::SeededRng;
use stdio::StdioClient;

/// Stdio processes shared by the clients. Each loads its own model, so there are few.
const STDIO_PROCESSES: usize = 2;
/// One call in this many goes to a stdio process.
const STDIO_ONE_IN: usize = 14;

pub(crate) trait ProtocolClient: Send {
    /// Calls a tool and waits for the reply until the timeout. A very short timeout simulates a killed client.
    fn call(&mut self, tool: &str, arguments: &Value, patience: Duration) -> CallOutcome;
}

/// Transport kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Protocol {
    Plain,
    Modern,
    Session,
    Rest,
    WebSocket,
    /// Plain HTTP over a Unix socket.
    Socket,
    Stdio,
}

/// Transports of the server process.
const SERVER_PROTOCOLS: [Protocol; 6] =
    [Protocol::Plain, Protocol::Modern, Protocol::Session, Protocol::Rest, Protocol::WebSocket, Protocol::Socket];

impl Protocol {
    pub(crate) fn all() -> impl Iterator<Item = Protocol> {
        SERVER_PROTOCOLS.into_iter().chain([Protocol::Stdio])
    }

    pub(crate) fn random(chance: &mut SeededRng) -> Protocol {
        match chance.one_in(STDIO_ONE_IN) {
            true => Protocol::Stdio,
            false => SERVER_PROTOCOLS[chance.below(SERVER_PROTOCOLS.len())],
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Protocol::Plain => "plain",
            Protocol::Modern => "modern",
            Protocol::Session => "session",
            Protocol::Rest => "rest",
            Protocol::WebSocket => "websocket",
            Protocol::Socket => "socket",
            Protocol::Stdio => "stdio",
        }
    }
}

/// The stdio processes shared by the clients.
#[derive(Clone)]
pub(crate) struct StdioPool(Arc<Vec<Mutex<StdioClient>>>);

impl StdioPool {
    pub(crate) fn new(program: &ProgramConfig) -> StdioPool {
        StdioPool(Arc::new((0..STDIO_PROCESSES).map(|_| Mutex::new(StdioClient::new(program.clone()))).collect()))
    }

    /// Stops all of them.
    pub(crate) fn stop(&self) {
        self.0.iter().for_each(|process| process.lock().unwrap_or_else(PoisonError::into_inner).stop());
    }

    /// How many were killed by a client that timed out.
    pub(crate) fn killed_count(&self) -> u64 {
        self.0.iter().map(|process| process.lock().unwrap_or_else(PoisonError::into_inner).killed).sum()
    }
}

/// The transports of one client, created on first use.
pub(crate) struct ProtocolClients {
    client: usize,
    program: ProgramConfig,
    processes: StdioPool,
    connected: BTreeMap<Protocol, Box<dyn ProtocolClient>>,
}

impl ProtocolClients {
    pub(crate) fn new(client: usize, program: &ProgramConfig, processes: StdioPool) -> ProtocolClients {
        ProtocolClients { client, program: program.clone(), processes, connected: BTreeMap::new() }
    }

    pub(crate) fn call(&mut self, kind: Protocol, tool: &str, arguments: &Value, patience: Duration) -> CallOutcome {
        if kind == Protocol::Stdio {
            let process = &self.processes.0[self.client % STDIO_PROCESSES];
            return process.lock().unwrap_or_else(PoisonError::into_inner).call(tool, arguments, patience);
        }
        let port = ServerAddress::Tcp(self.program.address);
        let face = self.connected.entry(kind).or_insert_with(|| match kind {
            Protocol::Modern => Box::new(http::ModernHttp::new(port)),
            Protocol::Session => Box::new(http::SessionHttp::new(port)),
            Protocol::Rest => Box::new(http::RestHttp::new(port)),
            Protocol::WebSocket => Box::new(websocket::WebSocketClient::new(port)),
            Protocol::Socket => Box::new(http::PlainHttp::new(ServerAddress::Unix(self.program.socket()))),
            Protocol::Plain | Protocol::Stdio => Box::new(http::PlainHttp::new(port)),
        });
        face.call(tool, arguments, patience)
    }
}

/// Plain HTTP, used by the checks after a round.
pub(crate) fn plain_http(address: SocketAddr) -> Box<dyn ProtocolClient> {
    Box::new(http::PlainHttp::new(ServerAddress::Tcp(address)))
}

//! Transports by which clients reach the program. All of them serve the same tools and must give the same results.

mod http;
mod stdio;
mod websocket;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;

use crate::chance::Chance;
use crate::http::Place;
use crate::outcome::Outcome;
use crate::program::Program;
use stdio::Stdio;

/// Stdio processes shared by the clients. Each loads its own model, so there are few.
const PROCESSES: usize = 2;
/// One call in this many goes to a stdio process.
const CALLS_TO_ONE_OF_PROCESSES: usize = 14;

pub(crate) trait Face: Send {
    /// Calls a tool and waits for the reply until the timeout. A very short timeout simulates a killed client.
    fn call(&mut self, tool: &str, arguments: &Value, patience: Duration) -> Outcome;
}

/// Transport kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
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
const SERVED: [Kind; 6] = [Kind::Plain, Kind::Modern, Kind::Session, Kind::Rest, Kind::WebSocket, Kind::Socket];

impl Kind {
    pub(crate) fn all() -> impl Iterator<Item = Kind> {
        SERVED.into_iter().chain([Kind::Stdio])
    }

    pub(crate) fn chosen(chance: &mut Chance) -> Kind {
        match chance.once_in(CALLS_TO_ONE_OF_PROCESSES) {
            true => Kind::Stdio,
            false => SERVED[chance.below(SERVED.len())],
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Plain => "plain",
            Kind::Modern => "modern",
            Kind::Session => "session",
            Kind::Rest => "rest",
            Kind::WebSocket => "websocket",
            Kind::Socket => "socket",
            Kind::Stdio => "stdio",
        }
    }
}

/// The stdio processes shared by the clients.
#[derive(Clone)]
pub(crate) struct Processes(Arc<Vec<Mutex<Stdio>>>);

impl Processes {
    pub(crate) fn new(program: &Program) -> Processes {
        Processes(Arc::new((0..PROCESSES).map(|_| Mutex::new(Stdio::new(program.clone()))).collect()))
    }

    /// Stops all of them.
    pub(crate) fn leave(&self) {
        self.0.iter().for_each(|process| process.lock().unwrap_or_else(PoisonError::into_inner).leave());
    }

    /// How many were killed by a client that timed out.
    pub(crate) fn killed(&self) -> u64 {
        self.0.iter().map(|process| process.lock().unwrap_or_else(PoisonError::into_inner).killed).sum()
    }
}

/// The transports of one client, created on first use.
pub(crate) struct Faces {
    client: usize,
    program: Program,
    processes: Processes,
    made: BTreeMap<Kind, Box<dyn Face>>,
}

impl Faces {
    pub(crate) fn new(client: usize, program: &Program, processes: Processes) -> Faces {
        Faces { client, program: program.clone(), processes, made: BTreeMap::new() }
    }

    pub(crate) fn call(&mut self, kind: Kind, tool: &str, arguments: &Value, patience: Duration) -> Outcome {
        if kind == Kind::Stdio {
            let process = &self.processes.0[self.client % PROCESSES];
            return process.lock().unwrap_or_else(PoisonError::into_inner).call(tool, arguments, patience);
        }
        let port = Place::Port(self.program.address);
        let face = self.made.entry(kind).or_insert_with(|| match kind {
            Kind::Modern => Box::new(http::Modern::new(port)),
            Kind::Session => Box::new(http::Session::new(port)),
            Kind::Rest => Box::new(http::Rest::new(port)),
            Kind::WebSocket => Box::new(websocket::WebSocket::new(port)),
            Kind::Socket => Box::new(http::Plain::new(Place::Socket(self.program.socket()))),
            Kind::Plain | Kind::Stdio => Box::new(http::Plain::new(port)),
        });
        face.call(tool, arguments, patience)
    }
}

/// Plain HTTP, used by the checks after a round.
pub(crate) fn plain(address: SocketAddr) -> Box<dyn Face> {
    Box::new(http::Plain::new(Place::Port(address)))
}

//! The ways a client reaches the program. All of them lead to the same tools, and none may answer otherwise.

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

/// Processes beside the server that clients share. Each has a model of its own, so there are few.
const PROCESSES: usize = 2;
/// One call out of so many goes to them.
const CALLS_TO_ONE_OF_PROCESSES: usize = 14;

pub(crate) trait Face: Send {
    /// Calls a tool and waits for the answer, at most so long. Who waits for a moment only is a client that was killed.
    fn call(&mut self, tool: &str, arguments: &Value, patience: Duration) -> Outcome;
}

/// A way to the tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Plain,
    Modern,
    Session,
    Rest,
    WebSocket,
    /// Plain, over a socket in the file system.
    Socket,
    Stdio,
}

/// All that the server itself serves.
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

/// The processes that clients share.
#[derive(Clone)]
pub(crate) struct Processes(Arc<Vec<Mutex<Stdio>>>);

impl Processes {
    pub(crate) fn new(program: &Program) -> Processes {
        Processes(Arc::new((0..PROCESSES).map(|_| Mutex::new(Stdio::new(program.clone()))).collect()))
    }

    /// Ends all of them.
    pub(crate) fn leave(&self) {
        self.0.iter().for_each(|process| process.lock().unwrap_or_else(PoisonError::into_inner).leave());
    }

    /// How many were killed by a client that gave up on them.
    pub(crate) fn killed(&self) -> u64 {
        self.0.iter().map(|process| process.lock().unwrap_or_else(PoisonError::into_inner).killed).sum()
    }
}

/// One of each for a client, made when it is first used.
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

/// What the checks after a round use: the plainest of all.
pub(crate) fn plain(address: SocketAddr) -> Box<dyn Face> {
    Box::new(http::Plain::new(Place::Port(address)))
}

//! The ways a client reaches the program. All of them lead to the same tools, and none may answer otherwise.

mod http;
mod stdio;
mod websocket;

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;

use crate::outcome::Outcome;
use crate::program::Program;

pub(crate) trait Face: Send {
    fn name(&self) -> &'static str;

    /// Calls a tool and waits for the answer, at most so long. Who waits for a moment only is a client that was killed.
    fn call(&mut self, tool: &str, arguments: &Value, patience: Duration) -> Outcome;

    /// Lets go of whatever it keeps between two calls.
    fn leave(&mut self) {}
}

/// One of each, for the client with this number.
pub(crate) fn of_client(number: usize, address: SocketAddr, program: &Program) -> Box<dyn Face> {
    match number % 6 {
        0 => Box::new(http::Plain::new(address)),
        1 => Box::new(http::Modern::new(address)),
        2 => Box::new(http::Session::new(address)),
        3 => Box::new(http::Rest::new(address)),
        4 => Box::new(websocket::WebSocket::new(address)),
        _ => Box::new(stdio::Stdio::new(program.clone())),
    }
}

/// What the checks after a round use: the plainest of all.
pub(crate) fn plain(address: SocketAddr) -> Box<dyn Face> {
    Box::new(http::Plain::new(address))
}

//! Server for the official MCP conformance suite: every required fixture, under its name.
//!
//! ```text
//! cargo run -p corbie-mcp --example conformance -- --port 3000
//! npx @modelcontextprotocol/conformance server --url http://127.0.0.1:3000/mcp --requirements 2026-07-28
//! ```
//!
//! It is also a tour of the library. Start with [`tools`], then see how the same calls send requests to the client
//! ([`client_requests`]) and outlive their request ([`tasks`]).

mod client_requests;
mod prompts;
mod resources;
mod tasks;
mod tools;

use std::io::Write;
use std::net::Ipv4Addr;

use corbie_mcp::transport::http::{Http, Options};
use corbie_mcp::transport::stop_on_signal;
use corbie_mcp::{RegistrationError, Server};
use tokio::net::TcpListener;

/// A one-pixel image, in base64.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let port = read_port(std::env::args().skip(1))?;
    let server = fixtures()?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
    // Port 0 selects a free port, so print the actual address.
    writeln!(std::io::stderr(), "listening on http://{}/mcp", listener.local_addr()?)?;
    tokio::spawn(stop_on_signal(server.clone()));
    Http::new(server, Options::default()).serve(listener).await?;
    Ok(())
}

/// Lists keep registration order. The suite calls the first tool and reads the first resource.
fn fixtures() -> Result<Server, RegistrationError> {
    let parts = [tools::add, client_requests::add, tasks::add, resources::add, prompts::add];
    let empty = Server::builder("corbie-conformance", env!("CARGO_PKG_VERSION"));
    parts.into_iter().fold(empty, |server, add| add(server)).build()
}

fn read_port(mut words: impl Iterator<Item = String>) -> Result<u16, String> {
    match (words.next().as_deref(), words.next(), words.next()) {
        (Some("--port"), Some(port), None) => {
            port.parse().map_err(|_| format!("`{port}` is not a port; give a number up to {}", u16::MAX))
        }
        _ => Err("usage: conformance --port N".into()),
    }
}

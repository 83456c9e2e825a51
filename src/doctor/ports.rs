//! Checks whether the server can listen on its ports, or already does.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, TcpListener, ToSocketAddrs};
use std::sync::Arc;

use super::health::{self, Answer};
use super::{Check, Findings, Subject, process};
use crate::config::Config;
use crate::config::address::{HostPort, Listen};

/// Ports used without `server.listen`.
const DEFAULT_PORTS: [u16; 2] = [8090, 3000];

/// The process that occupies a port.
#[derive(Debug, PartialEq, Eq)]
enum Holder {
    Nobody,
    Corbie,
    /// With the id and the name of the process, if they can be determined.
    Other(Option<(u32, String)>),
    /// The port cannot be bound.
    Unusable(String),
}

pub(super) async fn check(subject: Arc<Subject>) -> Option<Check> {
    let looked = tokio::task::spawn_blocking(move || subject.config.as_ref().map(look)).await;
    looked.ok()?.unwrap_or_default().check("ports")
}

fn look(config: &Config) -> Findings {
    let mut findings = Findings::default();
    let configured = &config.server.listen;
    let encrypted = config.server.tls.is_some();
    let ports: Vec<HostPort> = match configured.is_empty() {
        true => DEFAULT_PORTS.iter().map(|port| HostPort::new("localhost", *port)).collect(),
        false => configured
            .iter()
            .filter_map(|address| if let Listen::Port(port) = address { Some(port.clone()) } else { None })
            .collect(),
    };
    let holders: Vec<(HostPort, Holder)> =
        ports.into_iter().map(|port| (port.clone(), holder(&port, encrypted))).collect();
    // One usable default port is sufficient.
    let one_is_enough =
        configured.is_empty() && holders.iter().any(|(_, holder)| matches!(holder, Holder::Nobody | Holder::Corbie));
    for (port, holder) in holders {
        let advice = || format!("stop it, or set `server.listen` to another port than {}", port.port());
        match holder {
            Holder::Nobody => findings.ok(format!("{port} is free")),
            Holder::Corbie => findings.ok(format!("corbie answers at {port}")),
            Holder::Unusable(why) => findings
                .problem(format!("{port} cannot be used: {why}"), "set `server.listen` to an address of this machine"),
            Holder::Other(process) => {
                let who =
                    process.map_or_else(|| "another program".into(), |(id, name)| format!("`{name}` (process {id})"));
                match one_is_enough {
                    true => {
                        findings.note(format!("{port} is taken by {who}; `corbie serve` does without it"), advice())
                    }
                    false => findings.problem(format!("{port} is taken by {who}"), advice()),
                }
            }
        }
    }
    for socket in configured.iter().filter(|address| matches!(address, Listen::Socket(_))) {
        findings.ok(format!("{socket} is a socket in the file system"));
    }
    findings
}

fn holder(port: &HostPort, encrypted: bool) -> Holder {
    // For `localhost` the server binds IPv4 and IPv6.
    let addresses: Vec<SocketAddr> = match port.host().eq_ignore_ascii_case("localhost") {
        true => vec![([127, 0, 0, 1], port.port()).into(), (std::net::Ipv6Addr::LOCALHOST, port.port()).into()],
        false => match (port.host(), port.port()).to_socket_addrs() {
            Ok(addresses) => addresses.collect(),
            Err(error) => return Holder::Unusable(error.to_string()),
        },
    };
    for (index, address) in addresses.iter().enumerate() {
        match TcpListener::bind(address) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::AddrInUse => {
                let process = process::listening_at(port.port());
                let is_ours = match encrypted {
                    // A server with HTTPS is identified only by its process name.
                    true => process.as_ref().is_some_and(|(_, name)| name == "corbie"),
                    false => answers_as_corbie(*address, process.as_ref()),
                };
                return if is_ours { Holder::Corbie } else { Holder::Other(process) };
            }
            // This machine may have no IPv6.
            Err(_) if index > 0 => {}
            Err(error) => return Holder::Unusable(error.to_string()),
        }
    }
    Holder::Nobody
}

fn answers_as_corbie(address: SocketAddr, process: Option<&(u32, String)>) -> bool {
    let here = IpAddr::from([127, 0, 0, 1]);
    let ip = if address.ip().is_unspecified() { here } else { address.ip() };
    let asked = health::ask((ip, address.port()).into(), &format!("localhost:{}", address.port()), "/health");
    health::is_corbie(asked.unwrap_or(Answer::Other), process)
}

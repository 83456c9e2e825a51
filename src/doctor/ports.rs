//! Checks whether the server can listen on its ports, or already does.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, TcpListener, ToSocketAddrs};
use std::sync::Arc;

use url::Url;

use super::client_url::{self, UrlTarget};
use super::health_probe::{self, ProbeResult};
use super::{Check, Findings, SetupContext, listening_process};
use crate::config::Config;
use crate::config::address::{HostPort, Listen};
use crate::running_servers::RunningServer;

/// Ports used without `server.listen`.
const DEFAULT_PORTS: [u16; 2] = [8090, 3000];

/// The process that occupies a port.
#[derive(Debug, PartialEq, Eq)]
enum PortOwner {
    Free,
    Corbie,
    /// With the id and the name of the process, if they can be determined.
    Other(Option<(u32, String)>),
    /// The port cannot be bound.
    Unavailable(String),
}

pub(super) async fn check(subject: Arc<SetupContext>) -> Option<Check> {
    let looked = tokio::task::spawn_blocking(move || Some(inspect(subject.config.as_ref()?, &subject.servers))).await;
    looked.ok()?.unwrap_or_default().check("ports")
}

fn inspect(config: &Config, servers: &[RunningServer]) -> Findings {
    let mut findings = Findings::default();
    // The file of a server only shows where it listened when it started.
    let is_running =
        |server: &&RunningServer| server.web_url().is_some_and(|url| client_url::probe(url) == UrlTarget::Corbie);
    let running: Vec<&RunningServer> = servers.iter().filter(is_running).collect();
    let configured = &config.server.listen;
    let encrypted = config.server.tls.is_some();
    let ports: Vec<HostPort> = match configured.is_empty() {
        true => DEFAULT_PORTS.iter().map(|port| HostPort::new("localhost", *port)).collect(),
        false => configured
            .iter()
            .filter_map(|address| if let Listen::Port(port) = address { Some(port.clone()) } else { None })
            .collect(),
    };
    let holders: Vec<(HostPort, PortOwner)> =
        ports.into_iter().map(|port| (port.clone(), port_owner(&port, encrypted))).collect();
    // One usable default port is sufficient, and a running server does not need it.
    let one_is_enough = configured.is_empty()
        && (!running.is_empty()
            || holders.iter().any(|(_, holder)| matches!(holder, PortOwner::Free | PortOwner::Corbie)));
    let checked: Vec<u16> = holders.iter().map(|(port, _)| port.port()).collect();
    for server in &running {
        let elsewhere = server.urls.iter().filter(|url| port_of(url).is_some_and(|port| !checked.contains(&port)));
        for url in elsewhere {
            findings.ok(format!("corbie (process {}) responds at {url}", server.pid));
        }
    }
    for (port, holder) in holders {
        let advice = || format!("stop it, or set `server.listen` to a port other than {}", port.port());
        match holder {
            PortOwner::Free => findings.ok(format!("{port} is free")),
            PortOwner::Corbie => findings.ok(format!("corbie responds at {port}")),
            PortOwner::Unavailable(why) => findings
                .problem(format!("{port} cannot be used: {why}"), "set `server.listen` to an address of this machine"),
            PortOwner::Other(process) => {
                let who =
                    process.map_or_else(|| "another program".into(), |(id, name)| format!("`{name}` (process {id})"));
                match one_is_enough {
                    true if !running.is_empty() => {}
                    true => findings.note(format!("{port} is in use by {who}; `corbie serve` skips it"), advice()),
                    false => findings.problem(format!("{port} is in use by {who}"), advice()),
                }
            }
        }
    }
    for socket in configured.iter().filter(|address| matches!(address, Listen::Socket(_))) {
        findings.ok(format!("{socket} is a Unix socket"));
    }
    findings
}

fn port_of(url: &str) -> Option<u16> {
    Url::parse(url).ok().filter(|url| url.scheme().starts_with("http"))?.port_or_known_default()
}

fn port_owner(port: &HostPort, encrypted: bool) -> PortOwner {
    // For `localhost` the server binds IPv4 and IPv6.
    let addresses: Vec<SocketAddr> = match port.host().eq_ignore_ascii_case("localhost") {
        true => vec![([127, 0, 0, 1], port.port()).into(), (std::net::Ipv6Addr::LOCALHOST, port.port()).into()],
        false => match (port.host(), port.port()).to_socket_addrs() {
            Ok(addresses) => addresses.collect(),
            Err(error) => return PortOwner::Unavailable(error.to_string()),
        },
    };
    for (index, address) in addresses.iter().enumerate() {
        match TcpListener::bind(address) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::AddrInUse => {
                let process = listening_process::listening_at(port.port());
                let is_ours = match encrypted {
                    // A server with HTTPS is identified only by its process name.
                    true => process.as_ref().is_some_and(|(_, name)| name == "corbie"),
                    false => is_corbie_at(*address, process.as_ref()),
                };
                return if is_ours { PortOwner::Corbie } else { PortOwner::Other(process) };
            }
            // This machine may have no IPv6.
            Err(_) if index > 0 => {}
            Err(error) => return PortOwner::Unavailable(error.to_string()),
        }
    }
    PortOwner::Free
}

fn is_corbie_at(address: SocketAddr, process: Option<&(u32, String)>) -> bool {
    let here = IpAddr::from([127, 0, 0, 1]);
    let ip = if address.ip().is_unspecified() { here } else { address.ip() };
    let asked = health_probe::probe((ip, address.port()).into(), &format!("localhost:{}", address.port()), "/health");
    health_probe::is_corbie(asked.unwrap_or(ProbeResult::Other), process)
}

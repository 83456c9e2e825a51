//! Whether the server can listen where it should, or already does.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::{Check, Findings, Subject};
use crate::config::Config;
use crate::config::address::{HostPort, Listen};

/// Where it listens if the settings do not say.
const DEFAULT_PORTS: [u16; 2] = [8090, 3000];
/// How long whoever has a port may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// More than any answer about health has.
const MOST_BYTES: u64 = 64 * 1024;

/// Who has a port.
#[derive(Debug, PartialEq, Eq)]
enum Holder {
    Nobody,
    Corbie,
    /// With the number and the name of its process, where they can be known.
    Other(Option<(u32, String)>),
    /// Nobody may have it.
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
    // Of the ports that nobody asked for, one is enough.
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
    // The server opens both halves of `localhost`.
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
                    // Whoever speaks HTTPS is known by its name alone.
                    true => process.as_ref().is_some_and(|(_, name)| name == "corbie"),
                    false => answers_as_corbie(*address, process.as_ref().map(|(_, name)| name.as_str())),
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

/// Asks for its health. To strangers corbie tells one word only, and then its process says who it is.
fn answers_as_corbie(address: SocketAddr, process: Option<&str>) -> bool {
    let ip = if address.ip().is_unspecified() { [127, 0, 0, 1].into() } else { address.ip() };
    let asked = || -> std::io::Result<Vec<u8>> {
        let mut stream = TcpStream::connect_timeout(&(ip, address.port()).into(), PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        write!(stream, "GET /health HTTP/1.1\r\nHost: localhost:{}\r\nConnection: close\r\n\r\n", address.port())?;
        let mut answer = Vec::new();
        // Whatever came before it was cut off may do.
        let _ = stream.take(MOST_BYTES).read_to_end(&mut answer);
        Ok(answer)
    };
    let answer = asked().unwrap_or_default();
    let answer = String::from_utf8_lossy(&answer);
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    let body = body.find('{').zip(body.rfind('}')).and_then(|(start, end)| body.get(start..=end)).unwrap_or_default();
    let health: Value = serde_json::from_str(body).unwrap_or_default();
    let is_health = health["status"].as_str().is_some_and(|status| ["ok", "degraded"].contains(&status));
    is_health && (health["protocol_versions"].is_array() || process.is_none_or(|name| name == "corbie"))
}

/// Which process listens at a port, as far as this user may know.
#[cfg(target_os = "linux")]
mod process {
    use std::fs;

    /// The state of a socket that listens, in the tables of the kernel.
    const LISTENING: &str = "0A";

    pub(super) fn listening_at(port: u16) -> Option<(u32, String)> {
        let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(|path| fs::read_to_string(path).unwrap_or_default());
        let sockets: Vec<String> =
            tables.iter().flat_map(|table| table.lines()).filter_map(|line| socket(line, port)).collect();
        let processes = fs::read_dir("/proc").ok()?.flatten();
        let mut ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let id = ids.find(|id| has_one_of(*id, &sockets))?;
        let name = fs::read_to_string(format!("/proc/{id}/comm")).ok()?;
        Some((id, crate::harmless::one_line(name.trim_end())))
    }

    /// What the socket of a line is called among the files of its process.
    pub(super) fn socket(line: &str, port: u16) -> Option<String> {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let listens = fields.get(3) == Some(&LISTENING);
        let (_, its_port) = fields.get(1)?.rsplit_once(':')?;
        let is_it = u16::from_str_radix(its_port, 16).ok()? == port;
        (listens && is_it).then(|| fields.get(9).map(|inode| format!("socket:[{inode}]")))?
    }

    fn has_one_of(id: u32, sockets: &[String]) -> bool {
        let Ok(files) = fs::read_dir(format!("/proc/{id}/fd")) else { return false };
        let mut targets = files.flatten().filter_map(|file| fs::read_link(file.path()).ok());
        targets.any(|target| sockets.iter().any(|socket| target.as_os_str() == socket.as_str()))
    }
}

#[cfg(not(target_os = "linux"))]
mod process {
    pub(super) fn listening_at(_: u16) -> Option<(u32, String)> {
        None
    }
}

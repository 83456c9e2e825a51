//! Selects and opens the listening addresses.

use std::fmt::{self, Display};
use std::io;
use std::net::SocketAddr;
use std::path::Path;

use corbie_mcp::transport::Auth;
use tokio::net::TcpListener;

use crate::access::Access;
use crate::config::address::{HostPort, Listen, is_loopback};
use crate::config::server::AuthenticationError;
use crate::config::{ConfigError, LoadedConfig};

/// An open listener and its authentication.
pub(super) struct OpenListener {
    pub(super) socket: ListenerSocket,
    pub(super) auth: Auth,
}

/// The open listener.
pub(super) enum ListenerSocket {
    Port(TcpListener, SocketAddr),
    #[cfg(unix)]
    Socket(corbie_mcp::transport::SocketFile),
}

/// An address to listen on, and whether a failure is fatal.
struct ListenRequest {
    address: Listen,
    /// Requested explicitly, so a failure is fatal.
    explicit: bool,
}

/// Both serve the same. Clients of different kinds have one or the other as their default.
const DEFAULT_PORTS: [u16; 2] = [CLASSIFIER_PORT, MCP_PORT];
const CLASSIFIER_PORT: u16 = 8090;
const MCP_PORT: u16 = 3000;

/// Opens every address, after all of them passed the authentication check. A default port in use is skipped if another
/// address could be opened.
pub(super) async fn open(
    loaded: &LoadedConfig,
    ports: &[u16],
    access: &Access,
) -> Result<Vec<OpenListener>, ConfigError> {
    let (wanted, anybody) = (listen_requests(loaded, ports), !access.callers.is_empty());
    if let Some(unfit) = check_authentication(loaded, ports, anybody).into_iter().next() {
        return Err(unfit);
    }
    let (key, unfit) = (key_of(ports), |address: &dyn Display, error| unfit(loaded, ports, address, error));
    let mut open = Vec::new();
    let mut last_failure = None;
    for ListenRequest { address, explicit } in wanted {
        let opened = match &address {
            Listen::Port(address) => bind(address).await,
            Listen::Socket(path) => {
                let opened = open_socket(path, loaded.config.server.socket_mode.bits());
                let opened =
                    opened.map_err(|why| loaded.error_at(key, format!("cannot listen on {address}: {why}")))?;
                open.push(opened);
                continue;
            }
        };
        match opened {
            Ok(opened) => open.extend(opened),
            Err(error) => {
                let advice = match error.kind() {
                    io::ErrorKind::PermissionDenied => "ports below 1024 require privileges; choose another port",
                    _ => "stop the program that uses it, or choose another port",
                };
                let failure = loaded.error_at(key, format!("cannot listen on {address}: {error}; {advice}"));
                if explicit {
                    return Err(failure);
                }
                let clients = match &address {
                    Listen::Port(address) if address.port() == CLASSIFIER_PORT => {
                        "the console and semantic routers use it by default"
                    }
                    _ => "MCP clients that connect by URL or WebSocket use it by default",
                };
                let advice = "give those clients the other port, or free this one and restart";
                tracing::warn!(%address, %error, "default port is in use and not served; {clients}; {advice}");
                last_failure = Some(failure);
            }
        }
    }
    if open.is_empty()
        && let Some(failure) = last_failure
    {
        return Err(failure);
    }
    // A host name may have resolved to a different kind of address than expected, so check each again.
    let ask = |at: ListenerSocket| {
        let authentication = loaded.config.server.authentication(at.is_local(), anybody);
        let authentication = authentication.map_err(|error| unfit(&at, error))?;
        Ok(OpenListener { socket: at, auth: access.auth(authentication) })
    };
    open.into_iter().map(ask).collect()
}

/// Addresses that must not be opened without other authentication. `anybody` is whether any valid token exists.
pub(super) fn check_authentication(loaded: &LoadedConfig, ports: &[u16], anybody: bool) -> Vec<ConfigError> {
    let check = |ListenRequest { address, .. }: &ListenRequest| {
        let of_this_machine = match address {
            Listen::Port(address) => address.is_loopback(),
            Listen::Socket(_) => true,
        };
        let error = loaded.config.server.authentication(of_this_machine, anybody).err()?;
        Some(unfit(loaded, ports, address, error))
    };
    listen_requests(loaded, ports).iter().filter_map(check).collect()
}

fn unfit(loaded: &LoadedConfig, ports: &[u16], address: &dyn Display, error: AuthenticationError) -> ConfigError {
    match loaded.config.server.auth {
        Some(_) => loaded.error_at("server.auth", format!("{error} (for {address})")),
        None => loaded.error_at(key_of(ports), format!("asks for {address}, and `server.auth` {error}")),
    }
}

/// The setting of the addresses.
fn key_of(ports: &[u16]) -> &'static str {
    if ports.is_empty() { "server.listen" } else { "--port" }
}

impl ListenerSocket {
    /// Whether only callers on this machine can connect.
    pub(super) fn is_local(&self) -> bool {
        match self {
            ListenerSocket::Port(_, address) => is_loopback(address.ip()),
            #[cfg(unix)]
            ListenerSocket::Socket(_) => true,
        }
    }

    /// Whether other users can connect; they must not access the files of the server's user.
    pub(super) fn is_reachable_by_others(&self) -> bool {
        match self {
            ListenerSocket::Port(_, address) => !is_loopback(address.ip()),
            #[cfg(unix)]
            ListenerSocket::Socket(socket) => socket.is_open_to_others(),
        }
    }

    /// The MCP URL, for people.
    pub(super) fn url(&self, encrypted: bool) -> String {
        match self {
            ListenerSocket::Port(..) if encrypted => format!("https://{self}/mcp"),
            ListenerSocket::Port(..) => format!("http://{self}/mcp"),
            #[cfg(unix)]
            ListenerSocket::Socket(_) => self.to_string(),
        }
    }

    /// The MCP URL as reached from this machine: a wildcard address includes loopback.
    pub(super) fn local_url(&self, encrypted: bool) -> String {
        let scheme = if encrypted { "https" } else { "http" };
        match self {
            ListenerSocket::Port(_, address) if address.ip().is_unspecified() => {
                let host = if address.is_ipv4() { "127.0.0.1" } else { "[::1]" };
                format!("{scheme}://{host}:{}/mcp", address.port())
            }
            _ => self.url(encrypted),
        }
    }

    /// The console URL; browsers cannot open Unix sockets.
    pub(super) fn console_url(&self, encrypted: bool) -> Option<String> {
        match self {
            ListenerSocket::Port(..) => self.url(encrypted).strip_suffix("mcp").map(str::to_owned),
            #[cfg(unix)]
            ListenerSocket::Socket(_) => None,
        }
    }
}

impl Display for ListenerSocket {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ListenerSocket::Port(_, address) => address.fmt(out),
            #[cfg(unix)]
            ListenerSocket::Socket(socket) => write!(out, "unix:{}", socket.path().display()),
        }
    }
}

fn listen_requests(loaded: &LoadedConfig, ports: &[u16]) -> Vec<ListenRequest> {
    let local =
        |port: &u16, explicit| ListenRequest { address: Listen::Port(HostPort::new("localhost", *port)), explicit };
    let configured = &loaded.config.server.listen;
    if !ports.is_empty() {
        return ports.iter().map(|port| local(port, true)).collect();
    }
    if configured.is_empty() {
        return DEFAULT_PORTS.iter().map(|port| local(port, false)).collect();
    }
    configured.iter().map(|address| ListenRequest { address: address.clone(), explicit: true }).collect()
}

/// `localhost` means two addresses (T-43); the second is skipped on machines without IPv6.
async fn bind(address: &HostPort) -> io::Result<Vec<ListenerSocket>> {
    let mut bound = Vec::new();
    if address.host().eq_ignore_ascii_case("localhost") {
        bound.push(TcpListener::bind(("127.0.0.1", address.port())).await?);
        // Port 0 means "any": the second listener uses the port number of the first.
        let port = bound[0].local_addr()?.port();
        match TcpListener::bind(("::1", port)).await {
            Ok(listener) => bound.push(listener),
            // Another process listens on the IPv6 port, and clients that connect to `localhost` might reach it.
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => return Err(error),
            // This machine has no IPv6.
            Err(_) => {}
        }
    } else {
        bound.push(TcpListener::bind((address.host(), address.port())).await?);
    }
    bound
        .into_iter()
        .map(|listener| listener.local_addr().map(|address| ListenerSocket::Port(listener, address)))
        .collect()
}

#[cfg(unix)]
fn open_socket(path: &Path, mode: u32) -> Result<ListenerSocket, corbie_mcp::transport::SocketError> {
    corbie_mcp::transport::SocketFile::bind(path, mode).map(ListenerSocket::Socket)
}

#[cfg(not(unix))]
fn open_socket(_: &Path, _: u32) -> Result<ListenerSocket, &'static str> {
    Err("Unix sockets are not supported on this platform; use `host:port`")
}

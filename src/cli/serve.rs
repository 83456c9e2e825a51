//! `corbie`, `corbie stdio` and `corbie serve`: the server itself.

use std::io;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use corbie_mcp::Server;
use corbie_mcp::transport::http::Http;
use corbie_mcp::transport::{stdio, stop_on_signal};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::End;
use crate::app;
use crate::config::Loaded;
use crate::config::address::HostPort;
use crate::config::trust::Via;

/// Which ways in are opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum With {
    Stdio,
    Http,
    Both,
}

/// One address to listen on, and how bad it is if that fails.
struct Wanted {
    address: HostPort,
    /// Asked for by name or number, so a failure is fatal.
    explicit: bool,
}

const DEFAULT_PORTS: [u16; 2] = [8090, 3000];

/// Serves until a signal, or the end of stdin where stdin is served, and drains before it returns.
pub(super) fn serve(loaded: &Loaded, ports: &[u16], with: With) -> End {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let ended = runtime.block_on(run(loaded, ports, with));
    // A read of stdin may still be waiting in its thread; it must not keep the process.
    runtime.shutdown_timeout(Duration::from_millis(100));
    ended
}

async fn run(loaded: &Loaded, ports: &[u16], with: With) -> End {
    let config = &loaded.config;
    let server = app::server(config)?;
    let mut serving: JoinSet<io::Result<()>> = JoinSet::new();
    if with != With::Stdio {
        for (listener, address) in listeners(loaded, ports).await? {
            let loopback = address.ip().is_loopback();
            let authentication = config
                .server
                .authentication(loopback)
                .map_err(|error| loaded.mistake("server.auth", format!("{error} (for {address})")))?;
            let http = Http::new(server.clone(), app::http_options(config, authentication, loopback));
            let trust = app::trust(config, if loopback { Via::Loopback } else { Via::Remote });
            tracing::info!(url = %format_args!("http://{address}/mcp"), %trust, "listening");
            serving.spawn(async move { http.serve(listener).await });
        }
    }
    if with != With::Http {
        let (server, trust) = (server.clone(), app::trust(config, Via::Stdio));
        tracing::info!(%trust, tools = server.registry().len(), "serving stdin and stdout");
        serving.spawn(async move {
            let ended = stdio::serve(&server, trust).await;
            // The client that started us is gone; other listeners end with it only if it was the only way in.
            if with == With::Stdio {
                server.drain();
            }
            ended
        });
    }
    tokio::spawn(stop_on_signal(server.clone()));
    let mut end = Ok(ExitCode::SUCCESS);
    while let Some(ended) = serving.join_next().await {
        if let Err(error) = ended? {
            end = Err(error.into());
            server.drain();
        }
    }
    finish(&server).await;
    end
}

/// Waits for work no connection waits for, such as tasks, within what is left of the grace.
async fn finish(server: &Server) {
    let grace = server.limits().shutdown_grace;
    tokio::select! {
        _ = tokio::time::timeout(grace, server.finished()) => {}
        () = server.stopped() => {}
    }
}

/// Opens every address. A default port that is taken is passed over as long as another could be opened.
async fn listeners(
    loaded: &Loaded,
    ports: &[u16],
) -> Result<Vec<(TcpListener, SocketAddr)>, Box<dyn std::error::Error>> {
    let mut open = Vec::new();
    let mut last_failure = None;
    for Wanted { address, explicit } in wanted(loaded, ports) {
        match bind(&address).await {
            Ok(bound) => open.extend(bound),
            Err(error) => {
                let key = if ports.is_empty() { "server.listen" } else { "--port" };
                let failure = loaded.mistake(
                    key,
                    format!("cannot listen on {address}: {error}; stop what uses it or choose another port"),
                );
                if explicit {
                    return Err(failure.into());
                }
                tracing::warn!(%address, %error, "default port is taken");
                last_failure = Some(failure);
            }
        }
    }
    match last_failure {
        Some(failure) if open.is_empty() => Err(failure.into()),
        _ => Ok(open),
    }
}

fn wanted(loaded: &Loaded, ports: &[u16]) -> Vec<Wanted> {
    let local = |port: &u16, explicit| Wanted { address: HostPort::new("localhost", *port), explicit };
    let configured = &loaded.config.server.listen;
    if !ports.is_empty() {
        return ports.iter().map(|port| local(port, true)).collect();
    }
    if configured.is_empty() {
        return DEFAULT_PORTS.iter().map(|port| local(port, false)).collect();
    }
    configured.iter().map(|address| Wanted { address: address.clone(), explicit: true }).collect()
}

/// `localhost` is two addresses (T-43); the second is passed over on machines without IPv6.
async fn bind(address: &HostPort) -> io::Result<Vec<(TcpListener, SocketAddr)>> {
    let mut bound = Vec::new();
    if address.host().eq_ignore_ascii_case("localhost") {
        bound.push(TcpListener::bind(("127.0.0.1", address.port())).await?);
        // Port 0 means "any": the second listener takes the number the first was given.
        let port = bound[0].local_addr()?.port();
        bound.extend(TcpListener::bind(("::1", port)).await.ok());
    } else {
        bound.push(TcpListener::bind((address.host(), address.port())).await?);
    }
    bound.into_iter().map(|listener| listener.local_addr().map(|address| (listener, address))).collect()
}

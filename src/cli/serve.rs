//! `corbie`, `corbie stdio` and `corbie serve`: the server itself.

use std::io;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use corbie_mcp::transport::http::Http;
use corbie_mcp::transport::{Auth, stdio, stop_on_signal};
use corbie_mcp::{AuditEvent, Server};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::task::AbortOnDropHandle;

use super::End;
use crate::app::{self, App};
use crate::classify::reload;
use crate::config::address::HostPort;
use crate::config::server::NoAuthentication;
use crate::config::trust::Via;
use crate::config::{ConfigError, Loaded};
use crate::knowledge::local;
use crate::route;

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

/// An open address, and what it asks of its callers.
struct Listening {
    listener: TcpListener,
    address: SocketAddr,
    auth: Auth,
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
    let app = app::build(config)?;
    let http_options = app::http_options(config, &app);
    let App { server, classification, router, knowledge, audit, .. } = app;
    // Before the first line of the log: whoever reads it may stop us at once.
    let stopping = stop_on_signal(server.clone());
    let following = reload::follow(classification.clone(), server.clone());
    let listeners = if with == With::Stdio { Vec::new() } else { listeners(loaded, ports).await? };
    server.audit().event(AuditEvent::new("start").detail(format!("corbie {}", server.version())));
    let mut serving: JoinSet<io::Result<()>> = JoinSet::new();
    let http = Http::new(server.clone(), http_options);
    for Listening { listener, address, auth } in listeners {
        let loopback = address.ip().is_loopback();
        if let Some(knowledge) = knowledge.as_ref().filter(|_| !loopback) {
            knowledge.reachable_by_others();
        }
        let trust = app::trust(config, if loopback { Via::Loopback } else { Via::Remote });
        tracing::info!(url = %format_args!("http://{address}/mcp"), %trust, "listening");
        let http = http.asking(auth, app::rate_limit(config, loopback));
        serving.spawn(async move { http.serve(listener).await });
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
    tokio::spawn(stopping);
    let _following = AbortOnDropHandle::new(tokio::spawn(following));
    let _models = AbortOnDropHandle::new(tokio::spawn(route::follow(router, server.clone())));
    let mut keeping = Vec::new();
    if let Some(knowledge) = &knowledge {
        let (resuming, following) = (knowledge.clone(), knowledge.clone());
        keeping.push(AbortOnDropHandle::new(tokio::spawn(async move { resuming.resume().await })));
        keeping.push(AbortOnDropHandle::new(tokio::spawn(following.follow_folders())));
        keeping.push(AbortOnDropHandle::new(tokio::spawn(local::serve(knowledge.clone(), server.clone()))));
    }
    let mut warming = None;
    if config.classification.taxonomy.is_some() || config.inference.embedding.path.is_some() {
        // What has to be learned is learned now, not when the first text is waiting.
        warming = Some(AbortOnDropHandle::new(tokio::spawn(async move { classification.warm().await })));
    }
    let mut end = Ok(ExitCode::SUCCESS);
    while let Some(ended) = serving.join_next().await {
        if let Err(error) = ended? {
            end = Err(error.into());
            server.drain();
        }
    }
    finish(&server).await;
    if let Some(knowledge) = &knowledge {
        tokio::select! {
            () = knowledge.finish(server.grace_ends()) => {}
            () = server.stopped() => {}
        }
    }
    drop((warming, keeping));
    server.audit().event(AuditEvent::new("stop"));
    if let Some(audit) = audit {
        // It waits for the disk.
        let _ = tokio::task::spawn_blocking(move || audit.finish()).await;
    }
    end
}

/// Waits for work no connection waits for, such as tasks, within what is left of the grace.
async fn finish(server: &Server) {
    tokio::select! {
        _ = tokio::time::timeout_at(server.grace_ends(), server.finished()) => {}
        () = server.stopped() => {}
    }
}

/// Opens every address, after all of them were found fit to be opened. A default port that is taken is passed over as
/// long as another could be opened.
async fn listeners(loaded: &Loaded, ports: &[u16]) -> Result<Vec<Listening>, ConfigError> {
    let key = if ports.is_empty() { "server.listen" } else { "--port" };
    let unfit = |address: &dyn std::fmt::Display, error: NoAuthentication| match loaded.config.server.auth {
        Some(_) => loaded.mistake("server.auth", format!("{error} (for {address})")),
        None => loaded.mistake(key, format!("asks for {address}, and `server.auth` {error}")),
    };
    let wanted = wanted(loaded, ports);
    for Wanted { address, .. } in &wanted {
        loaded.config.server.authentication(address.is_loopback()).map_err(|error| unfit(address, error))?;
    }
    let mut open = Vec::new();
    let mut last_failure = None;
    for Wanted { address, explicit } in wanted {
        match bind(&address).await {
            Ok(bound) => open.extend(bound),
            Err(error) => {
                let advice = "stop what uses it or choose another port";
                let failure = loaded.mistake(key, format!("cannot listen on {address}: {error}; {advice}"));
                if explicit {
                    return Err(failure);
                }
                tracing::warn!(%address, %error, "default port is taken");
                last_failure = Some(failure);
            }
        }
    }
    if open.is_empty()
        && let Some(failure) = last_failure
    {
        return Err(failure);
    }
    // A name may have turned out to be another kind of address than it looked like, so each is asked for again.
    let ask = |(listener, address): (TcpListener, SocketAddr)| {
        let authentication = loaded.config.server.authentication(address.ip().is_loopback());
        let authentication = authentication.map_err(|error| unfit(&address, error))?;
        Ok(Listening { listener, address, auth: app::auth(&loaded.config, authentication) })
    };
    open.into_iter().map(ask).collect()
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
        match TcpListener::bind(("::1", port)).await {
            Ok(listener) => bound.push(listener),
            // Somebody else has the other half of the port, and clients that say `localhost` might reach them.
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => return Err(error),
            // This machine has no IPv6.
            Err(_) => {}
        }
    } else {
        bound.push(TcpListener::bind((address.host(), address.port())).await?);
    }
    bound.into_iter().map(|listener| listener.local_addr().map(|address| (listener, address))).collect()
}

//! `corbie`, `corbie stdio` and `corbie serve`: runs the server.

use std::io;
use std::process::ExitCode;
use std::time::Duration;

use corbie_mcp::transport::http::Http;
use corbie_mcp::transport::{Auth, stdio, stop_on_signal};
use corbie_mcp::{AuditEvent, Server};
use tokio::task::JoinSet;
use tokio_util::task::AbortOnDropHandle;

use super::exit::InvalidSettings;
use super::listeners::{ListenerSocket, OpenListener};
use super::{CommandResult, certificates, listeners};
use crate::app::{self, App};
use crate::classify::reload;
use crate::config::trust::Via;
use crate::config::{Config, LoadedConfig};
use crate::file_sync::{self, SharedFileKind};
use crate::knowledge::control_socket;
use crate::reload::ConfigReloader;
use crate::route;
use crate::running_servers;
use crate::supervisor::{TaskName, supervise};

/// The transports to open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Transports {
    Stdio,
    Http,
    Both,
}

/// Serves until a signal, or until the end of stdin if stdin is served, and drains before returning.
pub(super) fn serve(loaded: &LoadedConfig, ports: &[u16], with: Transports) -> CommandResult {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let ended = runtime.block_on(run(loaded, ports, with));
    // A blocked read of stdin must not keep the process alive.
    runtime.shutdown_timeout(Duration::from_millis(100));
    ended
}

async fn run(loaded: &LoadedConfig, ports: &[u16], with: Transports) -> CommandResult {
    let config = &loaded.config;
    if with != Transports::Stdio {
        loaded.check_may_listen().map_err(InvalidSettings)?;
    }
    file_sync::sync_at_startup(config).await;
    let app = app::build_loaded(loaded)?;
    let http_options = app::http_options(config, &app);
    let App { server, classification, router, access, knowledge, file_sync: shared_files, .. } = app;
    // Before the first log line, because a supervisor that reads it may stop us right after.
    let (stopped, followed) = (server.clone(), (classification.clone(), server.clone()));
    let stopping = supervise(TaskName("stop_signals"), move || stop_on_signal(stopped.clone()));
    let following = supervise(TaskName("taxonomy"), move || reload::watch(followed.0.clone(), followed.1.clone()));
    if let Some(knowledge) = &knowledge {
        knowledge.check_storage().await;
    }
    let (mut listeners, mut tls) = (Vec::new(), None);
    if with != Transports::Stdio {
        tls = certificates::open(loaded)?;
        listeners = listeners::open(loaded, ports, &access).await?;
    }
    tracing::info!(files = %loaded.files_in_effect(), "configuration files in effect");
    server.audit().record_event(AuditEvent::new("start").detail(format!("corbie {}", server.version())));
    let mut serving: JoinSet<io::Result<()>> = JoinSet::new();
    let http = Http::new(server.clone(), http_options);
    let urls: Vec<String> = listeners.iter().map(|listening| listening.socket.local_url(tls.is_some())).collect();
    // Until this process ends. Commands work without it, so a failure is not fatal.
    let _registered =
        if urls.is_empty() { Ok(None) } else { running_servers::register(&loaded.sources.variables, config, urls) }
            .inspect_err(|error| tracing::debug!(%error, "commands cannot find this server"));
    let asks_for_a_token = listeners.iter().any(|listening| matches!(listening.auth, Auth::Required(_)));
    let first = listeners.iter().find_map(|listening| listening.socket.console_url(tls.is_some()));
    for OpenListener { socket: at, auth } in listeners {
        let local = at.is_local();
        let open_to_others = at.is_reachable_by_others() || config.server.is_behind_proxy();
        if let Some(knowledge) = knowledge.as_ref().filter(|_| open_to_others) {
            knowledge.set_remotely_reachable();
        }
        let trust = config.trust.level(if local { Via::Loopback } else { Via::Remote }).as_str();
        tracing::info!(url = %at.url(tls.is_some()), %trust, "listening");
        if !local && tls.is_none() {
            let advice = "set `server.tls`, or listen on loopback behind a proxy with TLS";
            tracing::warn!(address = %at, "requests and tokens are not encrypted; {advice}");
        }
        let http = http.with_auth(auth, app::rate_limit(config, local));
        match (at, tls.as_ref().map(|tls| tls.certificates.clone())) {
            (ListenerSocket::Port(listener, _), None) => serving.spawn(async move { http.serve(listener).await }),
            (ListenerSocket::Port(listener, _), Some(tls)) => {
                serving.spawn(async move { http.serve_tls(listener, tls).await })
            }
            #[cfg(unix)]
            (ListenerSocket::Socket(socket), _) => serving.spawn(async move { http.serve_unix(socket).await }),
        };
    }
    if asks_for_a_token {
        tracing::info!("{}", token_hint(config));
    }
    if let Some(url) = first.filter(|_| config.server.console) {
        tracing::info!("Web console: {url}");
    }
    if with != Transports::Http {
        let (server, standing, trust) = (server.clone(), access.stdio.clone(), config.trust.level(Via::Stdio).as_str());
        tracing::info!(%trust, tools = server.registry().len(), "serving stdin and stdout");
        serving.spawn(async move {
            let ended = stdio::serve(&server, standing).await;
            // The client that started us has disconnected. Drain only if stdio was the only transport.
            if with == Transports::Stdio {
                server.drain();
            }
            ended
        });
    }
    tokio::spawn(stopping);
    let mut keeping = vec![AbortOnDropHandle::new(tokio::spawn(following))];
    let settings = ConfigReloader::new(loaded.clone(), access, router.providers().clone(), server.clone());
    let settings = if with == Transports::Stdio { settings } else { settings.listening(asks_for_a_token) };
    if let Some(shared) = shared_files {
        let (classification, settings) = (classification.clone(), settings.clone());
        keeping.push(spawn_supervised("shared_files", move || {
            let (classification, settings) = (classification.clone(), settings.clone());
            shared.clone().run_sync_loop(move |change| match change.kind {
                SharedFileKind::Taxonomy => {
                    if classification.set_category_ids(change.category_ids) || change.is_pulled {
                        classification.request_reload();
                    }
                }
                SharedFileKind::Tokens if change.is_pulled => settings.request_reload(),
                SharedFileKind::Tokens => {}
            })
        }));
    }
    keeping.push(spawn_supervised("settings", move || settings.clone().watch()));
    keeping.extend(tls.map(|tls| spawn_supervised("certificates", move || certificates::watch(tls.clone()))));
    if let Some(knowledge) = &knowledge {
        route::sync_decision_log(&router, knowledge);
    }
    let of_models = server.clone();
    keeping.push(spawn_supervised("models", move || route::run_refresh(router.clone(), of_models.clone())));
    if let Some(knowledge) = &knowledge {
        let (resuming, following) = (knowledge.clone(), knowledge.clone());
        let (local, of_local) = (knowledge.clone(), server.clone());
        keeping.push(spawn_supervised("resumed_tasks", move || resuming.clone().resume()));
        keeping.push(spawn_supervised("watched_folders", move || following.clone().watch_folders()));
        keeping
            .push(spawn_supervised("control_socket", move || control_socket::serve(local.clone(), of_local.clone())));
    }
    if config.classification.taxonomy.is_some() || config.inference.embedding.path.is_some() {
        // Train now, not when the first text is waiting.
        keeping.push(spawn_supervised("classifier_training", move || {
            let classification = classification.clone();
            async move { classification.warm_up().await }
        }));
    }
    let mut end = Ok(ExitCode::SUCCESS);
    while let Some(ended) = serving.join_next().await {
        // A panicked listener ends the program like a failed one, after running calls are answered.
        if let Err(error) = ended.unwrap_or_else(|panic| Err(io::Error::other(panic))) {
            end = Err(error.into());
            server.drain();
        }
    }
    finish(&server).await;
    if let Some(knowledge) = &knowledge {
        tokio::select! {
            () = knowledge.shut_down(server.drain_deadline()) => {}
            () = server.stopped() => {}
        }
    }
    drop(keeping);
    // Calls that exceed the grace period are dropped with the runtime and audited then; `main` waits for the last line.
    server.audit().record_event(AuditEvent::new("stop"));
    end
}

/// Runs supervised work until the handle is dropped.
fn spawn_supervised<Work: Future<Output = ()> + Send + 'static>(
    name: &'static str,
    make: impl FnMut() -> Work + Send + 'static,
) -> AbortOnDropHandle<()> {
    AbortOnDropHandle::new(tokio::spawn(supervise(TaskName(name), make)))
}

/// A hint for the log on how to obtain a token. It never contains the token itself.
fn token_hint(config: &Config) -> String {
    let own = match config.server.token {
        Some(_) => "use the one in `server.token` or MCP_API_KEY, or create one with `corbie tokens create NAME`",
        None => "create one with `corbie tokens create NAME`",
    };
    let others = match config.server.oauth {
        Some(_) => ", or request one from the authorization server in `server.oauth`",
        None => "",
    };
    format!("callers must send a token as `Authorization: Bearer <token>`: {own}{others}")
}

/// Waits for work that no connection waits for, such as tasks, for the rest of the grace period.
async fn finish(server: &Server) {
    tokio::select! {
        _ = tokio::time::timeout_at(server.drain_deadline(), server.finished()) => {}
        () = server.stopped() => {}
    }
}

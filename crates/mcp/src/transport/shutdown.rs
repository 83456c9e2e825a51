//! Shutdown on signals: the first drains, the second stops immediately.

use crate::server::Server;

/// Registers SIGTERM and SIGINT handlers now; the future handles the signals for the lifetime of the program.
pub fn stop_on_signal(server: Server) -> impl Future<Output = ()> + Send {
    let mut signals = Signals::listen();
    async move {
        signals.next().await;
        tracing::info!(
            grace_seconds = server.limits().shutdown_grace.as_secs(),
            "shutting down: waiting for requests in flight; send the signal again to stop immediately"
        );
        server.drain();
        signals.next().await;
        tracing::warn!("stopped immediately");
        server.stop_now();
    }
}

/// The termination signals. If handlers cannot be registered, the signals keep their default action.
struct Signals {
    #[cfg(unix)]
    listeners: Option<(tokio::signal::unix::Signal, tokio::signal::unix::Signal)>,
}

#[cfg(unix)]
impl Signals {
    fn listen() -> Signals {
        use tokio::signal::unix::{SignalKind, signal};
        Signals { listeners: signal(SignalKind::terminate()).ok().zip(signal(SignalKind::interrupt()).ok()) }
    }

    async fn next(&mut self) {
        match &mut self.listeners {
            Some((terminate, interrupt)) => {
                tokio::select! {
                    _ = terminate.recv() => {}
                    _ = interrupt.recv() => {}
                }
            }
            None => std::future::pending().await,
        }
    }
}

#[cfg(not(unix))]
impl Signals {
    fn listen() -> Signals {
        Signals {}
    }

    async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending().await
        }
    }
}

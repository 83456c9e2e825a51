//! Stopping: the first signal drains, the second ends at once.

use crate::server::Server;

/// Waits for SIGTERM or SIGINT for as long as the program runs.
pub async fn stop_on_signal(server: Server) {
    signal().await;
    tracing::info!(
        grace_seconds = server.limits().shutdown_grace.as_secs(),
        "stopping: waiting for requests in flight; send the signal again to stop at once"
    );
    server.drain();
    signal().await;
    tracing::warn!("stopped at once");
    server.stop_now();
}

#[cfg(unix)]
async fn signal() {
    use tokio::signal::unix::{SignalKind, signal};
    match (signal(SignalKind::terminate()), signal(SignalKind::interrupt())) {
        (Ok(mut terminate), Ok(mut interrupt)) => {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        }
        _ => std::future::pending().await,
    }
}

#[cfg(not(unix))]
async fn signal() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending().await
    }
}

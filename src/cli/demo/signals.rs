//! Signal handling for a command with a temporary folder to remove.

use std::path::{Path, PathBuf};

use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::workdir;

/// Exit status of an interrupted command, by shell convention.
pub(super) const INTERRUPTED: u8 = 130;

/// Watches for signals until it is dropped.
#[derive(Debug)]
pub(super) struct ShutdownRequest {
    requested: CancellationToken,
    _watching: AbortOnDropHandle<()>,
}

impl ShutdownRequest {
    /// The first signal requests a graceful shutdown. The second one removes the folder and exits immediately: a pager
    /// that does not read would delay a graceful shutdown.
    pub(super) fn watch(signals: Signals, folder: &Path) -> ShutdownRequest {
        let asked = CancellationToken::new();
        let watching = tokio::spawn(watch(signals, asked.clone(), folder.to_owned()));
        ShutdownRequest { requested: asked, _watching: AbortOnDropHandle::new(watching) }
    }

    /// Resolves when shutdown was requested.
    pub(super) async fn requested(&self) {
        self.requested.cancelled().await;
    }

    pub(super) fn is_requested(&self) -> bool {
        self.requested.is_cancelled()
    }
}

async fn watch(mut signals: Signals, asked: CancellationToken, folder: PathBuf) {
    signals.next().await;
    asked.cancel();
    signals.next().await;
    let _ = workdir::remove(&folder);
    std::process::exit(INTERRUPTED.into());
}

/// SIGINT, SIGTERM and SIGHUP.
#[derive(Debug)]
pub(super) struct Signals {
    #[cfg(unix)]
    listeners: Option<[tokio::signal::unix::Signal; 3]>,
}

#[cfg(unix)]
impl Signals {
    /// Starts listening; signals that arrive before `watch` are not lost.
    pub(super) fn listen() -> Signals {
        use tokio::signal::unix::{SignalKind, signal};
        let listen = |kind| signal(kind).ok();
        let kinds = (listen(SignalKind::interrupt()), listen(SignalKind::terminate()), listen(SignalKind::hangup()));
        let listeners = match kinds {
            (Some(interrupt), Some(terminate), Some(hangup)) => Some([interrupt, terminate, hangup]),
            _ => None,
        };
        Signals { listeners }
    }

    async fn next(&mut self) {
        let Some([interrupt, terminate, hangup]) = &mut self.listeners else { return std::future::pending().await };
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            // A server reloads its configuration on SIGHUP and would stay behind without its terminal, so send SIGTERM
            // to the own process instead.
            _ = hangup.recv() => {
                use rustix::process::{Signal, getpid, kill_process};
                if kill_process(getpid(), Signal::TERM).is_ok() {
                    terminate.recv().await;
                }
            }
        }
    }
}

#[cfg(not(unix))]
impl Signals {
    pub(super) fn listen() -> Signals {
        Signals {}
    }

    async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending().await
        }
    }
}

//! Signals that ask for the end, for a command that has something to remove.

use std::path::{Path, PathBuf};

use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::place;

/// What shells take for "interrupted".
pub(super) const INTERRUPTED: u8 = 130;

/// Watches for as long as it is kept.
#[derive(Debug)]
pub(super) struct Ending {
    asked: CancellationToken,
    _watching: AbortOnDropHandle<()>,
}

impl Ending {
    /// The first signal asks for an orderly end; the second one removes the folder and ends the program, whatever it is
    /// doing: a pager that does not read holds up any more polite end.
    pub(super) fn watch(signals: Signals, folder: &Path) -> Ending {
        let asked = CancellationToken::new();
        let watching = tokio::spawn(watch(signals, asked.clone(), folder.to_owned()));
        Ending { asked, _watching: AbortOnDropHandle::new(watching) }
    }

    /// Ends when it was asked for.
    pub(super) async fn asked(&self) {
        self.asked.cancelled().await;
    }

    pub(super) fn was_asked(&self) -> bool {
        self.asked.is_cancelled()
    }
}

async fn watch(mut signals: Signals, asked: CancellationToken, folder: PathBuf) {
    signals.next().await;
    asked.cancel();
    signals.next().await;
    let _ = place::remove(&folder);
    std::process::exit(INTERRUPTED.into());
}

/// Ctrl-C, a request to end, and a terminal that is closed.
#[derive(Debug)]
pub(super) struct Signals {
    #[cfg(unix)]
    listeners: Option<[tokio::signal::unix::Signal; 3]>,
}

#[cfg(unix)]
impl Signals {
    /// From this call on; what comes before it is watched for is not lost.
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
            // A server takes it for the wish to read its settings again, and would stay behind without its terminal.
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

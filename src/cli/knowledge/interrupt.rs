//! Ctrl-C handling for a command that has to clean up.

use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::cli::exit::INTERRUPTED;

/// Watches for Ctrl-C until it is dropped.
#[derive(Debug)]
pub(super) struct Interrupt {
    requested: CancellationToken,
    _watching: AbortOnDropHandle<()>,
}

impl Interrupt {
    /// The first Ctrl-C requests a graceful shutdown, the second exits immediately, because the shutdown may hang.
    pub(super) fn watch() -> Interrupt {
        let asked = CancellationToken::new();
        let ask = asked.clone();
        let watching = tokio::spawn(async move {
            if tokio::signal::ctrl_c().await.is_ok() {
                ask.cancel();
                if tokio::signal::ctrl_c().await.is_ok() {
                    std::process::exit(INTERRUPTED.into());
                }
            }
        });
        Interrupt { requested: asked, _watching: AbortOnDropHandle::new(watching) }
    }

    /// Resolves when shutdown was requested.
    pub(super) async fn requested(&self) {
        self.requested.cancelled().await;
    }
}

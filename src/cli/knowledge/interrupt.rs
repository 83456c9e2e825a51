//! Ctrl-C, for a command that has something to undo.

use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::cli::ending::INTERRUPTED;

/// Watches for as long as it is kept.
#[derive(Debug)]
pub(super) struct Interrupt {
    asked: CancellationToken,
    _watching: AbortOnDropHandle<()>,
}

impl Interrupt {
    /// The first one asks for an orderly end, the second one ends the program: something may hang.
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
        Interrupt { asked, _watching: AbortOnDropHandle::new(watching) }
    }

    /// Ends when it was asked for.
    pub(super) async fn asked(&self) {
        self.asked.cancelled().await;
    }
}

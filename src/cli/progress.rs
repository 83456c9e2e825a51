//! Single-line progress display on a terminal.

use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use super::sanitize_line;
use crate::colour;

/// Shown on stderr if it is a terminal, and cleared on drop.
pub(super) struct Progress {
    visible: bool,
}

/// Set for machine-readable output.
static SILENT: AtomicBool = AtomicBool::new(false);

/// Disables progress from now on.
pub(super) fn silence() {
    SILENT.store(true, Ordering::Relaxed);
}

pub(super) fn is_silent() -> bool {
    SILENT.load(Ordering::Relaxed)
}

impl Progress {
    pub(super) fn new() -> Progress {
        Progress { visible: is_supported() && !is_silent() }
    }

    /// For commands that print results continuously: on a terminal the results themselves show the progress.
    pub(super) fn with_results() -> Progress {
        let mut progress = Progress::new();
        progress.visible &= !std::io::stdout().is_terminal();
        progress
    }

    /// Shows one message until it is dropped.
    pub(super) fn with_message(line: &str) -> Progress {
        let progress = Progress::new();
        progress.update(line);
        progress
    }

    pub(super) fn update(&self, line: &str) {
        if self.visible {
            // A failed write to stderr is ignored.
            let _ = write!(std::io::stderr(), "\r{}\u{1b}[K", sanitize_line(line));
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.update("");
    }
}

/// Rewriting a line needs a terminal that supports cursor movement.
pub(super) fn is_supported() -> bool {
    std::io::stderr().is_terminal() && !colour::is_dumb_terminal()
}

//! One line on a terminal that tells how far a command is.

use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use super::one_line;
use crate::colour;

/// Shown on stderr where that is a terminal, and gone when it is dropped.
pub(super) struct Progress {
    visible: bool,
}

/// Whether programs read what is printed, who wait without being told.
static SILENT: AtomicBool = AtomicBool::new(false);

/// From here on no progress is shown.
pub(super) fn silence() {
    SILENT.store(true, Ordering::Relaxed);
}

pub(super) fn is_silent() -> bool {
    SILENT.load(Ordering::Relaxed)
}

impl Progress {
    pub(super) fn new() -> Progress {
        Progress { visible: can_be_shown() && !is_silent() }
    }

    /// For commands that print one result after the other: on a terminal those tell enough.
    pub(super) fn beside_results() -> Progress {
        let mut progress = Progress::new();
        progress.visible &= !std::io::stdout().is_terminal();
        progress
    }

    /// A progress that says one thing for as long as it is kept.
    pub(super) fn of(line: &str) -> Progress {
        let progress = Progress::new();
        progress.tell(line);
        progress
    }

    pub(super) fn tell(&self, line: &str) {
        if self.visible {
            // Nobody is helped by a progress that cannot be shown.
            let _ = write!(std::io::stderr(), "\r{}\u{1b}[K", one_line(line));
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.tell("");
    }
}

/// A line can only be written anew where the terminal can go back in it.
pub(super) fn can_be_shown() -> bool {
    std::io::stderr().is_terminal() && !colour::is_dumb()
}

//! One line on a terminal that tells how far a command is.

use std::io::{IsTerminal, Write};

use super::one_line;

/// Shown on stderr where that is a terminal, and gone when it is dropped.
pub(super) struct Progress {
    visible: bool,
}

impl Progress {
    pub(super) fn new() -> Progress {
        Progress { visible: std::io::stderr().is_terminal() }
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

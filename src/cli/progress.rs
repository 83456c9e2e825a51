//! Single-line progress display on a terminal.

use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use super::sanitize_line;
use super::terminal::{self, truncate_end};
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

    /// Shows a line, truncated to the terminal: a line that wraps cannot be overwritten and would stay on the screen.
    pub(super) fn update(&self, line: &str) {
        self.update_with(|columns| truncate_end(&sanitize_line(line), columns));
    }

    /// The same for a line that is fitted to the number of columns by the caller.
    pub(super) fn update_with(&self, line: impl FnOnce(usize) -> String) {
        if self.visible {
            // A failed write to stderr is ignored.
            let _ = write!(std::io::stderr(), "\r{}\u{1b}[K", line(line_columns()));
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.update("");
    }
}

/// Columns of a progress line. The last column stays empty, because some terminals wrap after it.
fn line_columns() -> usize {
    terminal::stderr_columns().saturating_sub(1)
}

/// A line with a bar, what is being done, and the remaining time. Narrow terminals get less: first the text loses its
/// beginning, then the bar is omitted.
pub(super) fn bar_line(share: f64, step: &str, left: &str, columns: usize) -> String {
    const BAR: usize = 20;
    const MIN_STEP: usize = 24;
    let filled = (share.clamp(0.0, 1.0) * BAR as f64) as usize;
    let bar = format!("[{:.<BAR$}] ", "#".repeat(filled));
    let rest = columns.saturating_sub(terminal::width(left));
    let room = rest.saturating_sub(bar.len());
    // The end of the text has the count of files.
    match room >= MIN_STEP {
        true => format!("{bar}{}{left}", terminal::truncate_start(step, room)),
        false => truncate_end(&format!("{}{left}", terminal::truncate_start(step, rest)), columns),
    }
}

/// Rewriting a line needs a terminal that supports cursor movement.
pub(super) fn is_supported() -> bool {
    std::io::stderr().is_terminal() && !colour::is_dumb_terminal()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_line_never_exceeds_the_terminal_and_keeps_the_count() {
        let step = format!("{}.pdf: Reading (3 of 9 files done)", "長い名前".repeat(50));
        for columns in 0..140 {
            let line = bar_line(0.5, &step, ", about 12 s left", columns);
            assert!(terminal::width(&line) <= columns, "{columns}: {line}");
        }
        let line = bar_line(0.5, &step, ", about 12 s left", 79);
        assert!(line.starts_with("[##########..........] …"), "{line}");
        assert!(line.ends_with("(3 of 9 files done), about 12 s left"), "{line}");
        assert!(bar_line(0.5, &step, "", 40).ends_with("(3 of 9 files done)"));
    }
}

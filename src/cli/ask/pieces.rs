//! Streaming output of an answer: text on stdout, reasoning on stderr.

use std::io::{IsTerminal, Write};

use super::super::harmless;
use super::super::progress::Progress;
use super::super::screen::{DIM, PLAIN};
use crate::colour;

/// Writes an answer piece by piece.
pub(super) struct Pieces<'a> {
    out: &'a mut dyn Write,
    /// Shown until the first output.
    waiting: Option<Progress>,
    /// Reasoning output has started and is not terminated yet.
    thinks: bool,
    /// The last line on stdout is not terminated.
    within_line: bool,
}

/// Shows a progress message until it is dropped.
pub(super) fn waiting() -> Progress {
    let progress = Progress::new();
    progress.tell("asking …");
    progress
}

impl Pieces<'_> {
    pub(super) fn new(out: &mut dyn Write) -> Pieces<'_> {
        Pieces { out, waiting: Some(waiting()), thinks: false, within_line: false }
    }

    pub(super) fn answer(&mut self, text: &str) -> std::io::Result<()> {
        self.end_thinking()?;
        self.out.write_all(text.as_bytes())?;
        if !text.is_empty() {
            self.within_line = !text.ends_with('\n');
        }
        self.out.flush()
    }

    pub(super) fn thought(&mut self, text: &str) -> std::io::Result<()> {
        self.waiting = None;
        self.thinks = true;
        let mut stderr = std::io::stderr();
        if colour::suits(stderr.is_terminal()) {
            return write!(stderr, "{DIM}{}{PLAIN}", harmless(text));
        }
        stderr.write_all(harmless(text).as_bytes())
    }

    fn end_thinking(&mut self) -> std::io::Result<()> {
        self.waiting = None;
        if std::mem::take(&mut self.thinks) {
            writeln!(std::io::stderr())?;
        }
        Ok(())
    }

    /// Terminates the last line.
    pub(super) fn end(&mut self) -> std::io::Result<()> {
        self.end_thinking()?;
        if std::mem::take(&mut self.within_line) {
            writeln!(self.out)?;
        }
        self.out.flush()
    }
}

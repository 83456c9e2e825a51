//! Streaming output of an answer: text on stdout, reasoning on stderr.

use std::io::{IsTerminal, Write};

use super::super::progress::Progress;
use super::super::sanitize;
use super::super::sanitized_stdout::{DIM, RESET};
use crate::colour;

/// Writes an answer piece by piece.
pub(super) struct StreamOutput<'a> {
    out: &'a mut dyn Write,
    /// Shown until the first output.
    progress: Option<Progress>,
    /// Reasoning output has started and is not terminated yet.
    in_reasoning: bool,
    /// The last line on stdout is not terminated.
    in_line: bool,
}

/// Shows a progress message until it is dropped.
pub(super) fn waiting_progress() -> Progress {
    let progress = Progress::new();
    progress.update("waiting for the model …");
    progress
}

impl StreamOutput<'_> {
    pub(super) fn new(out: &mut dyn Write) -> StreamOutput<'_> {
        StreamOutput { out, progress: Some(waiting_progress()), in_reasoning: false, in_line: false }
    }

    pub(super) fn write_answer(&mut self, text: &str) -> std::io::Result<()> {
        self.end_reasoning()?;
        self.out.write_all(text.as_bytes())?;
        if !text.is_empty() {
            self.in_line = !text.ends_with('\n');
        }
        self.out.flush()
    }

    pub(super) fn write_reasoning(&mut self, text: &str) -> std::io::Result<()> {
        self.progress = None;
        self.in_reasoning = true;
        let mut stderr = std::io::stderr();
        if colour::is_enabled(stderr.is_terminal()) {
            return write!(stderr, "{DIM}{}{RESET}", sanitize(text));
        }
        stderr.write_all(sanitize(text).as_bytes())
    }

    fn end_reasoning(&mut self) -> std::io::Result<()> {
        self.progress = None;
        if std::mem::take(&mut self.in_reasoning) {
            writeln!(std::io::stderr())?;
        }
        Ok(())
    }

    /// Terminates the last line.
    pub(super) fn end(&mut self) -> std::io::Result<()> {
        self.end_reasoning()?;
        if std::mem::take(&mut self.in_line) {
            writeln!(self.out)?;
        }
        self.out.flush()
    }
}

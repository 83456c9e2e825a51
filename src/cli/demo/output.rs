//! Text output of the demo.

use std::io::{self, IsTerminal, Write};

use super::script::DemoReport;
use crate::cli::sanitized_stdout::{BOLD, DIM, RESET};
use crate::cli::{json_output, terminal};
use crate::colour;

pub(super) struct DemoOutput<'a> {
    out: &'a mut dyn Write,
    /// With `--json`, nothing is printed before the end.
    json: bool,
    styled: bool,
    steps: usize,
    at: usize,
}

impl DemoOutput<'_> {
    pub(super) fn new(out: &mut dyn Write, json: bool) -> DemoOutput<'_> {
        DemoOutput { out, json, styled: colour::is_enabled(io::stdout().is_terminal()), steps: 0, at: 0 }
    }

    pub(super) fn begin(&mut self, steps: usize) -> io::Result<()> {
        self.steps = steps;
        if self.json {
            return Ok(());
        }
        writeln!(
            self.out,
            "Demonstration on sample documents: offline, in a temporary folder that is removed at the end."
        )
    }

    /// Printed before the step, so that the user sees which step takes time.
    pub(super) fn announce(&mut self, title: &str, command: &str) -> io::Result<()> {
        self.at += 1;
        if self.json {
            return Ok(());
        }
        let (title, command) = (self.styled_text(BOLD, title), self.styled_text(BOLD, command));
        writeln!(self.out, "\n{}/{}  {title}\n     $ {command}", self.at, self.steps)?;
        self.out.flush()
    }

    pub(super) fn show_result(&mut self, lines: &[String], seconds: f64) -> io::Result<()> {
        if self.json {
            return Ok(());
        }
        for line in lines {
            self.write_indented(line)?;
        }
        let took = self.styled_text(DIM, &format_seconds(seconds));
        writeln!(self.out, "     {took}")?;
        self.out.flush()
    }

    pub(super) fn end(&mut self, report: &DemoReport, next: &[(&str, &str)]) -> io::Result<()> {
        if self.json {
            json_output::write(report, self.out)?;
            return self.out.flush();
        }
        writeln!(self.out, "\nFinished in {}. Next steps:", format_seconds(report.seconds))?;
        let width = next.iter().map(|(command, _)| command.len()).max().unwrap_or_default();
        for (command, why) in next {
            let padded = self.styled_text(BOLD, &format!("{command:<width$}"));
            writeln!(self.out, "     $ {padded}   {why}")?;
        }
        self.out.flush()
    }

    /// Writes a line below a step, wrapped on a terminal.
    fn write_indented(&mut self, line: &str) -> io::Result<()> {
        const INDENT: usize = 5;
        let own = line.len() - line.trim_start().len();
        match terminal::stdout_columns().filter(|columns| INDENT + terminal::width(line) > *columns) {
            None => writeln!(self.out, "{:INDENT$}{line}", ""),
            Some(columns) => terminal::wrap(line, columns.saturating_sub(INDENT + own))
                .iter()
                .try_for_each(|line| writeln!(self.out, "{:1$}{line}", "", INDENT + own)),
        }
    }

    fn styled_text(&self, mark: &str, text: &str) -> String {
        if self.styled { format!("{mark}{text}{RESET}") } else { text.to_owned() }
    }
}

fn format_seconds(seconds: f64) -> String {
    match seconds {
        ..0.001 => format!("{:.0} µs", seconds * 1e6),
        ..1.0 => format!("{:.0} ms", seconds * 1e3),
        _ => format!("{seconds:.1} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_a_suitable_unit() {
        assert_eq!([0.000_31, 0.0424, 3.12].map(format_seconds), ["310 µs", "42 ms", "3.1 s"]);
    }
}

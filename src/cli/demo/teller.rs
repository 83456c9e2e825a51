//! Text output of the demo.

use std::io::{self, IsTerminal, Write};

use super::screenplay::Report;
use crate::cli::screen::{BOLD, DIM, PLAIN};
use crate::colour;

pub(super) struct Teller<'a> {
    out: &'a mut dyn Write,
    /// With `--json`, nothing is printed before the end.
    json: bool,
    marks: bool,
    steps: usize,
    at: usize,
}

impl Teller<'_> {
    pub(super) fn new(out: &mut dyn Write, json: bool) -> Teller<'_> {
        Teller { out, json, marks: colour::suits(io::stdout().is_terminal()), steps: 0, at: 0 }
    }

    pub(super) fn begin(&mut self, steps: usize) -> io::Result<()> {
        self.steps = steps;
        if self.json {
            return Ok(());
        }
        writeln!(self.out, "A look at corbie: offline, in a temporary folder that is removed in the end.")
    }

    /// Printed before the step, so that the user sees which step takes time.
    pub(super) fn announce(&mut self, title: &str, command: &str) -> io::Result<()> {
        self.at += 1;
        if self.json {
            return Ok(());
        }
        let (title, command) = (self.marked(BOLD, title), self.marked(BOLD, command));
        writeln!(self.out, "\n{}/{}  {title}\n     $ {command}", self.at, self.steps)?;
        self.out.flush()
    }

    pub(super) fn tell(&mut self, lines: &[String], seconds: f64) -> io::Result<()> {
        if self.json {
            return Ok(());
        }
        for line in lines {
            writeln!(self.out, "     {line}")?;
        }
        let took = self.marked(DIM, &took(seconds));
        writeln!(self.out, "     {took}")?;
        self.out.flush()
    }

    pub(super) fn end(&mut self, report: &Report, next: &[(&str, &str)]) -> io::Result<()> {
        if self.json {
            writeln!(self.out, "{}", serde_json::to_string(report)?)?;
            return self.out.flush();
        }
        writeln!(self.out, "\nThat took {}. What next?", took(report.seconds))?;
        let width = next.iter().map(|(command, _)| command.len()).max().unwrap_or_default();
        for (command, why) in next {
            let padded = self.marked(BOLD, &format!("{command:<width$}"));
            writeln!(self.out, "     $ {padded}   {why}")?;
        }
        self.out.flush()
    }

    fn marked(&self, mark: &str, text: &str) -> String {
        if self.marks { format!("{mark}{text}{PLAIN}") } else { text.to_owned() }
    }
}

fn took(seconds: f64) -> String {
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
    fn times_are_told_in_the_unit_that_suits_them() {
        assert_eq!([0.000_31, 0.0424, 3.12].map(took), ["310 µs", "42 ms", "3.1 s"]);
    }
}

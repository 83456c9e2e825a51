//! Reports of a run: tables, JSON, and optionally a section of `RESULTS.md`.

use std::fs;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::machine::Machine;

#[derive(Debug)]
pub(crate) struct BenchReport {
    pub(crate) name: &'static str,
    pub(crate) machine: Machine,
    /// Description of the method.
    pub(crate) about: String,
    pub(crate) tables: Vec<ResultTable>,
    pub(crate) json: Value,
    /// The outcome in one line.
    pub(crate) summary: String,
}

#[derive(Debug)]
pub(crate) struct ResultTable {
    title: &'static str,
    header: Vec<&'static str>,
    pub(crate) rows: Vec<Vec<String>>,
}

const RESULTS: &str = "bench/RESULTS.md";
const PREAMBLE: &str = "# Results\n\nThe last kept tables of each bench; `bench/run NAME --keep` replaces a section.\n";

/// Prints the report, writes `bench/results/NAME.json`, and optionally updates the tables in `RESULTS.md`.
pub(crate) fn publish(report: &BenchReport, keep: bool) -> Result<()> {
    let section = report.to_markdown();
    fs::create_dir_all("bench/results")?;
    let json = json!({ "name": report.name, "machine": report.machine, "measured": report.json });
    fs::write(format!("bench/results/{}.json", report.name), format!("{json:#}\n"))?;
    if keep {
        let before = fs::read_to_string(RESULTS).unwrap_or_else(|_| PREAMBLE.into());
        fs::write(RESULTS, with_section(&before, report.name, &section)).context(RESULTS)?;
    }
    println!("{section}");
    println!("{}", report.summary);
    Ok(())
}

impl BenchReport {
    fn to_markdown(&self) -> String {
        let BenchReport { machine, about, summary: last_line, .. } = self;
        let mut text = format!("{}; {about}.\n", machine.describe());
        for table in self.tables.iter().filter(|table| !table.rows.is_empty()) {
            text += &format!("\n### {}\n\n{}", table.title, table.to_markdown());
        }
        text + &format!("\n**{last_line}**\n")
    }
}

impl ResultTable {
    pub(crate) fn new(title: &'static str, header: &[&'static str]) -> ResultTable {
        ResultTable { title, header: header.to_vec(), rows: Vec::new() }
    }

    fn to_markdown(&self) -> String {
        let header: Vec<String> = self.header.iter().map(|name| (*name).to_owned()).collect();
        let widths: Vec<usize> = (0..header.len())
            .map(|column| {
                let cells = self.rows.iter().chain([&header]).map(|row| row[column].chars().count());
                cells.max().unwrap_or_default().max(2)
            })
            .collect();
        // Number columns are right-aligned.
        let is_number = |column: usize| {
            let cells = self.rows.iter().map(|row| row[column].as_str()).filter(|cell| !cell.is_empty());
            cells.clone().next().is_some()
                && cells.into_iter().all(|cell| cell.starts_with(|first: char| first.is_ascii_digit()))
        };
        let numbers: Vec<bool> = (0..header.len()).map(is_number).collect();
        let line = |row: &Vec<String>| {
            let cells = row.iter().enumerate().map(|(column, cell)| {
                let width = widths[column];
                if numbers[column] { format!(" {cell:>width$} |") } else { format!(" {cell:<width$} |") }
            });
            format!("|{}\n", cells.collect::<String>())
        };
        let rule = widths.iter().zip(&numbers).map(|(&width, &number)| {
            if number { format!(" {:->width$}: |", "", width = width - 1) } else { format!(" {:->width$} |", "") }
        });
        format!("{}|{}\n{}", line(&header), rule.collect::<String>(), self.rows.iter().map(line).collect::<String>())
    }
}

/// `92345.6` as `92,346`.
pub(crate) fn group_thousands(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Three significant digits, or an integer.
pub(crate) fn three_digits(value: f64) -> String {
    match value {
        value if value < 10.0 => format!("{value:.2}"),
        value if value < 100.0 => format!("{value:.1}"),
        value => group_thousands(value),
    }
}

/// The results with this bench's section replaced, or appended.
fn with_section(before: &str, name: &str, section: &str) -> String {
    let heading = format!("## {name}\n");
    let mut text = String::new();
    let mut inside = false;
    let mut found = false;
    for line in before.split_inclusive('\n') {
        if line.starts_with("## ") {
            inside = line == heading;
            if inside {
                found = true;
                text += &format!("{heading}\n{section}\n");
            }
        }
        if !inside {
            text += line;
        }
    }
    if !found {
        text += &format!("\n{heading}\n{section}");
    }
    format!("{}\n", text.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_is_added_then_replaced_and_others_stay() {
        let one = with_section(PREAMBLE, "one", "old\n\n### Table\n");
        let both = with_section(&one, "two", "second\n");
        let again = with_section(&both, "one", "new\n");
        assert_eq!(again, format!("{PREAMBLE}\n## one\n\nnew\n\n## two\n\nsecond\n"));
    }

    #[test]
    fn numbers_stand_to_the_right() {
        let mut table = ResultTable::new("T", &["server", "calls/s"]);
        table.rows.push(vec!["corbie".into(), group_thousands(1_234_567.8)]);
        table.rows.push(vec!["x".into(), three_digits(9.876)]);
        let expected =
            "| server |   calls/s |\n| ------ | --------: |\n| corbie | 1,234,568 |\n| x      |      9.88 |\n";
        assert_eq!(table.to_markdown(), expected);
    }
}

//! CSV and other delimiter-separated values.

use csv::{ReaderBuilder, StringRecord};

use crate::{Block, Error, Limits, Table};

/// Most reliable first: commas also occur inside numbers and sentences.
const DELIMITERS: [u8; 4] = [b';', b'\t', b'|', b','];
/// Number of rows sampled for delimiter detection.
const SAMPLE_ROWS: usize = 50;

/// Parses a file into one table.
pub(super) fn blocks(text: &str, limits: &Limits) -> Result<Vec<Block>, Error> {
    // Some programs declare the delimiter in the first line.
    let told = text.strip_prefix("sep=").and_then(|rest| rest.split_once('\n'));
    let told = told.filter(|(mark, _)| mark.trim_end_matches('\r').len() == 1);
    let (delimiter, text) = match told {
        Some((mark, rest)) => (mark.as_bytes()[0], rest),
        None => (delimiter(text), text),
    };
    let mut table = Table::default();
    let mut cells = 0;
    for record in records(text, delimiter) {
        cells += record.len() as u64;
        if cells > limits.cells {
            return Err(Error::TooMuch { what: "cells", most: limits.cells });
        }
        if record.iter().any(|cell| !cell.trim().is_empty()) {
            table.rows.push(record.iter().map(|cell| cell.trim().to_owned()).collect());
        }
    }
    table.header_rows = usize::from(has_titles(&table));
    Ok(if table.rows.is_empty() { Vec::new() } else { vec![Block::table(table)] })
}

fn records(text: &str, delimiter: u8) -> impl Iterator<Item = StringRecord> {
    let reader =
        ReaderBuilder::new().delimiter(delimiter).has_headers(false).flexible(true).from_reader(text.as_bytes());
    // The text is valid UTF-8 and rows may differ in length, so no record can fail.
    reader.into_records().map_while(Result::ok)
}

/// The delimiter that gives most rows the same number of values, and more than one.
fn delimiter(text: &str) -> u8 {
    let score = |delimiter: u8| {
        let mut lengths: Vec<_> = records(text, delimiter).take(SAMPLE_ROWS).map(|record| record.len()).collect();
        lengths.sort_unstable();
        let usual = lengths.get(lengths.len() / 2).copied().unwrap_or(0);
        let same = lengths.iter().filter(|length| **length == usual).count();
        if usual > 1 { same } else { 0 }
    };
    // The last of equal candidates wins; the default is a comma.
    let scores = DELIMITERS.into_iter().rev().map(|delimiter| (score(delimiter), delimiter));
    scores.filter(|(same, _)| *same > 0).max_by_key(|(same, _)| *same).map_or(b',', |(_, delimiter)| delimiter)
}

/// The first row is a header, unless it contains numbers or is the only row.
fn has_titles(table: &Table) -> bool {
    let is_number = |cell: &String| cell.parse::<f64>().is_ok();
    table.rows.len() > 1 && !table.rows[0].iter().any(is_number)
}

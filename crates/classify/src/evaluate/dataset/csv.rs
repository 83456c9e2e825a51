//! Labelled texts from comma-separated values with a header row.

use std::io::Read;
use std::path::Path;

use ::csv::{ErrorKind, Position, Reader, StringRecord};

use super::{LabelledText, MAX_LINE_BYTES, MAX_LINES, TOO_MANY_LINES, line_error, unreadable};

/// Accepted names of the label column.
const LABEL_COLUMNS: [&str; 3] = ["label", "category", "class"];

/// Reads all rows. An empty label means no label.
pub(super) fn read(mut file: impl Read, path: &Path) -> Result<Vec<LabelledText>, String> {
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(|error| unreadable(path, &error))?;
    let mut lines = LineCounter { bytes: &bytes, offset: 0, line: 1 };
    let mut table = Reader::from_reader(&bytes[..]);
    let header = table.headers().map_err(|error| csv_error(&error, &mut lines, path))?;
    let text = column(header, &["text"]).ok_or_else(|| no_column("text", path))?;
    let label = column(header, &LABEL_COLUMNS).ok_or_else(|| no_column("label", path))?;
    let mut texts = Vec::new();
    let mut row = StringRecord::new();
    while table.read_record(&mut row).map_err(|error| csv_error(&error, &mut lines, path))? {
        let line = lines.at(row.position());
        if row.as_slice().len() > MAX_LINE_BYTES {
            return Err(line_error(path, line, "is longer than 1 MiB; a quote may be unclosed"));
        }
        if texts.len() == MAX_LINES {
            return Err(line_error(path, line, TOO_MANY_LINES));
        }
        let label = Some(row[label].trim()).filter(|label| !label.is_empty()).map(str::to_owned);
        texts.push(LabelledText { text: row[text].to_owned(), label, line });
    }
    Ok(texts)
}

/// Counts lines as editors do. The CSV reader's own count is one too low after `\r\n` and ignores empty lines.
struct LineCounter<'a> {
    bytes: &'a [u8],
    /// Offset counted so far, and its line.
    offset: usize,
    line: usize,
}

impl LineCounter<'_> {
    /// The line of a row; rows must be passed in file order.
    fn at(&mut self, position: Option<&Position>) -> usize {
        let start = position.and_then(|position| usize::try_from(position.byte()).ok()).unwrap_or(self.offset);
        let rest = self.bytes.get(start..).unwrap_or_default();
        let start = start + rest.iter().take_while(|byte| b"\r\n".contains(byte)).count();
        let passed = self.bytes.get(self.offset..start).unwrap_or_default();
        self.line += passed.iter().filter(|byte| **byte == b'\n').count();
        self.offset = start.max(self.offset);
        self.line
    }
}

fn column(header: &StringRecord, names: &[&str]) -> Option<usize> {
    header.iter().position(|found| names.iter().any(|name| found.trim().eq_ignore_ascii_case(name)))
}

fn no_column(name: &str, path: &Path) -> String {
    line_error(path, 1, &format!("has no column `{name}`; add a header line such as `text,label`"))
}

fn csv_error(error: &::csv::Error, lines: &mut LineCounter<'_>, path: &Path) -> String {
    let line = lines.at(error.position());
    match error.kind() {
        ErrorKind::Utf8 { .. } => line_error(path, line, "is not UTF-8 text"),
        ErrorKind::UnequalLengths { expected_len, len, .. } => {
            let what = format!(
                "has {len} columns, but the header has {expected_len}; quote texts that contain commas or \
                    quotes"
            );
            line_error(path, line, &what)
        }
        _ => line_error(path, line, &format!("is invalid: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(table: &str) -> Result<Vec<(String, Option<String>, usize)>, String> {
        let texts = read(table.as_bytes(), Path::new("t.csv"))?;
        Ok(texts.into_iter().map(|LabelledText { text, label, line }| (text, label, line)).collect())
    }

    #[test]
    fn columns_may_be_in_any_order_and_among_others() {
        let found =
            texts("\u{feff}id, Category ,TEXT\r\n1,a,\"one, two\"\r\n2,,\"three\nfour\"\r\n\r\n3,b,five\r\n").unwrap();
        let expected = [("one, two", Some("a"), 2), ("three\nfour", None, 3), ("five", Some("b"), 6)];
        let expected: Vec<_> =
            expected.into_iter().map(|(text, label, line)| (text.into(), label.map(String::from), line)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn every_mistake_has_its_line_and_a_way_out() {
        let check = |table: &str, expected: &str| assert_eq!(texts(table).unwrap_err(), expected);
        check("", "t.csv:1: has no column `text`; add a header line such as `text,label`");
        check("text;label\na;b\n", "t.csv:1: has no column `text`; add a header line such as `text,label`");
        check("text,lable\na,b\n", "t.csv:1: has no column `label`; add a header line such as `text,label`");
        check(
            "text,label\na,b\nc,d,e\n",
            "t.csv:3: has 3 columns, but the header has 2; quote texts that contain commas or quotes",
        );
        let open = format!("text,label\n\"a,b\n{}", "c,d\n".repeat(MAX_LINE_BYTES / 4));
        assert!(texts(&open).unwrap_err().starts_with("t.csv:2: "), "a quote that is never closed");
        let bytes: &[u8] = b"text,label\na,b\n\xff\xfe,d\n";
        assert_eq!(read(bytes, Path::new("t.csv")).unwrap_err(), "t.csv:3: is not UTF-8 text");
    }
}

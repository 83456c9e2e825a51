//! Reads labelled texts from JSON Lines or CSV with a header.

mod csv;

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use serde::Deserialize;

/// One text and its category; `None` means out of scope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelledText {
    pub text: String,
    pub label: Option<String>,
    /// Line number in its file, from 1.
    pub line: usize,
}

#[derive(Deserialize)]
struct DatasetLine {
    text: String,
    #[serde(default, alias = "category", alias = "class")]
    label: Option<String>,
}

/// Maximum line length; longer lines are an error.
const MAX_LINE_BYTES: usize = 1 << 20;
/// Maximum number of lines; more are an error.
const MAX_LINES: usize = 1_000_000;
/// Maximum file size; larger files are an error.
const MAX_FILE_BYTES: u64 = 256 << 20;

/// Reads a file, as CSV if its name ends with `.csv`, otherwise as JSON Lines. Stops at the first error.
pub fn read(path: &Path) -> Result<Vec<LabelledText>, String> {
    let file = File::open(path).map_err(|error| unreadable(path, &error))?;
    let file = SizeLimitedReader { file, remaining: MAX_FILE_BYTES };
    let is_table = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("csv"));
    if is_table { csv::read(file, path) } else { read_lines(BufReader::new(file), path) }
}

fn read_lines(mut file: impl BufRead, path: &Path) -> Result<Vec<LabelledText>, String> {
    let mut texts = Vec::new();
    let mut bytes = Vec::new();
    for line in 1.. {
        bytes.clear();
        let piece = file.by_ref().take(MAX_LINE_BYTES as u64 + 1).read_until(b'\n', &mut bytes);
        if piece.map_err(|error| unreadable(path, &error))? == 0 {
            break;
        }
        let mistake = |what: &str| line_error(path, line, what);
        if bytes.len() > MAX_LINE_BYTES {
            return Err(mistake("is longer than 1 MiB"));
        }
        if line > MAX_LINES {
            return Err(mistake(TOO_MANY_LINES));
        }
        let json = if line == 1 { bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&bytes) } else { &bytes };
        if json.trim_ascii().is_empty() {
            continue;
        }
        let DatasetLine { text, label } = serde_json::from_slice(json)
            .map_err(|error| mistake(&format!("is not {{\"text\": …, \"label\": …}}: {error}")))?;
        texts.push(LabelledText { text, label, line });
    }
    Ok(texts)
}

const TOO_MANY_LINES: &str = "is past the limit of 1,000,000 lines";
/// UTF-8 byte order mark, which some editors write at the start of a file.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

fn unreadable(path: &Path, error: &std::io::Error) -> String {
    format!("cannot read `{}`: {error}", path.display())
}

fn line_error(path: &Path, line: usize, what: &str) -> String {
    format!("{}:{line}: {what}", path.display())
}

/// A reader that fails once the size limit is exceeded; a pipe does not report its size in advance.
struct SizeLimitedReader<R> {
    file: R,
    remaining: u64,
}

impl<R: Read> Read for SizeLimitedReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.file.read(buffer)?;
        let too_large = || std::io::Error::other(format!("larger than {} MiB", MAX_FILE_BYTES >> 20));
        self.remaining = self.remaining.checked_sub(read as u64).ok_or_else(too_large)?;
        Ok(read)
    }
}

/// The labels in order of first occurrence, each with its texts: the categories of a taxonomy.
pub fn examples_by_label(texts: &[LabelledText]) -> Vec<(&str, Vec<&str>)> {
    let mut indices: HashMap<&str, usize> = HashMap::new();
    let mut categories: Vec<(&str, Vec<&str>)> = Vec::new();
    for LabelledText { text, label, .. } in texts {
        let (Some(label), false) = (label.as_deref(), text.trim().is_empty()) else { continue };
        let index = *indices.entry(label).or_insert(categories.len());
        if index == categories.len() {
            categories.push((label, Vec::new()));
        }
        categories[index].1.push(text);
    }
    categories
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(content: &str) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), content).unwrap();
        file
    }

    #[test]
    fn labels_may_be_absent_or_null_and_empty_lines_do_not_count() {
        let file = write("{\"text\":\"a\",\"label\":\"x\"}\n\n{\"text\":\"b\",\"label\":null}\n{\"text\":\"c\"}");
        let texts = read(file.path()).unwrap();
        let found: Vec<(&str, Option<&str>, usize)> =
            texts.iter().map(|text| (text.text.as_str(), text.label.as_deref(), text.line)).collect();
        assert_eq!(found, [("a", Some("x"), 1), ("b", None, 3), ("c", None, 4)]);
    }

    #[test]
    fn a_mistake_is_told_with_its_line() {
        let file = write("{\"text\":\"a\"}\nnonsense\n");
        assert!(read(file.path()).unwrap_err().contains(":2: is not"));
        assert!(read(Path::new("/no/such/file")).unwrap_err().contains("/no/such/file"));
    }

    #[test]
    fn categories_come_in_the_order_of_their_first_text() {
        let labelled = |text: &str, label: &str| LabelledText { text: text.into(), label: Some(label.into()), line: 1 };
        let texts = [labelled("1", "b"), labelled("2", "a"), labelled("3", "b")];
        assert_eq!(examples_by_label(&texts), [("b", vec!["1", "3"]), ("a", vec!["2"])]);
    }

    #[test]
    fn a_mark_of_the_byte_order_is_no_part_of_the_first_line() {
        let file = write("\u{feff}{\"text\":\"a\"}\n");
        assert_eq!(read(file.path()).unwrap()[0].text, "a");
    }

    #[test]
    fn a_file_that_is_too_large_is_refused_while_it_is_read() {
        let endless = SizeLimitedReader { file: std::io::repeat(b'\n'), remaining: 1000 };
        let error = read_lines(BufReader::new(endless), Path::new("endless")).unwrap_err();
        assert_eq!(error, "cannot read `endless`: larger than 256 MiB");
    }
}

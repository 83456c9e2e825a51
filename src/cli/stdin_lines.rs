//! Reads texts from stdin, one per line.

use std::io::{BufRead, Read};

/// Byte limit of a batch, so that memory holds one of the longest lines and not 64.
const MAX_BATCH_BYTES: usize = 1024 * 1024;
/// Maximum line length; longer lines are an error. The line ending, `\n` or `\r\n`, does not count.
const MAX_LINE_BYTES: usize = 16 * 1024 * 1024;

/// Lines of stdin, in bounded batches.
pub(super) struct StdinLines<R> {
    stdin: R,
    read: usize,
}

impl<R: BufRead> StdinLines<R> {
    pub(super) fn of(stdin: R) -> StdinLines<R> {
        StdinLines { stdin, read: 0 }
    }

    /// Number of lines read.
    pub(super) fn read(&self) -> usize {
        self.read
    }

    /// Up to `most` lines; empty at the end of input.
    pub(super) fn next(&mut self, most: usize) -> std::io::Result<Vec<String>> {
        let mut texts = Vec::new();
        let mut bytes = 0;
        while texts.len() < most && bytes <= MAX_BATCH_BYTES {
            let mut line = Vec::new();
            if self.stdin.by_ref().take(MAX_LINE_BYTES as u64 + 2).read_until(b'\n', &mut line)? == 0 {
                break;
            }
            bytes += line.len();
            let end = if line.ends_with(b"\r\n") { 2 } else { usize::from(line.ends_with(b"\n")) };
            let number = self.read + texts.len() + 1;
            let bad = |why: &str| std::io::Error::new(std::io::ErrorKind::InvalidData, format!("line {number} {why}"));
            if line.len() - end > MAX_LINE_BYTES {
                return Err(bad("is longer than 16 MB; split it into shorter texts"));
            }
            let text = String::from_utf8(line).map_err(|_| bad("is not valid UTF-8; write one UTF-8 text per line"))?;
            texts.push(text.trim_end_matches(['\n', '\r']).to_owned());
        }
        self.read += texts.len();
        Ok(texts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(stdin: &str) -> std::io::Result<Vec<usize>> {
        let mut lines = StdinLines::of(stdin.as_bytes());
        let mut groups = Vec::new();
        loop {
            match lines.next(64)?.len() {
                0 => return Ok(groups),
                count => groups.push(count),
            }
        }
    }

    #[test]
    fn line_limit_excludes_the_line_ending() {
        let longest = "a".repeat(MAX_LINE_BYTES);
        for end in ["", "\n", "\r\n"] {
            assert_eq!(groups(&format!("{longest}{end}")).unwrap(), [1], "{end:?}");
            let error = groups(&format!("one\n{longest}a{end}")).unwrap_err();
            assert_eq!(error.to_string(), "line 2 is longer than 16 MB; split it into shorter texts", "{end:?}");
        }
    }

    #[test]
    fn batches_are_bounded_in_bytes() {
        let long = "a".repeat(MAX_BATCH_BYTES / 2);
        assert_eq!(groups(&[long.as_str(); 5].join("\n")).unwrap(), [2, 2, 1]);
        assert_eq!(groups(&"short\n".repeat(65)).unwrap(), [64, 1]);
    }
}

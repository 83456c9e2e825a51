//! Tesseract as an optional OCR engine: an external process for each image.

use std::io;
use std::process::{Output, Stdio};

use corbie_extract::Block;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::Child;
use tokio::time::timeout;

use super::message::OcrResult;
use super::ocr_text::OcrText;
use super::process::kill_group;
use corbie_config::ocr::Ocr;

/// Maximum output in bytes, far more than the words of a page.
const MAX_OUTPUT_BYTES: u64 = 16 << 20;
/// Requests a table of words. The configuration file for it (`tsv`) is not in every folder of languages.
const TSV_OPTION: &str = "tessedit_create_tsv=1";
/// Environment variables that Tesseract needs to find its files.
const PASSED_VARIABLES: [&str; 3] = ["PATH", "TESSDATA_PREFIX", "LD_LIBRARY_PATH"];

/// Recognizes text in an 8-bit grayscale image.
pub(super) async fn recognize(settings: &Ocr, width: u32, height: u32, gray: &[u8]) -> OcrResult {
    let limit = settings.page_timeout.get();
    let head = format!("P5 {width} {height} 255\n");
    let output = match timeout(limit, run(settings, head.as_bytes(), gray)).await {
        Ok(Ok(output)) => output,
        Ok(Err(error)) if error.kind() == io::ErrorKind::NotFound => return Err("Tesseract not found".into()),
        Ok(Err(error)) => return Err(format!("Cannot run Tesseract: {error}")),
        Err(_) => return Err(format!("Tesseract timed out after {limit:?}; increase `ocr.page_timeout`")),
    };
    if !output.status.success() {
        return Err(format!("Tesseract failed: {}", error_summary(&output.stderr)));
    }
    Ok(parse_tsv(&String::from_utf8_lossy(&output.stdout)))
}

async fn run(settings: &Ocr, head: &[u8], gray: &[u8]) -> io::Result<Output> {
    let mut command = settings.tesseract.command(std::env::var_os("PATH").as_deref())?;
    // With page orientation detection (`--psm 1`), and a table of words as output.
    command.args(["stdin", "stdout", "-l", &settings.language, "--psm", "1", "--dpi", "200", "-c", TSV_OPTION]);
    command.env_clear().envs(PASSED_VARIABLES.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
    // Threads of Tesseract cost more in synchronization than they gain.
    command.env("OMP_THREAD_LIMIT", "1").process_group(0).kill_on_drop(true);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let _all = ProcessGroup(child.id());
    let stdin = child.stdin.take();
    let give = async {
        if let Some(mut stdin) = stdin {
            // A program that fails to start does not read stdin, and reports the error on stderr.
            let _ = stdin.write_all(head).await;
            let _ = stdin.write_all(gray).await;
        }
    };
    let ((), output) = tokio::join!(give, read_output(child));
    output
}

async fn read_output(mut child: Child) -> io::Result<Output> {
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let (out, err) = out.zip(err).ok_or(io::ErrorKind::BrokenPipe)?;
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let (mut out, mut err) = (out.take(MAX_OUTPUT_BYTES), err.take(MAX_OUTPUT_BYTES));
    tokio::try_join!(out.read_to_end(&mut stdout), err.read_to_end(&mut stderr))?;
    // Closing the pipes ends a program with more output.
    drop((out, err));
    let status = child.wait().await?;
    Ok(Output { status, stdout, stderr })
}

/// Kills the process group on drop: the program may be a script that starts Tesseract.
struct ProcessGroup(Option<u32>);

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        kill_group(self.0);
    }
}

/// The error message of the program, in one line.
fn error_summary(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let complaint: String = lines.take(3).collect::<Vec<_>>().join("; ").chars().take(300).collect();
    if complaint.is_empty() { "no error message".into() } else { complaint }
}

/// The words of the table by paragraph.
fn parse_tsv(table: &str) -> OcrText {
    let mut paragraphs: Vec<(LinePosition, String)> = Vec::new();
    let (mut sure, mut letters) = (0.0, 0.0);
    for word in table.lines().filter_map(TsvWord::of) {
        let weight = word.text.chars().count() as f32;
        sure += word.confidence * weight;
        letters += weight;
        match paragraphs.last_mut() {
            Some((place, text)) if place.paragraph == word.position.paragraph => {
                append_word(text, word.text, place.line != word.position.line);
                *place = word.position;
            }
            _ => paragraphs.push((word.position, word.text.to_owned())),
        }
    }
    let blocks = paragraphs.into_iter().map(|(_, text)| Block::paragraph(text)).collect();
    let confidence = if letters > 0.0 { sure / letters / 100.0 } else { 0.0 };
    OcrText { blocks, confidence, ..OcrText::default() }
}

/// Joins a word that is hyphenated at the end of a line.
fn append_word(text: &mut String, word: &str, is_new_line: bool) {
    let divided = text.strip_suffix('-').filter(|rest| rest.ends_with(char::is_alphabetic));
    match divided {
        Some(rest) if is_new_line && word.starts_with(char::is_lowercase) => text.truncate(rest.len()),
        _ => text.push(' '),
    }
    text.push_str(word);
}

/// A row of the table with a word.
struct TsvWord<'t> {
    position: LinePosition,
    confidence: f32,
    text: &'t str,
}

struct LinePosition {
    paragraph: (u32, u32, u32),
    line: u32,
}

/// Level of word rows; other rows are the page, blocks, paragraphs and lines.
const WORD_LEVEL: &str = "5";

impl TsvWord<'_> {
    /// Columns: level, page, block, paragraph, line, word, left, top, width, height, confidence, text.
    fn of(row: &str) -> Option<TsvWord<'_>> {
        let mut cells = row.splitn(12, '\t');
        if cells.next() != Some(WORD_LEVEL) {
            return None;
        }
        let mut number = || cells.next()?.parse::<u32>().ok();
        let paragraph = (number()?, number()?, number()?);
        let place = LinePosition { paragraph, line: number()? };
        let confidence = cells.nth(5)?.parse().ok()?;
        let text = cells.next()?.trim();
        (!text.is_empty()).then_some(TsvWord { position: place, confidence, text })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_in_paragraphs_and_divided_ones_are_joined() {
        let table = "level\tpage_num\tblock_num\tpar_num\tline_num\tword_num\tleft\ttop\twidth\theight\tconf\ttext\n\
            1\t1\t0\t0\t0\t0\t0\t0\t900\t420\t-1\t\n\
            5\t1\t1\t1\t1\t1\t80\t60\t60\t20\t90.0\tA\n\
            5\t1\t1\t1\t1\t2\t80\t60\t60\t20\t90.0\tdivi-\n\
            5\t1\t1\t1\t2\t1\t80\t90\t60\t20\t90.0\tded\n\
            5\t1\t1\t1\t2\t2\t80\t90\t60\t20\t90.0\tword\n\
            5\t1\t1\t2\t1\t1\t80\t90\t60\t20\t50.0\tSecond-\n\
            5\t1\t1\t2\t2\t1\t80\t90\t60\t20\t50.0\tHand\n\
            5\t1\t1\t2\t2\t2\t80\t90\t60\t20\t95\t \n";
        let words = parse_tsv(table);
        let texts: Vec<&str> = words.blocks.iter().map(|block| block.text.as_str()).collect();
        assert_eq!(texts, ["A divided word", "Second- Hand"]);
        assert!((words.confidence - 0.70).abs() < 0.02, "{}", words.confidence);
    }

    #[test]
    fn rows_that_are_no_words_are_passed_over() {
        assert_eq!(parse_tsv("").blocks, []);
        assert_eq!(parse_tsv("5\t1\n5\tx\t1\t1\t1\t1\t1\t1\t1\t1\t1\tword\n\u{0}").blocks, []);
    }

    #[test]
    fn a_failure_is_told_in_its_own_words() {
        assert_eq!(
            error_summary(b"Error opening data file\n\nFailed loading language 'xyz'\n"),
            "Error opening data file; Failed loading language 'xyz'"
        );
        assert_eq!(error_summary(b""), "no error message");
    }
}

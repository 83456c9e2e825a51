//! Reads the prompt from the command line, from stdin, or both.

use std::io::{IsTerminal, Read};

/// Maximum prompt size. No model accepts more, and longer input is probably a mistake.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// Why there is no valid prompt.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("no prompt; specify one, such as corbie ask \"why is the sky blue?\", or pipe it")]
    None,
    #[error("the prompt is empty; specify one, such as corbie ask \"why is the sky blue?\"")]
    Empty,
    #[error("the prompt on stdin is larger than 4 MB; shorten it")]
    TooLong,
    #[error("the prompt on stdin is not valid UTF-8; convert it to UTF-8")]
    NotText,
    #[error("stdin cannot be read: {0}")]
    Unreadable(std::io::Error),
}

impl Error {
    /// Whether the prompt is missing, which is a usage error, rather than invalid.
    pub(super) fn is_wrong_usage(&self) -> bool {
        matches!(self, Error::None | Error::Empty)
    }
}

/// Joins the words. Without words, stdin is the prompt; if the last word is `-`, stdin follows the words.
pub(super) fn read_prompt(words: &[String], stdin: impl Read + IsTerminal) -> Result<String, Error> {
    let prompt = match words {
        [] if stdin.is_terminal() => return Err(Error::None),
        [] => read_stdin(stdin)?,
        [words @ .., last] if last == "-" => [words.join(" "), read_stdin(stdin)?].join("\n\n").trim_start().to_owned(),
        words => words.join(" "),
    };
    if prompt.trim().is_empty() { Err(Error::Empty) } else { Ok(prompt) }
}

fn read_stdin(stdin: impl Read) -> Result<String, Error> {
    let mut bytes = Vec::new();
    stdin.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(Error::Unreadable)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(Error::TooLong);
    }
    let text = String::from_utf8(bytes).map_err(|_| Error::NotText)?;
    Ok(text.trim_end().to_owned())
}

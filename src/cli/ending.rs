//! How a command ends: what is told of a failure, and the exit code.

use std::io::{ErrorKind, Write};
use std::process::ExitCode;

use serde_json::{Value, json};

use super::knowledge::failure::Failure;
use super::tools::UnknownTool;
use super::{End, screen};
use crate::access::TokenFileError;
use crate::config::ConfigError;
use crate::harmless::harmless;
use crate::knowledge::store;
use crate::route;

/// The command line or the settings are wrong, and nothing was begun. The parser of the command line uses it too.
const WRONG: u8 = 2;
/// What shells take for "interrupted".
pub(super) const INTERRUPTED: u8 = 130;
/// What shells take for "terminated".
pub(super) const TERMINATED: u8 = 143;

/// For the long help and the man page. `docs/exit-codes.md` says more.
pub(super) const EXIT_CODES: &str = "\
Exit codes:
  0    done; also when whoever read the output has seen enough
  1    it failed, or it found what it looks for: mistakes, damage, a provider that does not answer
  2    the command line or the settings are wrong, and nothing was begun
  130  interrupted with Ctrl-C
  143  ended by SIGTERM";

/// Settings with mistakes.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(super) struct WrongSettings(#[from] pub(super) ConfigError);

/// What is wrong with the command line, where only the command itself can tell.
#[derive(Debug, thiserror::Error)]
pub(super) enum WrongUsage {
    /// A value is missing, or cannot be one.
    #[error("{0}")]
    Value(String),
    /// Something is in a place where it means nothing.
    #[error("{0}")]
    Line(String),
}

impl WrongUsage {
    /// A word that stays the same, for programs.
    fn word(&self) -> &'static str {
        match self {
            WrongUsage::Value(_) => INVALID_VALUE,
            WrongUsage::Line(_) => INVALID_LINE,
        }
    }
}

pub(super) const INVALID_VALUE: &str = "invalid_parameter";
pub(super) const INVALID_LINE: &str = "invalid_command_line";

/// Tells what went wrong and gives the exit code: to people on stderr, to programs (`json`) in one line on stdout.
pub(super) fn tell(end: End, json: bool) -> ExitCode {
    let error = match end {
        Ok(code) => return code,
        Err(error) => error,
    };
    // Whoever read our output has seen enough: `corbie config show | head` is no failure.
    if is_broken_pipe(&*error) {
        return ExitCode::SUCCESS;
    }
    // Nobody can be told that nobody can be told.
    let _ = match json {
        true => writeln!(screen::stdout(), "{}", reply(&*error)),
        // stdout belongs to the protocol. What an error names, such as a file, may be called anything.
        false => writeln!(std::io::stderr(), "corbie: {}", harmless(&in_commands(&*error))),
    };
    if is_wrong(&*error) { ExitCode::from(WRONG) } else { ExitCode::FAILURE }
}

/// Whether nothing was begun, as what was typed or set is wrong.
fn is_wrong(error: &(dyn std::error::Error + 'static)) -> bool {
    let refused = error.downcast_ref::<Failure>().is_some_and(Failure::is_wrong_usage);
    refused || error.is::<WrongSettings>() || error.is::<WrongUsage>()
}

/// For programs, the failure of any command is one object, as a tool would put it.
fn reply(error: &(dyn std::error::Error + 'static)) -> Value {
    match error.downcast_ref::<Failure>() {
        Some(failure) => failure.reply(),
        None => failed(word(error), &in_commands(error)),
    }
}

/// The object that programs read.
pub(super) fn failed(word: &str, message: &str) -> Value {
    json!({ "success": false, "error": word, "message": message })
}

/// What a client would ask the server for, a person types.
pub(super) fn in_commands(error: &dyn std::error::Error) -> String {
    error.to_string().replace("`models/list` and `GET /v1/models` show", "`corbie providers --models` shows")
}

/// A word that stays the same.
fn word<'e>(error: &'e (dyn std::error::Error + 'static)) -> &'e str {
    if let Some(error) = error.downcast_ref::<store::Error>() {
        return error.kind();
    }
    if let Some(error) = error.downcast_ref::<route::Error>() {
        return error.kind();
    }
    match error.downcast_ref::<TokenFileError>() {
        Some(TokenFileError::Unknown(_)) => return "token_not_found",
        Some(TokenFileError::Exists(_)) => return "token_exists",
        _ => {}
    }
    if let Some(wrong) = error.downcast_ref::<WrongUsage>() {
        wrong.word()
    } else if error.is::<WrongSettings>() {
        "invalid_settings"
    } else if error.is::<UnknownTool>() {
        "tool_not_found"
    } else {
        "failed"
    }
}

fn is_broken_pipe(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if error.downcast_ref::<std::io::Error>().is_some_and(|error| error.kind() == ErrorKind::BrokenPipe) {
            return true;
        }
        cause = error.source();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_who_has_gone_is_found_behind_other_errors() {
        let gone = || std::io::Error::from(ErrorKind::BrokenPipe);
        assert!(is_broken_pipe(&gone()));
        assert!(is_broken_pipe(&super::super::config::Error::Output(gone())));
        assert!(!is_broken_pipe(&std::io::Error::from(ErrorKind::NotFound)));
    }

    #[test]
    fn programs_read_a_failure_as_one_object() {
        let replied = |error: Box<dyn std::error::Error>| reply(&*error);
        let busy = replied(store::Error::Busy.into());
        assert_eq!((&busy["success"], &busy["error"]), (&json!(false), &json!("storage_busy")));
        assert_eq!(replied("odd".into()), json!({ "success": false, "error": "failed", "message": "odd" }));
        assert_eq!(replied(route::Error::NoProvider.into())["error"], "no_provider");
        let tool = json!({ "success": false, "error": "x", "message": "y", "z": 1 });
        assert_eq!(replied(Failure::Tool(tool.clone()).into()), tool);
    }
}

//! Error output and exit code of a command.

use std::io::{ErrorKind, Write};
use std::process::ExitCode;

use serde_json::{Value, json};

use super::ask::ServerError;
use super::knowledge::error::KnowledgeError;
use super::tools::UnknownTool;
use super::{CommandResult, json_output, sanitized_stdout};
use crate::access::TokenFileError;
use crate::config::ConfigError;
use crate::knowledge::store;
use crate::route;
use crate::util::os_error::plain_message;
use crate::util::sanitize::sanitize;

/// Usage or configuration error; no work was started. clap uses the same code.
const USAGE_ERROR: u8 = 2;
/// Exit status after SIGINT, by shell convention.
pub(super) const INTERRUPTED: u8 = 130;
/// Exit status after SIGTERM, by shell convention.
pub(super) const TERMINATED: u8 = 143;

/// For the long help and the man page. Details are in `docs/exit-codes.md`.
pub(super) const EXIT_CODES: &str = "\
Exit codes:
  0    success; also when the reader of the output closes the pipe
  1    failure, or a check that found errors, damage or an unavailable provider
  2    invalid command line or settings; nothing was started
  130  interrupted with Ctrl-C
  143  terminated by SIGTERM";

/// Invalid settings.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(super) struct InvalidSettings(#[from] pub(super) ConfigError);

/// A usage error that only the command itself can detect.
#[derive(Debug, thiserror::Error)]
pub(super) enum UsageError {
    /// A missing or invalid value.
    #[error("{0}")]
    Value(String),
    /// An argument that is not allowed in this combination.
    #[error("{0}")]
    Line(String),
}

impl UsageError {
    /// Stable error code for programs.
    fn word(&self) -> &'static str {
        match self {
            UsageError::Value(_) => INVALID_VALUE,
            UsageError::Line(_) => INVALID_COMMAND_LINE,
        }
    }
}

pub(super) const INVALID_VALUE: &str = "invalid_parameter";
pub(super) const INVALID_COMMAND_LINE: &str = "invalid_command_line";

/// Reports an error, on stderr or with `json` as one line on stdout, and returns the exit code.
pub(super) fn report(end: CommandResult, json: bool) -> ExitCode {
    let error = match end {
        Ok(code) => return code,
        Err(error) => error,
    };
    // The reader closed the pipe: `corbie config show | head` is not a failure.
    if is_broken_pipe(&*error) {
        return ExitCode::SUCCESS;
    }
    // A failed write cannot be reported.
    let _ = match json {
        true => json_output::write(&reply(&*error), &mut *sanitized_stdout::stdout()),
        // Not on stdout, which carries the protocol. Sanitized, because an error may contain arbitrary file names.
        false => writeln!(std::io::stderr(), "corbie: {}", sanitize(&with_cli_commands(&*error))),
    };
    if is_usage_error(&*error) { ExitCode::from(USAGE_ERROR) } else { ExitCode::FAILURE }
}

/// Whether the cause is a usage or configuration error, so that no work was started.
fn is_usage_error(error: &(dyn std::error::Error + 'static)) -> bool {
    let refused = error.downcast_ref::<KnowledgeError>().is_some_and(KnowledgeError::is_wrong_usage);
    refused || error.is::<InvalidSettings>() || error.is::<UsageError>()
}

/// The error as a JSON object, in the format of tool errors.
fn reply(error: &(dyn std::error::Error + 'static)) -> Value {
    match error.downcast_ref::<KnowledgeError>() {
        Some(failure) => failure.reply(),
        None => error_object(error_word(error), &with_cli_commands(error)),
    }
}

/// JSON object of an error.
pub(super) fn error_object(word: &str, message: &str) -> Value {
    json!({ "success": false, "error": word, "message": message })
}

/// The message of an error, with the equivalent command instead of protocol methods, and without error numbers.
pub(super) fn with_cli_commands(error: &dyn std::error::Error) -> String {
    plain_message(&error.to_string()).replace("`models/list` or `GET /v1/models`", "`corbie providers --models`")
}

/// Stable error code.
fn error_word<'e>(error: &'e (dyn std::error::Error + 'static)) -> &'e str {
    if let Some(error) = error.downcast_ref::<store::Error>() {
        return error.kind();
    }
    if let Some(error) = error.downcast_ref::<route::Error>() {
        return error.kind();
    }
    if let Some(error) = error.downcast_ref::<ServerError>() {
        return &error.code;
    }
    match error.downcast_ref::<TokenFileError>() {
        Some(TokenFileError::Unknown(_)) => return "token_not_found",
        Some(TokenFileError::Exists(_)) => return "token_exists",
        _ => {}
    }
    if let Some(wrong) = error.downcast_ref::<UsageError>() {
        wrong.word()
    } else if error.is::<InvalidSettings>() {
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
    fn broken_pipe_is_found_behind_other_errors() {
        let gone = || std::io::Error::from(ErrorKind::BrokenPipe);
        assert!(is_broken_pipe(&gone()));
        assert!(is_broken_pipe(&super::super::config::Error::Output(gone())));
        assert!(!is_broken_pipe(&std::io::Error::from(ErrorKind::NotFound)));
    }

    #[test]
    fn failure_is_one_json_object() {
        let replied = |error: Box<dyn std::error::Error>| reply(&*error);
        let busy = replied(store::Error::Busy.into());
        assert_eq!((&busy["success"], &busy["error"]), (&json!(false), &json!("storage_busy")));
        assert_eq!(replied("odd".into()), json!({ "success": false, "error": "failed", "message": "odd" }));
        assert_eq!(replied(route::Error::NoProvider.into())["error"], "no_provider");
        let tool = json!({ "success": false, "error": "x", "message": "y", "z": 1 });
        assert_eq!(replied(KnowledgeError::Tool(tool.clone()).into()), tool);
    }
}

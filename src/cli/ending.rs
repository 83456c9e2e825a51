//! How a command ends: what is told of a failure, and the exit code.

use std::io::{ErrorKind, Write};
use std::process::ExitCode;

use super::knowledge::failure;
use super::{End, screen};
use crate::config::ConfigError;
use crate::harmless::harmless;

/// The command line or the settings are wrong, and nothing was begun. The parser of the command line uses it too.
const WRONG: u8 = 2;
/// What shells take for "interrupted".
pub(super) const INTERRUPTED: u8 = 130;

/// For the long help and the man page. `docs/exit-codes.md` says more.
pub(super) const EXIT_CODES: &str = "\
Exit codes:
  0    done; also when whoever read the output has seen enough
  1    it failed, or it found what it looks for: mistakes, damage, a provider that does not answer
  2    the command line or the settings are wrong, and nothing was begun
  130  interrupted with Ctrl-C";

/// Settings with mistakes.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(super) struct WrongSettings(#[from] pub(super) ConfigError);

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
        true => writeln!(screen::stdout(), "{}", failure::reply(&*error)),
        // stdout belongs to the protocol. What an error names, such as a file, may be called anything.
        false => writeln!(std::io::stderr(), "corbie: {}", harmless(&error.to_string())),
    };
    if error.is::<WrongSettings>() { ExitCode::from(WRONG) } else { ExitCode::FAILURE }
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
}

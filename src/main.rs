//! Parses the command line, runs one command, and turns its end into an exit code.

use std::io::{ErrorKind, Write};
use std::process::ExitCode;

use clap::Parser;
use corbie::audit_file;
use corbie::cli::{self, Cli};
use corbie::harmless::harmless;

/// Keeps the memory of large messages instead of handing it back to the system after each one: with the system's
/// allocator, half the time of a 1 MB call over HTTP went into page faults. It also makes small calls cheaper.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let ended = cli::run(Cli::parse());
    audit_file::finish_all();
    match ended {
        Ok(code) => code,
        // Whoever read our output has seen enough: `corbie config show | head` is no failure.
        Err(error) if is_broken_pipe(&*error) => ExitCode::SUCCESS,
        Err(error) => {
            // stdout belongs to the protocol; every failure speaks on stderr.
            // What it names, such as a file, may be called anything.
            let _ = writeln!(std::io::stderr(), "corbie: {}", harmless(&error.to_string()));
            ExitCode::FAILURE
        }
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

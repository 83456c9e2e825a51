//! Endurance tests: chaos and load runs of any length that check the reliability guarantees of corbie.
//!
//! See `tests/soak/run chaos --help` and `tests/soak/run load --help` for usage.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for a terminal")]
#![allow(clippy::disallowed_methods, reason = "threads of its own, and no runtime")]

mod atomic_write;
mod call_outcome;
mod chaos;
mod http;
mod load;
mod program;
mod protocols;
mod server;
mod system_commands;
mod upstream;

use corbie_test_support::seeded_rng as rng;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use serde_json::Value;

use program::Binaries;

#[derive(Debug, Parser)]
#[command(name = "tests/soak/run", about = "Tries to break corbie, and looks whether it kept its promises")]
struct Options {
    #[command(subcommand)]
    mode: Mode,
    #[command(flatten)]
    binaries: Binaries,
    /// Print the result on one line
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Mode {
    /// Clients of every kind use the server while faults are injected; no acknowledged write may be lost
    Chaos(chaos::Options),
    /// A thousand clients send twice the sustainable load; requests that are not admitted get an error
    Load(load::Options),
}

/// Result of a run.
#[derive(Debug)]
struct RunResult {
    report: Value,
    passed: usize,
    failures: Vec<String>,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let ended = match &options.mode {
        Mode::Chaos(chaos) => chaos::run(chaos, &options.binaries),
        Mode::Load(load) => load::run(load, &options.binaries),
    };
    let RunResult { report: told, passed, failures } = match ended {
        Ok(ended) => ended,
        Err(error) => RunResult { report: Value::Null, passed: 0, failures: vec![error] },
    };
    match options.json {
        true => println!("{told}"),
        false => println!("{told:#}"),
    }
    for failure in &failures {
        eprintln!("FAILED with {failure}");
    }
    println!("{passed} passed, {} failed", failures.len());
    if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

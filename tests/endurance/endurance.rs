//! Endurance tests: chaos and load runs of any length that check the reliability guarantees of corbie.
//!
//! See `tests/chaos --help` and `tests/load --help` for usage.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for a terminal")]
#![allow(clippy::disallowed_methods, reason = "threads of its own, and no runtime")]

mod chance;
mod chaos;
mod commands;
mod faces;
mod files;
mod http;
mod load;
mod outcome;
mod program;
mod server;
mod upstream;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use serde_json::Value;

use program::Binaries;

#[derive(Debug, Parser)]
#[command(name = "tests/endurance/run", about = "Tries to break corbie, and looks whether it kept its promises")]
struct Options {
    #[command(subcommand)]
    what: What,
    #[command(flatten)]
    binaries: Binaries,
    /// Print the result on one line
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Clients of every kind use the server while faults are injected; no acknowledged write may be lost
    Chaos(chaos::Options),
    /// A thousand clients send twice the sustainable load; requests that are not admitted get an error
    Load(load::Options),
}

/// Result of a run.
#[derive(Debug)]
struct Ended {
    told: Value,
    passed: usize,
    failures: Vec<String>,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let ended = match &options.what {
        What::Chaos(chaos) => chaos::run(chaos, &options.binaries),
        What::Load(load) => load::run(load, &options.binaries),
    };
    let Ended { told, passed, failures } = match ended {
        Ok(ended) => ended,
        Err(error) => Ended { told: Value::Null, passed: 0, failures: vec![error] },
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

//! `corbie doctor`: runs diagnostics and prints advice for each problem.

use std::io::Write;
use std::process::ExitCode;

use clap::Args;

use super::progress::Progress;
use super::table::{Align, write_list};
use super::{CommandResult, json_output, sanitize_line};
use crate::config::Sources;
use crate::doctor::{self, Check, SetupContext, SetupReport, State};

const EXAMPLES: &str = "Examples:
  corbie doctor             # local checks only; nothing is sent to other machines
  corbie doctor --online    # also check remote providers
  corbie doctor --json

Exits with 0 if there are no problems, and with 1 otherwise.";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Doctor {
    /// Also check remote providers, which sends them their keys
    #[arg(long)]
    online: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(command: &Doctor, sources: Sources, out: &mut dyn Write) -> CommandResult {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let report = runtime.block_on(async {
        let progress = Progress::new();
        let tell = |name: &str| progress.update(&format!("checking {name} …"));
        doctor::run_checks(SetupContext::from_sources(sources, command.online), tell).await
    });
    // A hanging check must not block the exit.
    runtime.shutdown_background();
    match command.json {
        true => json_output::write(&report, out)?,
        false => write(&report, out)?,
    }
    Ok(if report.problems == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn write(report: &SetupReport, out: &mut dyn Write) -> std::io::Result<()> {
    let mut rows = Vec::new();
    for Check { name, state, message, advice } in &report.checks {
        rows.push(vec![format!("{:<7}", state_label(*state)), (*name).to_owned(), sanitize_line(message)]);
        if let Some(advice) = advice {
            rows.push(vec![String::new(), String::new(), format!("-> {}", sanitize_line(advice))]);
        }
    }
    write_list(&[Align::Left, Align::Left, Align::Wrap], &rows, out)?;
    match report.problems {
        0 => writeln!(out, "\nNo problems."),
        1 => writeln!(out, "\n1 problem."),
        problems => writeln!(out, "\n{problems} problems."),
    }
}

fn state_label(state: State) -> &'static str {
    match state {
        State::Ok => "ok",
        State::Warning => "warning",
        State::Problem => "PROBLEM",
    }
}

//! Cost of authentication, metrics and audit: the real program with and without them.
//!
//! Each variant has its own server. All run at the same time and take turns with a few hundred calls each, so that
//! noise on the machine affects all of them equally. The compared figure is the CPU time of the servers as counted by
//! the kernel, never wall-clock time.

mod auth_modes;
mod instrumentation;
mod issuer;
mod load;
mod signer;

use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use serde::Serialize;
use serde_json::json;

use crate::Args;
use crate::machine::Machine;
use crate::process::PinnedCore;
use crate::protocol::median;
use crate::report::{self, BenchReport, ResultTable};
use auth_modes::{AuthContestant, AuthFixture, AuthMode};
use instrumentation::InstrumentationCost;

/// Concurrency of the callers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
struct LoadProfile {
    connections: usize,
    /// Server and callers share one core, so that no time is spent on waking another.
    one_core: bool,
    /// Calls on each connection in one turn.
    calls: usize,
}

/// All turns of one variant.
#[derive(Debug, Serialize)]
struct AuthMeasurement {
    scene: LoadProfile,
    way: AuthMode,
    /// CPU time of the server per call, for each turn.
    cpu_us: Vec<f64>,
    /// Difference to the variant without authentication in the same turn.
    added_us: Vec<f64>,
}

/// A target and its result.
#[derive(Debug, Serialize)]
struct OverheadResult {
    what: String,
    kind: OverheadBudget,
    measured_us: f64,
}

/// Variants with a separate bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
enum OverheadBudget {
    Bearer,
    /// A signed token that was seen before.
    JwtAgain,
    /// A signed token whose signature must be verified with a cached key.
    JwtAnew,
    Seeing,
}

/// Name among the workloads of `protocol` and in the results.
pub(crate) const NAME: &str = "access";
const LOAD_PROFILES: [LoadProfile; 2] = [
    LoadProfile { connections: 1, one_core: true, calls: 320 },
    LoadProfile { connections: 32, one_core: false, calls: 10 },
];
/// Turns per requested round.
const TURNS: u32 = 12;
/// Warm-up turns.
const WARM_UP: u32 = 2;

const HOW: &str = "The real program, `corbie serve`, over HTTP with connections that stay open; every call asks \
    `get_tool_schema` for a schema. `added` is the median of the differences to `no authentication` within a turn, \
    `middle half` are the quartiles of these differences. `no authentication, once more` is the same again: its \
    difference is what this machine adds by itself. All of the server's threads count, also that which writes the \
    audit file. The library's calls are measured within one process, beside a copy of the library whose functions \
    that count and record return at once; only two readings of the clock for each call stay in it";

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    ensure!(args.servers.is_empty(), "`{NAME}` measures corbie alone; leave out `--servers`");
    ensure!(!(args.keep && args.quick), "a quick run cannot be kept");
    let effort = args.effort();
    let turns = effort.rounds * TURNS;
    let mut machine = Machine::detect();
    let most = LOAD_PROFILES.iter().map(|scene| scene.connections * scene.calls).max().unwrap_or_default();
    // One for each call, and one for the first call.
    let callers = AuthFixture::prepare(most * (turns + WARM_UP) as usize + 1)?;
    let mut cells = Vec::new();
    for (done, scene) in LOAD_PROFILES.into_iter().enumerate() {
        eprintln!("access {}/{} {}", done + 1, LOAD_PROFILES.len() + 1, scene.name());
        cells.extend(measure(scene, &callers, turns)?);
    }
    eprintln!("access {0}/{0} calls within the library", LOAD_PROFILES.len() + 1);
    let library = instrumentation::measure_instrumentation(turns)?;
    machine.update_load();

    let promises = overhead_results(&cells, library.as_ref());
    let outcome = summary(&promises);
    report::publish(
        &BenchReport {
            name: NAME,
            machine,
            about: format!("medians of {turns} turns. {HOW}"),
            tables: vec![table(&cells), instrumentation::table(library.as_ref()), results_table(&promises)],
            json: json!({ "cells": cells, "library": library, "promises": promises }),
            summary: outcome,
        },
        args.keep,
    )?;
    Ok(ExitCode::SUCCESS)
}

fn measure(scene: LoadProfile, callers: &AuthFixture, turns: u32) -> Result<Vec<AuthMeasurement>> {
    let _one_core = if scene.one_core { Some(PinnedCore::pin()?) } else { None };
    let mut contestants =
        AuthMode::ALL.map(|way| callers.start(way, scene.connections)).into_iter().collect::<Result<Vec<_>>>()?;
    let mut all: Vec<Vec<f64>> = contestants.iter().map(|_| Vec::new()).collect();
    for number in 0..turns + WARM_UP {
        let count = contestants.len();
        for turn in 0..count {
            // Each turn starts with a different server.
            let place = (turn + number as usize) % count;
            let AuthContestant { mode: way, process, load, tokens } = &mut contestants[place];
            let took = load.run_turn(process, tokens, scene.calls).with_context(|| way.name())?;
            if number >= WARM_UP {
                all[place].push(took.as_secs_f64() * 1e6 / (scene.calls * scene.connections) as f64);
            }
        }
    }
    let base = all[0].clone();
    let cells = contestants.iter().zip(all).map(|(contestant, cpu_us)| {
        let added_us = cpu_us.iter().zip(&base).map(|(own, base)| own - base).collect();
        AuthMeasurement { scene, way: contestant.mode, cpu_us, added_us }
    });
    Ok(cells.collect())
}

impl LoadProfile {
    fn name(self) -> String {
        match (self.connections, self.one_core) {
            (1, true) => "one connection on one core".to_owned(),
            (count, true) => format!("{count} connections on one core"),
            (count, false) => format!("{count} connections"),
        }
    }
}

impl AuthMeasurement {
    fn added(&self) -> f64 {
        median(self.added_us.iter().copied())
    }
}

impl OverheadBudget {
    fn max_us(self) -> f64 {
        match self {
            OverheadBudget::Bearer => 5.0,
            OverheadBudget::JwtAgain | OverheadBudget::JwtAnew => 30.0,
            OverheadBudget::Seeing => 3.0,
        }
    }

    fn name(self) -> &'static str {
        match self {
            OverheadBudget::Bearer => "a bearer token",
            OverheadBudget::JwtAgain => "a JWT that came before",
            OverheadBudget::JwtAnew => "a JWT that never came before",
            OverheadBudget::Seeing => "counting or recording",
        }
    }
}

fn overhead_results(cells: &[AuthMeasurement], library: Option<&InstrumentationCost>) -> Vec<OverheadResult> {
    let of_cells = cells.iter().filter_map(|cell| {
        let what = format!("{}, {}", cell.scene.name(), cell.way.name());
        Some(OverheadResult { what, kind: cell.way.budget()?, measured_us: cell.added() })
    });
    let of_library = library.map(|library| {
        let what = "a call within the library, metrics and audit in memory".to_owned();
        OverheadResult { what, kind: OverheadBudget::Seeing, measured_us: library.added_us() }
    });
    of_cells.chain(of_library).collect()
}

/// The worst result of each kind, in one line.
fn summary(promises: &[OverheadResult]) -> String {
    let kinds = [OverheadBudget::Bearer, OverheadBudget::JwtAgain, OverheadBudget::JwtAnew, OverheadBudget::Seeing]
        .into_iter()
        .filter_map(|kind| {
            let measured = promises.iter().filter(|promise| promise.kind == kind).map(|promise| promise.measured_us);
            let worst = measured.max_by(f64::total_cmp)?;
            Some(format!("{} adds {worst:.1} of {} µs", kind.name(), kind.max_us()))
        });
    let kept = promises.iter().filter(|promise| promise.is_met()).count();
    format!("{kept} of {} promises kept; at worst {}", promises.len(), kinds.collect::<Vec<_>>().join(", "))
}

impl OverheadResult {
    fn is_met(&self) -> bool {
        self.measured_us <= self.kind.max_us()
    }
}

fn table(cells: &[AuthMeasurement]) -> ResultTable {
    let mut table = ResultTable::new("Calls", &["callers", "who", "server CPU µs", "added µs", "middle half µs"]);
    let mut before = None;
    for cell in cells {
        // The scene name appears once, above its rows.
        let scene = if before == Some(cell.scene) { String::new() } else { cell.scene.name() };
        before = Some(cell.scene);
        let (low, high) = quartiles(&cell.added_us);
        let (added, middle) = match cell.way {
            AuthMode::Nobody => Default::default(),
            _ => (format!("{:.2}", cell.added()), format!("{low:.2} to {high:.2}")),
        };
        let cpu = report::three_digits(median(cell.cpu_us.iter().copied()));
        table.rows.push(vec![scene, cell.way.name().into(), cpu, added, middle]);
    }
    table
}

fn results_table(promises: &[OverheadResult]) -> ResultTable {
    let mut table = ResultTable::new("Promises", &["what", "adds µs", "at most µs", ""]);
    table.rows = promises
        .iter()
        .map(|promise| {
            let verdict = if promise.is_met() { "PASS" } else { "FAIL" };
            let (measured, most) = (format!("{:.2}", promise.measured_us), format!("{:.0}", promise.kind.max_us()));
            vec![promise.what.clone(), measured, most, verdict.into()]
        })
        .collect();
    table
}

/// First and third quartile.
fn quartiles(values: &[f64]) -> (f64, f64) {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    let at = |share: usize| values.get(values.len() * share / 4).copied().unwrap_or(f64::NAN);
    (at(1), at(3))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn promise(kind: OverheadBudget, measured_us: f64) -> OverheadResult {
        OverheadResult { what: "what".into(), kind, measured_us }
    }

    #[test]
    fn the_middle_half_leaves_out_both_ends() {
        assert_eq!(quartiles(&[100.0, 1.0, 3.0, 2.0, 4.0, -50.0, 5.0, 6.0]), (2.0, 6.0));
        assert!(quartiles(&[]).0.is_nan());
    }

    #[test]
    fn the_worst_of_each_kind_is_told() {
        let promises = [
            promise(OverheadBudget::Bearer, 1.0),
            promise(OverheadBudget::Bearer, 5.1),
            promise(OverheadBudget::JwtAnew, 29.9),
        ];
        let told = "2 of 3 promises kept; at worst a bearer token adds 5.1 of 5 µs, \
                    a JWT that never came before adds 29.9 of 30 µs";
        assert_eq!(summary(&promises), told);
    }
}

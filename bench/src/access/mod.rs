//! Cost of authentication, metrics and audit: the real program with and without them.
//!
//! Each variant has its own server. All run at the same time and take turns with a few hundred calls each, so that
//! noise on the machine affects all of them equally. The compared figure is the CPU time of the servers as counted by
//! the kernel, never wall-clock time.

mod callers;
mod issuer;
mod library;
mod load;
mod signer;

use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use serde::Serialize;
use serde_json::json;

use crate::Args;
use crate::machine::Machine;
use crate::process::OneCore;
use crate::protocol::median;
use crate::report::{self, Report, Table};
use callers::{Callers, Contestant, Way};
use library::Library;

/// Concurrency of the callers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
struct Scene {
    connections: usize,
    /// Server and callers share one core, so that no time is spent on waking another.
    one_core: bool,
    /// Calls on each connection in one turn.
    calls: usize,
}

/// All turns of one variant.
#[derive(Debug, Serialize)]
struct Cell {
    scene: Scene,
    way: Way,
    /// CPU time of the server per call, for each turn.
    cpu_us: Vec<f64>,
    /// Difference to the variant without authentication in the same turn.
    added_us: Vec<f64>,
}

/// A target and its result.
#[derive(Debug, Serialize)]
struct Promise {
    what: String,
    kind: Kind,
    measured_us: f64,
}

/// Variants with a separate bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
enum Kind {
    Bearer,
    /// A signed token that was seen before.
    JwtAgain,
    /// A signed token whose signature must be verified with a cached key.
    JwtAnew,
    Seeing,
}

/// Name among the workloads of `protocol` and in the results.
pub(crate) const NAME: &str = "access";
const SCENES: [Scene; 2] =
    [Scene { connections: 1, one_core: true, calls: 320 }, Scene { connections: 32, one_core: false, calls: 10 }];
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
    let mut machine = Machine::look();
    let most = SCENES.iter().map(|scene| scene.connections * scene.calls).max().unwrap_or_default();
    // One for each call, and one for the first call.
    let callers = Callers::prepare(most * (turns + WARM_UP) as usize + 1)?;
    let mut cells = Vec::new();
    for (done, scene) in SCENES.into_iter().enumerate() {
        eprintln!("access {}/{} {}", done + 1, SCENES.len() + 1, scene.name());
        cells.extend(measure(scene, &callers, turns)?);
    }
    eprintln!("access {0}/{0} calls within the library", SCENES.len() + 1);
    let library = library::measure(turns)?;
    machine.look_again();

    let promises = promises(&cells, library.as_ref());
    let outcome = outcome(&promises);
    report::publish(
        &Report {
            name: NAME,
            machine,
            about: format!("medians of {turns} turns. {HOW}"),
            tables: vec![table(&cells), library::table(library.as_ref()), promised(&promises)],
            json: json!({ "cells": cells, "library": library, "promises": promises }),
            last_line: outcome,
        },
        args.keep,
    )?;
    Ok(ExitCode::SUCCESS)
}

fn measure(scene: Scene, callers: &Callers, turns: u32) -> Result<Vec<Cell>> {
    let _one_core = if scene.one_core { Some(OneCore::keep()?) } else { None };
    let mut contestants =
        Way::ALL.map(|way| callers.start(way, scene.connections)).into_iter().collect::<Result<Vec<_>>>()?;
    let mut all: Vec<Vec<f64>> = contestants.iter().map(|_| Vec::new()).collect();
    for number in 0..turns + WARM_UP {
        let count = contestants.len();
        for turn in 0..count {
            // Each turn starts with a different server.
            let place = (turn + number as usize) % count;
            let Contestant { way, process, load, tokens } = &mut contestants[place];
            let took = load.turn(process, tokens, scene.calls).with_context(|| way.name())?;
            if number >= WARM_UP {
                all[place].push(took.as_secs_f64() * 1e6 / (scene.calls * scene.connections) as f64);
            }
        }
    }
    let base = all[0].clone();
    let cells = contestants.iter().zip(all).map(|(contestant, cpu_us)| {
        let added_us = cpu_us.iter().zip(&base).map(|(own, base)| own - base).collect();
        Cell { scene, way: contestant.way, cpu_us, added_us }
    });
    Ok(cells.collect())
}

impl Scene {
    fn name(self) -> String {
        match (self.connections, self.one_core) {
            (1, true) => "one connection on one core".to_owned(),
            (count, true) => format!("{count} connections on one core"),
            (count, false) => format!("{count} connections"),
        }
    }
}

impl Cell {
    fn added(&self) -> f64 {
        median(self.added_us.iter().copied())
    }
}

impl Kind {
    fn most_us(self) -> f64 {
        match self {
            Kind::Bearer => 5.0,
            Kind::JwtAgain | Kind::JwtAnew => 30.0,
            Kind::Seeing => 3.0,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Kind::Bearer => "a bearer token",
            Kind::JwtAgain => "a JWT that came before",
            Kind::JwtAnew => "a JWT that never came before",
            Kind::Seeing => "counting or recording",
        }
    }
}

fn promises(cells: &[Cell], library: Option<&Library>) -> Vec<Promise> {
    let of_cells = cells.iter().filter_map(|cell| {
        let what = format!("{}, {}", cell.scene.name(), cell.way.name());
        Some(Promise { what, kind: cell.way.promised()?, measured_us: cell.added() })
    });
    let of_library = library.map(|library| {
        let what = "a call within the library, metrics and audit in memory".to_owned();
        Promise { what, kind: Kind::Seeing, measured_us: library.added_us() }
    });
    of_cells.chain(of_library).collect()
}

/// The worst result of each kind, in one line.
fn outcome(promises: &[Promise]) -> String {
    let kinds = [Kind::Bearer, Kind::JwtAgain, Kind::JwtAnew, Kind::Seeing].into_iter().filter_map(|kind| {
        let measured = promises.iter().filter(|promise| promise.kind == kind).map(|promise| promise.measured_us);
        let worst = measured.max_by(f64::total_cmp)?;
        Some(format!("{} adds {worst:.1} of {} µs", kind.name(), kind.most_us()))
    });
    let kept = promises.iter().filter(|promise| promise.is_kept()).count();
    format!("{kept} of {} promises kept; at worst {}", promises.len(), kinds.collect::<Vec<_>>().join(", "))
}

impl Promise {
    fn is_kept(&self) -> bool {
        self.measured_us <= self.kind.most_us()
    }
}

fn table(cells: &[Cell]) -> Table {
    let mut table = Table::new("Calls", &["callers", "who", "server CPU µs", "added µs", "middle half µs"]);
    let mut before = None;
    for cell in cells {
        // The scene name appears once, above its rows.
        let scene = if before == Some(cell.scene) { String::new() } else { cell.scene.name() };
        before = Some(cell.scene);
        let (low, high) = quartiles(&cell.added_us);
        let (added, middle) = match cell.way {
            Way::Nobody => Default::default(),
            _ => (format!("{:.2}", cell.added()), format!("{low:.2} to {high:.2}")),
        };
        let cpu = report::short(median(cell.cpu_us.iter().copied()));
        table.rows.push(vec![scene, cell.way.name().into(), cpu, added, middle]);
    }
    table
}

fn promised(promises: &[Promise]) -> Table {
    let mut table = Table::new("Promises", &["what", "adds µs", "at most µs", ""]);
    table.rows = promises
        .iter()
        .map(|promise| {
            let verdict = if promise.is_kept() { "PASS" } else { "FAIL" };
            let (measured, most) = (format!("{:.2}", promise.measured_us), format!("{:.0}", promise.kind.most_us()));
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

    fn promise(kind: Kind, measured_us: f64) -> Promise {
        Promise { what: "what".into(), kind, measured_us }
    }

    #[test]
    fn the_middle_half_leaves_out_both_ends() {
        assert_eq!(quartiles(&[100.0, 1.0, 3.0, 2.0, 4.0, -50.0, 5.0, 6.0]), (2.0, 6.0));
        assert!(quartiles(&[]).0.is_nan());
    }

    #[test]
    fn the_worst_of_each_kind_is_told() {
        let promises = [promise(Kind::Bearer, 1.0), promise(Kind::Bearer, 5.1), promise(Kind::JwtAnew, 29.9)];
        let told = "2 of 3 promises kept; at worst a bearer token adds 5.1 of 5 µs, \
                    a JWT that never came before adds 29.9 of 30 µs";
        assert_eq!(outcome(&promises), told);
    }
}

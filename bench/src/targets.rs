//! Targets for the protocol layer and their results.
//!
//! Reported, never enforced: on a busy machine a number can miss its target although the code is fine.

use serde::Serialize;

use crate::machine;
use crate::mcp_servers::McpServer;
use crate::protocol::{CallStats, ServerMeasurement, median, start_stats};
use crate::report::{self, ResultTable};
use crate::workload::{Era, Tool, Transport};

/// One target and its result.
#[derive(Debug, Serialize)]
pub(crate) struct TargetResult {
    pub(crate) what: &'static str,
    pub(crate) measured: String,
    pub(crate) floor: String,
    pub(crate) floor_met: bool,
    pub(crate) goal: String,
    pub(crate) goal_met: bool,
}

/// Server and workload of a target, to find its cells.
#[derive(Clone, Copy)]
struct CellSelector {
    server: McpServer,
    transport: Transport,
    at_once: usize,
    bytes: usize,
    one_core: bool,
    era: Era,
}

const STDIO: CellSelector = CellSelector {
    server: McpServer::Corbie,
    transport: Transport::Stdio,
    at_once: 64,
    bytes: 100,
    one_core: false,
    era: Era::Legacy,
};
const STDIO_SERIAL: CellSelector = CellSelector { at_once: 1, ..STDIO };
const STDIO_SERIAL_ONE_CORE: CellSelector = CellSelector { one_core: true, ..STDIO_SERIAL };
const STDIO_LARGE: CellSelector = CellSelector { at_once: 4, bytes: 1_000_000, ..STDIO };
const HTTP: CellSelector = CellSelector { transport: Transport::Http, at_once: 32, ..STDIO };
const HTTP_LARGE: CellSelector = CellSelector { at_once: 4, bytes: 1_000_000, ..HTTP };

pub(crate) fn evaluate_targets(cells: &[ServerMeasurement]) -> Vec<TargetResult> {
    let mut verdicts = Vec::new();
    if let Some(ratio) = ratio_to_rmcp(cells, STDIO, rate) {
        verdicts.push(at_least("stdio, 64 in flight: calls/s", ratio, "x rmcp", 1.5, 2.5));
    }
    for (what, pick) in
        [("stdio, serial: p50", STDIO_SERIAL), ("stdio, serial on one core: p50", STDIO_SERIAL_ONE_CORE)]
    {
        if let Some(ratio) = ratio_to_rmcp(cells, pick, |figures| figures.p50_us) {
            verdicts.push(at_most(what, ratio, "x rmcp", 1.0, 0.5));
        }
    }
    if let Some(ratio) = ratio_to_rmcp(cells, HTTP, rate) {
        verdicts.push(at_least("HTTP, 32 connections: calls/s", ratio, "x rmcp", 1.4, 1.8));
    }
    if let Some(cell) = HTTP.find(cells) {
        // Only the goal includes a CPU time.
        let cpu = cell.median(|figures| figures.server_cpu_us);
        verdicts.push(TargetResult {
            floor: "-".into(),
            floor_met: true,
            ..at_most("HTTP, 32 connections: server CPU", cpu, "µs", 16.0, 16.0)
        });
    }
    for (what, pick) in
        [("stdio, 64 in flight: modern against legacy", STDIO), ("HTTP, 32 connections: modern against legacy", HTTP)]
    {
        if let Some(ratio) = ratio(cells, CellSelector { era: Era::Modern, ..pick }, pick, rate) {
            verdicts.push(at_least(what, ratio, "x calls/s", 0.75, 0.85));
        }
    }
    for (what, transport) in [("idle RSS, stdio", Transport::Stdio), ("idle RSS, HTTP", Transport::Http)] {
        let idle = median(start_stats(cells, McpServer::Corbie, transport).map(|figures| figures.idle_mb));
        if idle.is_finite() {
            verdicts.push(at_most(what, idle, "MB", 15.0, 12.0));
        }
    }
    for (what, transport) in [("first reply, stdio", Transport::Stdio), ("first reply, HTTP", Transport::Http)] {
        let first = median(start_stats(cells, McpServer::Corbie, transport).map(|figures| figures.first_reply_ms));
        if first.is_finite() {
            verdicts.push(at_most(what, first, "ms", 100.0, 50.0));
        }
    }
    let one_copy = machine::seconds_per_megabyte_copied();
    for (what, passes, pick) in [
        ("1 MB over stdio: calls/s", "1 MB over stdio: user CPU", STDIO_LARGE),
        ("1 MB over HTTP: calls/s", "1 MB over HTTP: user CPU", HTTP_LARGE),
    ] {
        if let Some(ratio) = ratio_to_rmcp(cells, pick, rate) {
            verdicts.push(TargetResult {
                goal: "-".into(),
                goal_met: true,
                ..at_least(what, ratio, "x rmcp", 1.0, 1.0)
            });
        }
        if let Some(cell) = pick.find(cells) {
            // The kernel's copies in and out are the same for all servers; the user time is specific to the server.
            let copied = cell.median(|figures| figures.server_user_us) / 1e6 / one_copy;
            verdicts.push(TargetResult {
                floor: "-".into(),
                floor_met: true,
                ..at_most(passes, copied, "copies of 1 MB", 3.0, 3.0)
            });
        }
    }
    verdicts
}

/// One-line summary: corbie compared with rmcp.
pub(crate) fn summary(cells: &[ServerMeasurement]) -> String {
    let parts = [
        ratio_to_rmcp(cells, STDIO, rate).map(|ratio| format!("stdio {ratio:.1}x rmcp")),
        ratio_to_rmcp(cells, HTTP, rate).map(|ratio| format!("http {ratio:.1}x rmcp")),
        ratio_to_rmcp(cells, STDIO_SERIAL, |figures| figures.p50_us)
            .map(|ratio| format!("serial p50 {ratio:.2}x rmcp")),
        ratio_to_rmcp(cells, STDIO_SERIAL_ONE_CORE, |figures| figures.p50_us)
            .map(|ratio| format!("on one core {ratio:.2}x rmcp")),
        ratio_to_rmcp(cells, STDIO_LARGE, rate).map(|ratio| format!("1 MB stdio {ratio:.1}x rmcp")),
        ratio_to_rmcp(cells, HTTP_LARGE, rate).map(|ratio| format!("1 MB http {ratio:.1}x rmcp")),
    ];
    let mut parts: Vec<_> = parts.into_iter().flatten().collect();
    if parts.is_empty() {
        // A run of selected workloads reports those.
        let measured = cells.iter().filter(|cell| cell.server == McpServer::Corbie);
        parts.extend(measured.filter_map(|cell| {
            let ratio = ratio_to(cells, cell, McpServer::Rmcp, rate)?;
            Some(format!("{} ({}) {ratio:.1}x rmcp", cell.workload.name(), cell.era.name()))
        }));
    }
    if parts.is_empty() { "no ratio: corbie and rmcp were not both measured".into() } else { parts.join(", ") }
}

/// A cell's figure relative to another server's on the same workload in the same era.
pub(crate) fn ratio_to(
    cells: &[ServerMeasurement],
    cell: &ServerMeasurement,
    other: McpServer,
    figure: fn(&CallStats) -> f64,
) -> Option<f64> {
    let other = cells.iter().find(|candidate| {
        candidate.server == other && candidate.workload == cell.workload && candidate.era == cell.era
    })?;
    Some(median_ratio(cell, other, figure))
}

/// Shows that the load generator was not the bottleneck: against the floor it was faster than with any server.
pub(crate) fn load_generator_table(cells: &[ServerMeasurement]) -> ResultTable {
    let mut table = ResultTable::new(
        "Load generator",
        &[
            "workload",
            "era",
            "floor calls/s",
            "fastest server",
            "its calls/s",
            "headroom",
            "generator busy",
            "not the bottleneck",
        ],
    );
    for floor in cells.iter().filter(|cell| cell.server == McpServer::Floor) {
        let servers = cells
            .iter()
            .filter(|cell| cell.server != McpServer::Floor && cell.workload == floor.workload && cell.era == floor.era);
        let Some(fastest) = servers.max_by(|a, b| a.median(rate).total_cmp(&b.median(rate))) else { continue };
        let headroom = median_ratio(floor, fastest, rate);
        let busy = fastest.median(|figures| figures.client_busy);
        // Either proves it: the generator could do much more than needed, or it was often waiting.
        let ok = headroom >= 1.25 || busy <= 0.85;
        table.rows.push(vec![
            floor.workload.name(),
            floor.era.name().into(),
            report::group_thousands(floor.median(rate)),
            fastest.server.name().into(),
            report::group_thousands(fastest.median(rate)),
            format!("{headroom:.2}x"),
            format!("{:.0} %", busy * 100.0),
            if ok { "yes" } else { "NO" }.into(),
        ]);
    }
    table
}

pub(crate) fn table(verdicts: &[TargetResult]) -> ResultTable {
    let mut table = ResultTable::new("Promises", &["what", "measured", "floor", "", "goal", ""]);
    let word = |text: &str, met: bool| {
        if text == "-" {
            ""
        } else if met {
            "PASS"
        } else {
            "FAIL"
        }
        .to_owned()
    };
    table.rows = verdicts
        .iter()
        .map(|verdict| {
            let TargetResult { what, measured, floor, floor_met, goal, goal_met } = verdict;
            let (floor_word, goal_word) = (word(floor, *floor_met), word(goal, *goal_met));
            vec![(*what).to_owned(), measured.clone(), floor.clone(), floor_word, goal.clone(), goal_word]
        })
        .collect();
    table
}

impl CellSelector {
    fn find(self, cells: &[ServerMeasurement]) -> Option<&ServerMeasurement> {
        cells.iter().find(|cell| {
            cell.server == self.server
                && cell.workload.transport == self.transport
                && cell.workload.concurrency == self.at_once
                && cell.workload.one_core == self.one_core
                && cell.workload.tool == Tool::Echo { bytes: self.bytes }
                && cell.era == self.era
        })
    }
}

fn rate(figures: &CallStats) -> f64 {
    figures.calls_per_second
}

fn ratio_to_rmcp(cells: &[ServerMeasurement], pick: CellSelector, figure: fn(&CallStats) -> f64) -> Option<f64> {
    ratio(cells, pick, CellSelector { server: McpServer::Rmcp, ..pick }, figure)
}

fn ratio(
    cells: &[ServerMeasurement],
    one: CellSelector,
    other: CellSelector,
    figure: fn(&CallStats) -> f64,
) -> Option<f64> {
    Some(median_ratio(one.find(cells)?, other.find(cells)?, figure))
}

/// The median of the ratios within each round, in which both sides had the same conditions.
fn median_ratio(one: &ServerMeasurement, other: &ServerMeasurement, figure: fn(&CallStats) -> f64) -> f64 {
    median(one.rounds.iter().zip(&other.rounds).map(|(one, other)| figure(one) / figure(other)))
}

pub(crate) fn at_least(what: &'static str, measured: f64, unit: &str, floor: f64, goal: f64) -> TargetResult {
    TargetResult {
        what,
        measured: format!("{measured:.2} {unit}"),
        floor: format!(">= {floor} {unit}"),
        floor_met: measured >= floor,
        goal: format!(">= {goal} {unit}"),
        goal_met: measured >= goal,
    }
}

pub(crate) fn at_most(what: &'static str, measured: f64, unit: &str, floor: f64, goal: f64) -> TargetResult {
    TargetResult {
        what,
        measured: format!("{measured:.2} {unit}"),
        floor: format!("<= {floor} {unit}"),
        floor_met: measured <= floor,
        goal: format!("<= {goal} {unit}"),
        goal_met: measured <= goal,
    }
}

//! The contract's speed targets (N-01 to N-08 and N-13), each with PASS or FAIL; one miss fails the run (V-11).
//!
//! Most targets are met by orders of magnitude. Times are judged by their 99th percentile: the maximum of thousands
//! mostly shows when the machine was busy.

use std::collections::HashMap;
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde::Serialize;
use serde_json::json;

use crate::http::{self, LoadClient};
use crate::machine::Machine;
use crate::mcp_servers::McpServer;
use crate::process::Process;
use crate::protocol::median;
use crate::report::{self, BenchReport, ResultTable};
use crate::round::{self, RoundResult};
use crate::stdio::Pipes;
use crate::workload::{self, Era, Tool, Transport, Workload};
use crate::{Args, Effort};

/// A target and its result.
#[derive(Debug, Serialize)]
struct SloResult {
    row: &'static str,
    what: &'static str,
    measured: String,
    /// The maximum of many values; not judged.
    slowest: Option<String>,
    wanted: String,
    /// How many times better than the target.
    margin: f64,
    met: bool,
}

const LIBRARY_PROGRAM: &str = ".tools/bench/target/release/corbie_library";
/// The default of `Limits::shutdown_grace`.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(30);

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    ensure!(args.servers.is_empty() && args.workloads.is_empty(), "`slo` measures corbie alone, and all of it");
    ensure!(!(args.keep && args.quick), "a quick run cannot be kept");
    let effort = args.effort();
    let mut machine = Machine::detect();
    let mut targets = Vec::new();
    targets.extend(measure_functions()?);
    targets.extend(measure_dispatch(effort)?);
    targets.extend(measure_start_and_stop(effort)?);
    targets.sort_by_key(|target| target.row);
    machine.update_load();

    let mut table = ResultTable::new("Targets", &["row", "what", "measured", "slowest", "target", "margin", "verdict"]);
    table.rows = targets.iter().map(SloResult::row).collect();
    let missed = targets.iter().filter(|target| !target.met).count();
    let outcome = format!("{} of {} targets met: {}", targets.len() - missed, targets.len(), least_margins(&targets));
    report::publish(
        &BenchReport {
            name: "slo",
            machine,
            about: format!("{}; times are 99th percentiles, those of functions in CPU time", effort.describe()),
            tables: vec![table],
            json: json!({ "targets": targets }),
            summary: outcome,
        },
        args.keep,
    )?;
    Ok(if missed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// N-01, N-02, N-03, N-06, N-07: the library's functions, in a separate process.
fn measure_functions() -> Result<Vec<SloResult>> {
    let output = Command::new(LIBRARY_PROGRAM).output().context(LIBRARY_PROGRAM)?;
    ensure!(output.status.success(), "{LIBRARY_PROGRAM} failed: {}", String::from_utf8_lossy(&output.stderr));
    let took: HashMap<String, [f64; 2]> = serde_json::from_slice(&output.stdout)?;
    let targets = [
        ("N-01", "register", "register a tool, up to 100 there", 0.001),
        ("N-02", "list", "list_registered_tools() of 100", 0.005),
        ("N-03", "schema", "get_tool_schema(name)", 0.001),
        ("N-06", "discover", "discovery of 100 tools in 10 modules", 2.0),
        ("N-06", "discover_fresh", "discovery while the last one is fresh", 2.0),
        ("N-07", "validate", "ToolCall::from_json of 1 kB", 0.001),
    ];
    let targets = targets.into_iter().map(|(row, name, what, limit)| {
        let took = took.get(name).with_context(|| format!("{LIBRARY_PROGRAM} tells no `{name}`"))?;
        let [p99, slowest] = took.map(Duration::from_secs_f64);
        Ok(SloResult::within(row, what, p99, Duration::from_secs_f64(limit)).with_slowest(slowest))
    });
    targets.collect()
}

/// N-04, N-05, N-08: the real program over real pipes and sockets.
fn measure_dispatch(effort: Effort) -> Result<Vec<SloResult>> {
    let small = Tool::Echo { bytes: 100 };
    let rounds = |workload: Workload| -> Result<Vec<RoundResult>> {
        (0..effort.rounds).map(|_| round::run(McpServer::Corbie, &workload, Era::Legacy, effort)).collect()
    };
    let p99 = |rounds: &[RoundResult]| {
        Duration::from_secs_f64(median(rounds.iter().map(|round| round.load.latency(0.99).as_secs_f64())))
    };
    let slowest = |rounds: &[RoundResult]| rounds.iter().map(|round| round.load.latency(1.0)).max().unwrap_or_default();
    let rate = |rounds: &[RoundResult]| median(rounds.iter().map(|round| round.load.calls_per_second()));
    let stdio_serial = rounds(workload::stdio(1, small))?;
    let stdio = rounds(workload::stdio(64, small))?;
    let http_serial = rounds(workload::http(1, small))?;
    let http = rounds(workload::http(32, small))?;
    Ok(vec![
        SloResult::within("N-04", "dispatch over stdio, round trip", p99(&stdio_serial), Duration::from_millis(10))
            .with_slowest(slowest(&stdio_serial)),
        SloResult::within("N-05", "dispatch over HTTP, round trip", p99(&http_serial), Duration::from_millis(100))
            .with_slowest(slowest(&http_serial)),
        SloResult::at_least("N-08", "calls/s over stdio, 64 in flight", rate(&stdio), 1000.0),
        SloResult::at_least("N-08", "calls/s over HTTP, 32 connections", rate(&http), 100.0),
    ])
}

/// N-13: time to readiness after a start, and time to exit after SIGTERM, with connected clients.
fn measure_start_and_stop(effort: Effort) -> Result<Vec<SloResult>> {
    let (mut ready, mut stopped_http, mut stopped_stdio) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..effort.rounds {
        let port = http::free_port()?;
        let log = McpServer::Corbie.log(Transport::Http);
        let mut process = Process::without_pipes(McpServer::Corbie.command(Some(port)), &log)?;
        let mut first = LoadClient::connect_first(&mut process, port, Era::Modern)?;
        ensure!(first.get("/ready")? == 200, "a server that listens is ready");
        ready.push(process.started.elapsed());
        let _others = (0..31).map(|_| first.new_client()).collect::<Result<Vec<_>>>()?;
        let (took, status) = process.stop(2 * SHUTDOWN_GRACE)?;
        ensure!(status.success(), "after SIGTERM the HTTP server ended with {status}");
        stopped_http.push(took);

        let log = McpServer::Corbie.log(Transport::Stdio);
        let (mut process, stdin, stdout) = Process::with_pipes(McpServer::Corbie.command(None), &log)?;
        let mut pipes = Pipes::new(stdin, stdout)?;
        pipes.initialize()?;
        let (took, status) = process.stop(2 * SHUTDOWN_GRACE)?;
        ensure!(status.success(), "after SIGTERM the stdio server ended with {status}");
        stopped_stdio.push(took);
    }
    let worst = |times: Vec<Duration>| times.into_iter().max().context("at least one round");
    Ok(vec![
        SloResult::within("N-13", "start to ready (HTTP), the slowest", worst(ready)?, Duration::from_secs(2)),
        SloResult::within("N-13", "graceful stop, 32 connections, the slowest", worst(stopped_http)?, SHUTDOWN_GRACE),
        SloResult::within("N-13", "graceful stop, stdio, the slowest", worst(stopped_stdio)?, SHUTDOWN_GRACE),
    ])
}

impl SloResult {
    fn within(row: &'static str, what: &'static str, measured: Duration, limit: Duration) -> SloResult {
        let margin = limit.as_secs_f64() / measured.as_secs_f64().max(1e-9);
        let wanted = format!("< {limit:?}");
        SloResult {
            row,
            what,
            measured: format!("{measured:.1?}"),
            slowest: None,
            wanted,
            margin,
            met: measured < limit,
        }
    }

    fn at_least(row: &'static str, what: &'static str, measured: f64, least: f64) -> SloResult {
        let (shown, wanted) = (report::group_thousands(measured), format!(">= {}", report::group_thousands(least)));
        SloResult {
            row,
            what,
            measured: shown,
            slowest: None,
            wanted,
            margin: measured / least,
            met: measured >= least,
        }
    }

    fn with_slowest(self, slowest: Duration) -> SloResult {
        SloResult { slowest: Some(format!("{slowest:.1?}")), ..self }
    }

    fn margin(&self) -> String {
        report::three_digits(self.margin)
    }

    fn row(&self) -> Vec<String> {
        let verdict = if self.met { "PASS" } else { "FAIL" };
        let slowest = self.slowest.clone().unwrap_or_default();
        let (measured, wanted) = (self.measured.clone(), self.wanted.clone());
        let margin = format!("{}x", self.margin());
        vec![self.row.into(), self.what.into(), measured, slowest, wanted, margin, verdict.into()]
    }
}

/// `N-01 10x, N-02 3x`: the margin of each row, by its tightest measurement.
fn least_margins(targets: &[SloResult]) -> String {
    let rows = targets
        .chunk_by(|one, next| one.row == next.row)
        .filter_map(|row| row.iter().min_by(|one, other| one.margin.total_cmp(&other.margin)));
    rows.map(|target| format!("{} {}x", target.row, target.margin())).collect::<Vec<_>>().join(", ")
}

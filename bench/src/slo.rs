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

use crate::http::{self, Client};
use crate::machine::Machine;
use crate::process::Process;
use crate::protocol::median;
use crate::report::{self, Report, Table};
use crate::round::{self, Round};
use crate::servers::Server;
use crate::stdio::Pipes;
use crate::workload::{self, Era, Tool, Transport, Workload};
use crate::{Args, Effort};

/// A target and its result.
#[derive(Debug, Serialize)]
struct Target {
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

const LIBRARY: &str = ".tools/bench/target/release/corbie_library";
/// The default of `Limits::shutdown_grace`.
const GRACE: Duration = Duration::from_secs(30);

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    ensure!(args.servers.is_empty() && args.workloads.is_empty(), "`slo` measures corbie alone, and all of it");
    ensure!(!(args.keep && args.quick), "a quick run cannot be kept");
    let effort = args.effort();
    let mut machine = Machine::look();
    let mut targets = Vec::new();
    targets.extend(functions()?);
    targets.extend(dispatch(effort)?);
    targets.extend(start_and_stop(effort)?);
    targets.sort_by_key(|target| target.row);
    machine.look_again();

    let mut table = Table::new("Targets", &["row", "what", "measured", "slowest", "target", "margin", "verdict"]);
    table.rows = targets.iter().map(Target::row).collect();
    let missed = targets.iter().filter(|target| !target.met).count();
    let outcome = format!("{} of {} targets met: {}", targets.len() - missed, targets.len(), least_margins(&targets));
    report::publish(
        &Report {
            name: "slo",
            machine,
            about: format!("{}; times are 99th percentiles, those of functions in CPU time", effort.describe()),
            tables: vec![table],
            json: json!({ "targets": targets }),
            last_line: outcome,
        },
        args.keep,
    )?;
    Ok(if missed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// N-01, N-02, N-03, N-06, N-07: the library's functions, in a separate process.
fn functions() -> Result<Vec<Target>> {
    let output = Command::new(LIBRARY).output().context(LIBRARY)?;
    ensure!(output.status.success(), "{LIBRARY} failed: {}", String::from_utf8_lossy(&output.stderr));
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
        let took = took.get(name).with_context(|| format!("{LIBRARY} tells no `{name}`"))?;
        let [p99, slowest] = took.map(Duration::from_secs_f64);
        Ok(Target::within(row, what, p99, Duration::from_secs_f64(limit)).with_slowest(slowest))
    });
    targets.collect()
}

/// N-04, N-05, N-08: the real program over real pipes and sockets.
fn dispatch(effort: Effort) -> Result<Vec<Target>> {
    let small = Tool::Echo { bytes: 100 };
    let rounds = |workload: Workload| -> Result<Vec<Round>> {
        (0..effort.rounds).map(|_| round::run(Server::Corbie, &workload, Era::Legacy, effort)).collect()
    };
    let p99 = |rounds: &[Round]| {
        Duration::from_secs_f64(median(rounds.iter().map(|round| round.driven.latency(0.99).as_secs_f64())))
    };
    let slowest = |rounds: &[Round]| rounds.iter().map(|round| round.driven.latency(1.0)).max().unwrap_or_default();
    let rate = |rounds: &[Round]| median(rounds.iter().map(|round| round.driven.calls_per_second()));
    let stdio_serial = rounds(workload::stdio(1, small))?;
    let stdio = rounds(workload::stdio(64, small))?;
    let http_serial = rounds(workload::http(1, small))?;
    let http = rounds(workload::http(32, small))?;
    Ok(vec![
        Target::within("N-04", "dispatch over stdio, round trip", p99(&stdio_serial), Duration::from_millis(10))
            .with_slowest(slowest(&stdio_serial)),
        Target::within("N-05", "dispatch over HTTP, round trip", p99(&http_serial), Duration::from_millis(100))
            .with_slowest(slowest(&http_serial)),
        Target::at_least("N-08", "calls/s over stdio, 64 in flight", rate(&stdio), 1000.0),
        Target::at_least("N-08", "calls/s over HTTP, 32 connections", rate(&http), 100.0),
    ])
}

/// N-13: time to readiness after a start, and time to exit after SIGTERM, with connected clients.
fn start_and_stop(effort: Effort) -> Result<Vec<Target>> {
    let (mut ready, mut stopped_http, mut stopped_stdio) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..effort.rounds {
        let port = http::free_port()?;
        let log = Server::Corbie.log(Transport::Http);
        let mut process = Process::without_pipes(Server::Corbie.command(Some(port)), &log)?;
        let mut first = Client::first(&mut process, port, Era::Modern)?;
        ensure!(first.get("/ready")? == 200, "a server that listens is ready");
        ready.push(process.started.elapsed());
        let _others = (0..31).map(|_| first.another()).collect::<Result<Vec<_>>>()?;
        let (took, status) = process.stop(2 * GRACE)?;
        ensure!(status.success(), "after SIGTERM the HTTP server ended with {status}");
        stopped_http.push(took);

        let log = Server::Corbie.log(Transport::Stdio);
        let (mut process, stdin, stdout) = Process::with_pipes(Server::Corbie.command(None), &log)?;
        let mut pipes = Pipes::new(stdin, stdout)?;
        pipes.initialize()?;
        let (took, status) = process.stop(2 * GRACE)?;
        ensure!(status.success(), "after SIGTERM the stdio server ended with {status}");
        stopped_stdio.push(took);
    }
    let worst = |times: Vec<Duration>| times.into_iter().max().context("at least one round");
    Ok(vec![
        Target::within("N-13", "start to ready (HTTP), the slowest", worst(ready)?, Duration::from_secs(2)),
        Target::within("N-13", "graceful stop, 32 connections, the slowest", worst(stopped_http)?, GRACE),
        Target::within("N-13", "graceful stop, stdio, the slowest", worst(stopped_stdio)?, GRACE),
    ])
}

impl Target {
    fn within(row: &'static str, what: &'static str, measured: Duration, limit: Duration) -> Target {
        let margin = limit.as_secs_f64() / measured.as_secs_f64().max(1e-9);
        let wanted = format!("< {limit:?}");
        Target { row, what, measured: format!("{measured:.1?}"), slowest: None, wanted, margin, met: measured < limit }
    }

    fn at_least(row: &'static str, what: &'static str, measured: f64, least: f64) -> Target {
        let (shown, wanted) = (report::thousands(measured), format!(">= {}", report::thousands(least)));
        Target { row, what, measured: shown, slowest: None, wanted, margin: measured / least, met: measured >= least }
    }

    fn with_slowest(self, slowest: Duration) -> Target {
        Target { slowest: Some(format!("{slowest:.1?}")), ..self }
    }

    fn margin(&self) -> String {
        report::short(self.margin)
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
fn least_margins(targets: &[Target]) -> String {
    let rows = targets
        .chunk_by(|one, next| one.row == next.row)
        .filter_map(|row| row.iter().min_by(|one, other| one.margin.total_cmp(&other.margin)));
    rows.map(|target| format!("{} {}x", target.row, target.margin())).collect::<Vec<_>>().join(", ")
}

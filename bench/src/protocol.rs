//! The protocol layer compared with the official SDKs and the bare floors.
//!
//! All contestants of a workload take turns, round by round, so that noise on the machine affects all of them equally.
//! A figure is the median over the rounds; a ratio is the median of the ratios within each round.

use std::process::ExitCode;

use anyhow::{Result, ensure};
use serde::Serialize;
use serde_json::json;

use crate::access;
use crate::machine::Machine;
use crate::mcp_servers::McpServer;
use crate::report::{self, BenchReport, ResultTable};
use crate::round::{self, RoundResult};
use crate::targets;
use crate::workload::{Era, PROTOCOL_WORKLOADS, Transport, Workload};
use crate::{Args, Effort};

/// All rounds of one server on one workload in one era.
#[derive(Debug)]
pub(crate) struct ServerMeasurement {
    pub(crate) server: McpServer,
    pub(crate) workload: &'static Workload,
    pub(crate) era: Era,
    pub(crate) rounds: Vec<CallStats>,
}

/// Results of one round.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct CallStats {
    pub(crate) calls_per_second: f64,
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
    /// CPU time of the server per call, user and system.
    pub(crate) server_cpu_us: f64,
    /// The user part of it.
    pub(crate) server_user_us: f64,
    pub(crate) client_cpu_us: f64,
    /// Share of the time that the load generator's threads were computing.
    pub(crate) client_busy: f64,
    pub(crate) first_reply_ms: f64,
    pub(crate) idle_mb: f64,
    pub(crate) loaded_mb: f64,
}

const HOW: &str = "Every round starts a new process, and contestants take turns. \
    corbie: default limits, with validation, trust gate, metrics and audit; its legacy HTTP clients name the session \
    they were given. rmcp: `stdio_pipes()`. All peers: stateless HTTP with JSON replies. The bare floor reads, parses \
    and answers, with no protocol around it. `x rmcp` is the median of the ratios within each round; `spread` is how \
    far the rounds lie apart. Serial calls are mostly the time to wake a sleeping core, except on one core";

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    if args.workloads == access::NAME {
        return access::run(args);
    }
    let effort = args.effort();
    let is_partial = !args.servers.is_empty() || !args.workloads.is_empty();
    ensure!(!(args.keep && (is_partial || args.quick)), "only a whole run can be kept; leave out the other options");
    let servers = McpServer::select(&args.servers)?;
    let mut machine = Machine::detect();
    let chosen: Vec<_> =
        PROTOCOL_WORKLOADS.iter().filter(|workload| workload.name().contains(&args.workloads)).collect();
    ensure!(!chosen.is_empty(), "no workload's name contains `{}`", args.workloads);

    let mut cells = Vec::new();
    for (done, workload) in chosen.iter().enumerate() {
        eprintln!("{:2}/{} {}", done + 1, chosen.len(), workload.name());
        cells.extend(measure(workload, &servers, effort)?);
    }
    machine.update_load();

    let verdicts = targets::evaluate_targets(&cells);
    let ratios = targets::summary(&cells);
    let about = format!("{} (four times that for slow peers). {HOW}", effort.describe());
    report::publish(
        &BenchReport {
            name: "protocol",
            json: json!({
                "effort": about,
                "cells": cells.iter().map(ServerMeasurement::to_json).collect::<Vec<_>>(),
                "verdicts": verdicts,
                "ratios": ratios,
            }),
            about,
            machine,
            tables: vec![
                calls_table(&cells),
                starts_table(&cells),
                targets::load_generator_table(&cells),
                targets::table(&verdicts),
            ],
            summary: ratios,
        },
        args.keep,
    )?;
    if is_partial { Ok(ExitCode::SUCCESS) } else { access::run(args) }
}

fn measure(workload: &'static Workload, only: &[McpServer], effort: Effort) -> Result<Vec<ServerMeasurement>> {
    use McpServer::{Corbie, Floor, Python, Rmcp, TypeScriptV1, TypeScriptV2};
    let mut cells = Vec::new();
    for server in [Corbie, Rmcp, TypeScriptV1, TypeScriptV2, Python, Floor] {
        let wanted = only.is_empty() || only.contains(&server);
        if !wanted || (server.is_slow() && !workload.includes_slow_peers) {
            continue;
        }
        let eras = workload.eras.iter().filter(|&&era| server.serves(era));
        cells.extend(eras.map(|&era| ServerMeasurement { server, workload, era, rounds: Vec::new() }));
    }
    for number in 0..effort.rounds as usize {
        // Each round starts with a different contestant, so that none always follows the same one.
        let count = cells.len();
        for turn in 0..count {
            let cell = &mut cells[(turn + number) % count];
            let round = round::run(cell.server, workload, cell.era, effort.for_server(cell.server))?;
            cell.rounds.push(CallStats::from_round(&round));
        }
    }
    Ok(cells)
}

impl CallStats {
    pub(crate) fn from_round(round: &RoundResult) -> CallStats {
        let driven = &round.load;
        let calls = driven.calls as f64;
        let per_call = |seconds: f64| seconds * 1e6 / calls;
        CallStats {
            calls_per_second: driven.calls_per_second(),
            p50_us: driven.latency(0.5).as_secs_f64() * 1e6,
            p99_us: driven.latency(0.99).as_secs_f64() * 1e6,
            server_cpu_us: per_call((driven.server.user + driven.server.system).as_secs_f64()),
            server_user_us: per_call(driven.server.user.as_secs_f64()),
            client_cpu_us: per_call(driven.client.as_secs_f64()),
            client_busy: driven.client.as_secs_f64() / driven.wall.as_secs_f64() / driven.client_threads as f64,
            first_reply_ms: round.first_reply.as_secs_f64() * 1e3,
            idle_mb: round.idle_bytes as f64 / 1e6,
            loaded_mb: round.loaded_bytes as f64 / 1e6,
        }
    }
}

impl ServerMeasurement {
    pub(crate) fn median(&self, figure: fn(&CallStats) -> f64) -> f64 {
        median(self.rounds.iter().map(figure))
    }

    fn to_json(&self) -> serde_json::Value {
        json!({
            "server": self.server.name(),
            "workload": self.workload.name(),
            "era": self.era,
            "calls_per_second": self.median(|figures| figures.calls_per_second),
            "rounds": self.rounds,
        })
    }

    /// Range of the rounds relative to their median.
    fn spread(&self) -> f64 {
        let rates = self.rounds.iter().map(|figures| figures.calls_per_second);
        let (least, most) = rates.fold((f64::INFINITY, 0f64), |(least, most), rate| (least.min(rate), most.max(rate)));
        (most - least) / self.median(|figures| figures.calls_per_second)
    }
}

pub(crate) fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        count if count % 2 == 1 => values[count / 2],
        count => (values[count / 2 - 1] + values[count / 2]) / 2.0,
    }
}

fn calls_table(cells: &[ServerMeasurement]) -> ResultTable {
    let mut table = ResultTable::new(
        "Calls",
        &[
            "workload",
            "era",
            "server",
            "calls/s",
            "x rmcp",
            "spread",
            "p50 µs",
            "p99 µs",
            "server CPU µs",
            "loaded RSS MB",
        ],
    );
    let mut before = None;
    for cell in cells {
        // The workload name appears once, above its rows.
        let name = if before == Some(cell.workload) { String::new() } else { cell.workload.name() };
        before = Some(cell.workload);
        let of_rmcp = targets::ratio_to(cells, cell, McpServer::Rmcp, |figures| figures.calls_per_second);
        table.rows.push(vec![
            name,
            cell.era.name().into(),
            cell.server.name().into(),
            report::group_thousands(cell.median(|figures| figures.calls_per_second)),
            of_rmcp.map(|ratio| format!("{ratio:.2}")).unwrap_or_default(),
            format!("{:.0} %", cell.spread() * 100.0),
            report::three_digits(cell.median(|figures| figures.p50_us)),
            report::three_digits(cell.median(|figures| figures.p99_us)),
            report::three_digits(cell.median(|figures| figures.server_cpu_us)),
            format!("{:.1}", cell.median(|figures| figures.loaded_mb)),
        ]);
    }
    table
}

/// Every round starts a process, so these are medians over many starts.
fn starts_table(cells: &[ServerMeasurement]) -> ResultTable {
    let mut table = ResultTable::new("Start", &["transport", "server", "first reply ms", "idle RSS MB", "starts"]);
    for transport in [Transport::Stdio, Transport::Http] {
        let mut servers: Vec<McpServer> = cells.iter().map(|cell| cell.server).collect();
        servers.sort();
        servers.dedup();
        for server in servers {
            let rounds: Vec<_> = start_stats(cells, server, transport).collect();
            if rounds.is_empty() {
                continue;
            }
            table.rows.push(vec![
                transport.name().into(),
                server.name().into(),
                report::three_digits(median(rounds.iter().map(|figures| figures.first_reply_ms))),
                format!("{:.1}", median(rounds.iter().map(|figures| figures.idle_mb))),
                rounds.len().to_string(),
            ]);
        }
    }
    table
}

pub(crate) fn start_stats(
    cells: &[ServerMeasurement],
    server: McpServer,
    transport: Transport,
) -> impl Iterator<Item = &CallStats> {
    cells
        .iter()
        .filter(move |cell| cell.server == server && cell.workload.transport == transport && !cell.workload.one_core)
        .flat_map(|cell| &cell.rounds)
}

//! corbie as an OpenAI gateway compared with other gateways, all in front of the same mock upstream.
//!
//! All gateways take turns, round by round, so that noise on the machine affects all of them equally. The overhead of a
//! gateway is relative to direct upstream requests in the same round.

mod auto;
mod canned_response;
mod expected_response;
mod gateways;
mod load;
mod peers;
mod request;
mod round;
mod targets;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, ensure};
use serde::Serialize;
use serde_json::json;

use crate::machine::Machine;
use crate::protocol::median;
use crate::report::{self, BenchReport, ResultTable, group_thousands, three_digits};
use crate::targets;
use crate::{Args, Effort};
use gateways::Gateway;
use round::{GatewayBed, GatewayStats};

/// All rounds of one gateway.
#[derive(Debug, Serialize)]
struct GatewayRounds {
    gateway: Gateway,
    rounds: Vec<GatewayStats>,
    /// Why there are no more rounds.
    failed: Option<String>,
}

const HOW: &str = "Every round starts each gateway anew, and gateways take turns. The gateway is kept on one core, the \
    fake upstream and the load generator on another; what else the machine does may use both. Added latency: one \
    connection, one request of 1 kB after the other, less the same quantile of `direct` in the same round; most of it \
    is the time to wake the other core, twice. Requests/s and CPU: 32 connections; CPU is that of the gateway's \
    processes, in the kernel and out of it. A stream has 23 events with JSON (role, 20 pieces, end, tokens) and \
    `[DONE]`, each written alone by the upstream: back to back on 32 connections, or with a millisecond at least \
    between them on 8. Every reply was looked at: status, text, number of events. First 200: from the start of the \
    process. corbie: as it comes, without a cache for `auto`, whose prompts a look at the words settles. The bare floor \
    hands on what it gets with hyper, and nothing else. ";

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    ensure!(args.workloads.is_empty(), "`gateway` has no workloads to choose from");
    ensure!(
        !(args.keep && (!args.servers.is_empty() || args.quick)),
        "only a whole run can be kept; leave out the other options"
    );
    let chosen = Gateway::select(&args.servers)?;
    let effort = args.effort();
    let mut machine = Machine::detect();
    let rows = measure(&chosen, effort)?;
    machine.update_load();

    let verdicts = targets::evaluate_targets(&rows);
    let about = format!(
        "{} for each load (eight times the warm-up for slow peers). {HOW}{}",
        effort.describe(),
        peers::SETTINGS
    );
    report::publish(
        &BenchReport {
            name: "gateway",
            machine,
            json: json!({ "effort": about, "rows": rows, "verdicts": verdicts }),
            about,
            tables: vec![requests(&rows), streams(&rows), failures(&rows), targets::table(&verdicts)],
            summary: targets::summary(&rows),
        },
        args.keep,
    )?;
    Ok(ExitCode::SUCCESS)
}

fn measure(chosen: &[Gateway], effort: Effort) -> Result<Vec<GatewayRounds>> {
    let stage = GatewayBed::prepare()?;
    let mut rows: Vec<GatewayRounds> =
        chosen.iter().map(|&gateway| GatewayRounds { gateway, rounds: Vec::new(), failed: None }).collect();
    for number in 0..effort.rounds as usize {
        eprintln!("round {} of {}", number + 1, effort.rounds);
        // Each round starts with a different gateway, so that none always follows the same one.
        let count = rows.len();
        for turn in 0..count {
            let row = &mut rows[(turn + number) % count];
            if row.failed.is_some() {
                continue;
            }
            match stage.run(row.gateway, effort.for_gateway(row.gateway)) {
                Ok(figures) => row.rounds.push(figures),
                Err(error) => {
                    eprintln!(" {}: {error:#} (see {})", row.gateway.name(), row.gateway.log());
                    row.failed = Some(format!("{error:#}"));
                }
            }
        }
    }
    Ok(rows)
}

impl Effort {
    fn for_gateway(self, gateway: Gateway) -> Effort {
        let warm_up = if gateway.is_slow() { self.warm_up * 8 } else { self.warm_up };
        Effort { warm_up: warm_up.max(Duration::from_millis(1)), ..self }
    }
}

impl GatewayRounds {
    fn median(&self, figure: impl Fn(&GatewayStats) -> f64) -> f64 {
        median(self.rounds.iter().map(figure))
    }

    /// The median of the difference to `direct` in the same round.
    fn added(&self, rows: &[GatewayRounds], figure: fn(&GatewayStats) -> f64) -> f64 {
        let Some(direct) = find_measured(rows, Gateway::Direct) else { return f64::NAN };
        median(self.rounds.iter().zip(&direct.rounds).map(|(own, direct)| figure(own) - figure(direct)))
    }
}

/// The row of a gateway, if it has at least one round.
fn find_measured(rows: &[GatewayRounds], gateway: Gateway) -> Option<&GatewayRounds> {
    rows.iter().find(|row| row.gateway == gateway && !row.rounds.is_empty())
}

fn measured_rows(rows: &[GatewayRounds]) -> impl Iterator<Item = &GatewayRounds> {
    rows.iter().filter(|row| !row.rounds.is_empty())
}

fn requests(rows: &[GatewayRounds]) -> ResultTable {
    let mut table = ResultTable::new(
        "Requests",
        &[
            "gateway",
            "p50 µs",
            "added p50 µs",
            "p99 µs",
            "added p99 µs",
            "requests/s",
            "CPU µs per request",
            "RSS after load MB",
            "first 200 ms",
        ],
    );
    for row in measured_rows(rows) {
        let is_direct = row.gateway == Gateway::Direct;
        let unless_direct = |text: String| if is_direct { String::new() } else { text };
        table.rows.push(vec![
            row.gateway.name().into(),
            three_digits(row.median(|figures| figures.p50_us)),
            unless_direct(three_digits(row.added(rows, |figures| figures.p50_us))),
            three_digits(row.median(|figures| figures.p99_us)),
            unless_direct(three_digits(row.added(rows, |figures| figures.p99_us))),
            group_thousands(row.median(|figures| figures.per_second)),
            unless_direct(three_digits(row.median(|figures| figures.cpu_us))),
            unless_direct(format!("{:.1}", row.median(|figures| figures.resident_mb))),
            unless_direct(three_digits(row.median(|figures| figures.first_200_ms))),
        ]);
    }
    table
}

fn streams(rows: &[GatewayRounds]) -> ResultTable {
    let mut table = ResultTable::new(
        "Streams",
        &["gateway", "events", "answers/s", "CPU µs per answer", "per event", "spaced: CPU µs per answer", "per event"],
    );
    for row in measured_rows(rows).filter(|row| row.rounds[0].burst.events > 0) {
        let events = row.rounds[0].burst.events;
        let unless_direct = |text: String| if row.gateway == Gateway::Direct { String::new() } else { text };
        let (burst, spaced) = (row.median(|figures| figures.burst.cpu_us), row.median(|figures| figures.spaced.cpu_us));
        table.rows.push(vec![
            row.gateway.name().into(),
            if events == canned_response::EVENT_COUNT {
                events.to_string()
            } else {
                format!("{events} of {}", canned_response::EVENT_COUNT)
            },
            group_thousands(row.median(|figures| figures.burst.per_second)),
            unless_direct(three_digits(burst)),
            unless_direct(three_digits(burst / canned_response::EVENT_COUNT as f64)),
            unless_direct(three_digits(spaced)),
            unless_direct(three_digits(spaced / canned_response::EVENT_COUNT as f64)),
        ]);
    }
    table
}

fn failures(rows: &[GatewayRounds]) -> ResultTable {
    let mut table = ResultTable::new("Not run, or wrong", &["gateway", "rounds", "why"]);
    for row in rows {
        let wrong = row.rounds.iter().find_map(|figures| figures.wrong.as_ref());
        let Some(why) = row.failed.as_ref().or(wrong) else { continue };
        let when = if row.rounds.is_empty() { "not run" } else { "wrong" };
        let why = format!("{when}: {}", why.replace('|', "/").replace(['\r', '\n'], " "));
        table.rows.push(vec![row.gateway.name().into(), row.rounds.len().to_string(), why]);
    }
    table
}

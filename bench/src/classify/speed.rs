//! Throughput of `classify_text` over HTTP: corbie compared with the Python server, in both styles.

use std::process::Command;

use anyhow::{Context, Result};
use serde::Serialize;

use super::texts::{self, ClassifiedText, DecidedBy};
use super::{PYTHON, SERVER, corbie_command};
use crate::Effort;
use crate::protocol::{CallStats, median};
use crate::report::{ResultTable, group_thousands, three_digits};
use crate::request::PreparedCall;
use crate::round::{self, HttpLoad};
use crate::workload::{Era, Tool};

/// A measured server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
enum SpeedContestant {
    Corbie,
    Python,
}

/// The method that corbie needs for the texts. Python does the same for all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) enum TextWorkload {
    /// The cheap head is certain.
    Words,
    Rules,
    /// Every text goes through the transformer.
    Model,
    /// One text, from the cache.
    Again,
}

const WORKLOADS: [TextWorkload; 4] =
    [TextWorkload::Words, TextWorkload::Rules, TextWorkload::Model, TextWorkload::Again];
const STYLES: [Era; 2] = [Era::Rest, Era::Legacy];
const CONNECTIONS: usize = 32;

/// All rounds of one server with one workload in one style.
#[derive(Debug, Serialize)]
pub(super) struct SpeedMeasurement {
    server: SpeedContestant,
    workload: TextWorkload,
    style: Era,
    rounds: Vec<CallStats>,
}

pub(super) fn measure(settled: &[ClassifiedText], effort: Effort) -> Result<Vec<SpeedMeasurement>> {
    let mut cells = Vec::new();
    for workload in WORKLOADS {
        eprintln!(" over HTTP, {}", workload.name());
        let texts = workload.texts(settled)?;
        let each =
            STYLES.into_iter().flat_map(|style| [(SpeedContestant::Corbie, style), (SpeedContestant::Python, style)]);
        let mut turns: Vec<SpeedMeasurement> =
            each.map(|(server, style)| SpeedMeasurement { server, workload, style, rounds: Vec::new() }).collect();
        for number in 0..effort.rounds as usize {
            // Each round starts with a different contestant, so that none always follows the same one.
            let count = turns.len();
            for turn in 0..count {
                turns[(turn + number) % count].run(&texts, effort)?;
            }
        }
        cells.extend(turns);
    }
    Ok(cells)
}

/// The corbie cell.
pub(super) fn find_corbie(cells: &[SpeedMeasurement], workload: TextWorkload, style: Era) -> Option<&SpeedMeasurement> {
    find(cells, SpeedContestant::Corbie, workload, style)
}

/// Throughput of corbie relative to Python.
pub(super) fn ratio(cells: &[SpeedMeasurement], workload: TextWorkload, style: Era) -> Option<f64> {
    find_corbie(cells, workload, style)?.ratio_to_python(cells, rate)
}

pub(super) fn table(cells: &[SpeedMeasurement]) -> ResultTable {
    let mut table = ResultTable::new(
        "Calls over HTTP, 32 connections",
        &[
            "texts",
            "style",
            "server",
            "calls/s",
            "x Python",
            "p50 µs",
            "p99 µs",
            "server CPU µs",
            "x Python",
            "loaded RSS MB",
        ],
    );
    let mut before = None;
    for cell in cells {
        // The workload name appears once, above its rows.
        let name = if before == Some(cell.workload) { "" } else { cell.workload.name() };
        before = Some(cell.workload);
        let beside_python =
            |figure| cell.ratio_to_python(cells, figure).map(|ratio| format!("{ratio:.2}")).unwrap_or_default();
        table.rows.push(vec![
            name.into(),
            if cell.style == Era::Rest { "REST" } else { "JSON-RPC" }.into(),
            cell.server.name().into(),
            group_thousands(cell.median(rate)),
            beside_python(rate),
            three_digits(cell.median(|figures| figures.p50_us)),
            three_digits(cell.median(|figures| figures.p99_us)),
            three_digits(cell.median(cpu)),
            beside_python(cpu),
            format!("{:.1}", cell.median(|figures| figures.loaded_mb)),
        ]);
    }
    table
}

impl SpeedMeasurement {
    fn run(&mut self, texts: &[&'static str], effort: Effort) -> Result<()> {
        let call = |text| PreparedCall::new(Tool::Classify { text }, self.style);
        let calls: Vec<PreparedCall> = texts.iter().copied().map(call).collect();
        let load =
            HttpLoad { first: calls.first().context("there are texts")?, calls: &calls, connections: CONNECTIONS };
        let log = format!(".tools/bench/logs/classify-{}.log", self.server.name().to_lowercase());
        let (mut command, effort) = match self.server {
            SpeedContestant::Corbie => (self.workload.corbie()?, effort),
            // Needs a longer warm-up, as in `protocol`.
            SpeedContestant::Python => (python(), Effort { warm_up: effort.warm_up * 4, ..effort }),
        };
        let with_port = move |port: u16| {
            command.args(["--port", &port.to_string()]);
            command
        };
        let measured = round::under_load(with_port, &log, &load, effort);
        let measured =
            measured.with_context(|| format!("{}, {} (see {log})", self.server.name(), self.workload.name()))?;
        self.rounds.push(CallStats::from_round(&measured));
        Ok(())
    }

    pub(super) fn median(&self, figure: fn(&CallStats) -> f64) -> f64 {
        median(self.rounds.iter().map(figure))
    }

    /// The median of the ratios within each round, in which both sides had the same conditions.
    fn ratio_to_python(&self, cells: &[SpeedMeasurement], figure: fn(&CallStats) -> f64) -> Option<f64> {
        let python = find(cells, SpeedContestant::Python, self.workload, self.style)?;
        let rounds = self.rounds.iter().zip(&python.rounds);
        Some(median(rounds.map(|(own, python)| figure(own) / figure(python))))
    }
}

impl SpeedContestant {
    fn name(self) -> &'static str {
        match self {
            SpeedContestant::Corbie => "corbie",
            SpeedContestant::Python => "Python",
        }
    }
}

impl TextWorkload {
    fn name(self) -> &'static str {
        if self == TextWorkload::Again { "the same text again" } else { self.decided_by().name() }
    }

    /// The method that decides its texts. The cache is most useful for a text that would need the transformer.
    fn decided_by(self) -> DecidedBy {
        match self {
            TextWorkload::Words => DecidedBy::Words,
            TextWorkload::Rules => DecidedBy::Rules,
            TextWorkload::Model | TextWorkload::Again => DecidedBy::Model,
        }
    }

    fn texts(self, settled: &[ClassifiedText]) -> Result<Vec<&'static str>> {
        let texts = texts::decided_by(settled, self.decided_by())?.into_iter().map(|settled| settled.text);
        Ok(if self == TextWorkload::Again { texts.take(1).collect() } else { texts.collect() })
    }

    fn corbie(self) -> Result<Command> {
        let mut command = corbie_command()?;
        command.arg("serve");
        if self != TextWorkload::Again {
            command.env("CORBIE_CLASSIFICATION__CACHE_ENTRIES", "0");
        }
        Ok(command)
    }
}

fn rate(figures: &CallStats) -> f64 {
    figures.calls_per_second
}

fn cpu(figures: &CallStats) -> f64 {
    figures.server_cpu_us
}

fn python() -> Command {
    let mut command = Command::new(PYTHON);
    command.arg(SERVER);
    command
}

fn find(
    cells: &[SpeedMeasurement],
    server: SpeedContestant,
    workload: TextWorkload,
    style: Era,
) -> Option<&SpeedMeasurement> {
    cells.iter().find(|cell| cell.server == server && cell.workload == workload && cell.style == style)
}

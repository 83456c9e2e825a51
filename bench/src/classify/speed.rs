//! Throughput of `classify_text` over HTTP: corbie compared with the Python server, in both styles.

use std::process::Command;

use anyhow::{Context, Result};
use serde::Serialize;

use super::texts::{self, By, Settled};
use super::{PYTHON, SERVER, corbie};
use crate::Effort;
use crate::protocol::{Figures, median};
use crate::report::{Table, short, thousands};
use crate::request::Call;
use crate::round::{self, HttpLoad};
use crate::workload::{Era, Tool};

/// A measured server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
enum Server {
    Corbie,
    Python,
}

/// The method that corbie needs for the texts. Python does the same for all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) enum Workload {
    /// The cheap head is certain.
    Words,
    Rules,
    /// Every text goes through the transformer.
    Model,
    /// One text, from the cache.
    Again,
}

const WORKLOADS: [Workload; 4] = [Workload::Words, Workload::Rules, Workload::Model, Workload::Again];
const STYLES: [Era; 2] = [Era::Rest, Era::Legacy];
const CONNECTIONS: usize = 32;

/// All rounds of one server with one workload in one style.
#[derive(Debug, Serialize)]
pub(super) struct Cell {
    server: Server,
    workload: Workload,
    style: Era,
    rounds: Vec<Figures>,
}

pub(super) fn measure(settled: &[Settled], effort: Effort) -> Result<Vec<Cell>> {
    let mut cells = Vec::new();
    for workload in WORKLOADS {
        eprintln!(" over HTTP, {}", workload.name());
        let texts = workload.texts(settled)?;
        let each = STYLES.into_iter().flat_map(|style| [(Server::Corbie, style), (Server::Python, style)]);
        let mut turns: Vec<Cell> =
            each.map(|(server, style)| Cell { server, workload, style, rounds: Vec::new() }).collect();
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
pub(super) fn of(cells: &[Cell], workload: Workload, style: Era) -> Option<&Cell> {
    find(cells, Server::Corbie, workload, style)
}

/// Throughput of corbie relative to Python.
pub(super) fn ratio(cells: &[Cell], workload: Workload, style: Era) -> Option<f64> {
    of(cells, workload, style)?.beside_python(cells, rate)
}

pub(super) fn table(cells: &[Cell]) -> Table {
    let mut table = Table::new(
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
            |figure| cell.beside_python(cells, figure).map(|ratio| format!("{ratio:.2}")).unwrap_or_default();
        table.rows.push(vec![
            name.into(),
            if cell.style == Era::Rest { "REST" } else { "JSON-RPC" }.into(),
            cell.server.name().into(),
            thousands(cell.median(rate)),
            beside_python(rate),
            short(cell.median(|figures| figures.p50_us)),
            short(cell.median(|figures| figures.p99_us)),
            short(cell.median(cpu)),
            beside_python(cpu),
            format!("{:.1}", cell.median(|figures| figures.loaded_mb)),
        ]);
    }
    table
}

impl Cell {
    fn run(&mut self, texts: &[&'static str], effort: Effort) -> Result<()> {
        let call = |text| Call::new(Tool::Classify { text }, self.style);
        let calls: Vec<Call> = texts.iter().copied().map(call).collect();
        let load =
            HttpLoad { first: calls.first().context("there are texts")?, calls: &calls, connections: CONNECTIONS };
        let log = format!(".tools/bench/logs/classify-{}.log", self.server.name().to_lowercase());
        let (mut command, effort) = match self.server {
            Server::Corbie => (self.workload.corbie()?, effort),
            // Needs a longer warm-up, as in `protocol`.
            Server::Python => (python(), Effort { warm_up: effort.warm_up * 4, ..effort }),
        };
        let with_port = move |port: u16| {
            command.args(["--port", &port.to_string()]);
            command
        };
        let measured = round::under_load(with_port, &log, &load, effort);
        let measured =
            measured.with_context(|| format!("{}, {} (see {log})", self.server.name(), self.workload.name()))?;
        self.rounds.push(Figures::of(&measured));
        Ok(())
    }

    pub(super) fn median(&self, figure: fn(&Figures) -> f64) -> f64 {
        median(self.rounds.iter().map(figure))
    }

    /// The median of the ratios within each round, in which both sides had the same conditions.
    fn beside_python(&self, cells: &[Cell], figure: fn(&Figures) -> f64) -> Option<f64> {
        let python = find(cells, Server::Python, self.workload, self.style)?;
        let rounds = self.rounds.iter().zip(&python.rounds);
        Some(median(rounds.map(|(own, python)| figure(own) / figure(python))))
    }
}

impl Server {
    fn name(self) -> &'static str {
        match self {
            Server::Corbie => "corbie",
            Server::Python => "Python",
        }
    }
}

impl Workload {
    fn name(self) -> &'static str {
        if self == Workload::Again { "the same text again" } else { self.by().name() }
    }

    /// The method that decides its texts. The cache is most useful for a text that would need the transformer.
    fn by(self) -> By {
        match self {
            Workload::Words => By::Words,
            Workload::Rules => By::Rules,
            Workload::Model | Workload::Again => By::Model,
        }
    }

    fn texts(self, settled: &[Settled]) -> Result<Vec<&'static str>> {
        let texts = texts::of(settled, self.by())?.into_iter().map(|settled| settled.text);
        Ok(if self == Workload::Again { texts.take(1).collect() } else { texts.collect() })
    }

    fn corbie(self) -> Result<Command> {
        let mut command = corbie()?;
        command.arg("serve");
        if self != Workload::Again {
            command.env("CORBIE_CLASSIFICATION__CACHE_ENTRIES", "0");
        }
        Ok(command)
    }
}

fn rate(figures: &Figures) -> f64 {
    figures.calls_per_second
}

fn cpu(figures: &Figures) -> f64 {
    figures.server_cpu_us
}

fn python() -> Command {
    let mut command = Command::new(PYTHON);
    command.arg(SERVER);
    command
}

fn find(cells: &[Cell], server: Server, workload: Workload, style: Era) -> Option<&Cell> {
    cells.iter().find(|cell| cell.server == server && cell.workload == workload && cell.style == style)
}

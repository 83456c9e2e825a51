//! Vector search speed compared with Chroma and LanceDB, which get the same vectors.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use crate::process::OneCore;
use crate::report::{Table, short, thousands};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Store {
    Corbie,
    Chroma,
    LanceDb,
}

/// Results of a store for this many chunks.
#[derive(Debug, Serialize)]
pub(super) struct Cell {
    pub(super) store: Store,
    pub(super) chunks: usize,
    #[serde(flatten)]
    pub(super) told: Told,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Told {
    add_cpu_s: f64,
    pub(super) rss_mb: f64,
    disk_mb: f64,
    pub(super) plain: Asked,
    pub(super) filtered: Asked,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Asked {
    pub(super) cpu_ms: f64,
    p50_ms: f64,
    /// Of the ten nearest at full precision.
    pub(super) recall: f64,
}

/// From the saved segments to the first result.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Start {
    #[serde(default)]
    pub(super) chunks: usize,
    pub(super) wall_s: f64,
    cpu_s: f64,
    rss_mb: f64,
}

const STORES: [Store; 3] = [Store::Corbie, Store::Chroma, Store::LanceDb];
pub(crate) const PROGRAM: &str = ".tools/bench/target/release/corbie_search";
/// Input of all stores, and their storage.
pub(crate) const CHUNKS: &str = ".tools/bench/knowledge/chunks";
pub(super) const KEPT: &str = ".tools/bench/knowledge/kept";

/// Generates as many chunks as the largest size needs.
pub(crate) fn make(sizes: &[usize], sets: Option<&str>) -> Result<()> {
    let most = sizes.iter().max().context("there is a size")?.to_string();
    let words: Vec<&str> = ["make", CHUNKS, &most].into_iter().chain(sets).collect();
    eprintln!(" {most} chunks are made");
    let _: serde_json::Value = ask(Command::new(PROGRAM).args(words))?;
    Ok(())
}

pub(super) fn measure(sizes: &[usize], sets: Option<&str>) -> Result<(Vec<Cell>, Vec<Start>)> {
    make(sizes, sets)?;
    let one_core = OneCore::keep()?;
    let (mut cells, mut starts) = (Vec::new(), Vec::new());
    for &chunks in sizes {
        for store in STORES.into_iter().filter(|store| store.takes(chunks)) {
            let told: Told = ask(&mut store.command(chunks))?;
            eprintln!(" {}, {chunks} chunks: {:.3} ms of CPU a query", store.name(), told.plain.cpu_ms);
            cells.push(Cell { store, chunks, told });
        }
        let segments = Store::Corbie.folder(chunks);
        let mut command = Command::new(PROGRAM);
        command.args(["start", CHUNKS, &chunks.to_string(), &segments]);
        starts.push(Start { chunks, ..ask(&mut command)? });
    }
    drop(one_core);
    fs::remove_dir_all(KEPT)?;
    Ok((cells, starts))
}

pub(super) fn table(cells: &[Cell]) -> Table {
    let header = [
        "chunks",
        "store",
        "CPU ms",
        "p50 ms",
        "recall@10",
        "filtered CPU ms",
        "filtered p50 ms",
        "filtered recall@10",
        "corbie needs",
        "filtered, it needs",
        "CPU s to add",
        "RSS MB",
        "disk MB",
    ];
    let mut table = Table::new("Search", &header);
    for Cell { store, chunks, told } in cells {
        let own = find(cells, Store::Corbie, *chunks);
        let needs = |own: Option<f64>, theirs: f64| own.map(|own| format!("{:.2}x", own / theirs)).unwrap_or_default();
        table.rows.push(vec![
            thousands(*chunks as f64),
            store.name().into(),
            format!("{:.3}", told.plain.cpu_ms),
            format!("{:.3}", told.plain.p50_ms),
            format!("{:.4}", told.plain.recall),
            format!("{:.3}", told.filtered.cpu_ms),
            format!("{:.3}", told.filtered.p50_ms),
            format!("{:.4}", told.filtered.recall),
            needs(own.map(|own| own.told.plain.cpu_ms), told.plain.cpu_ms),
            needs(own.map(|own| own.told.filtered.cpu_ms), told.filtered.cpu_ms),
            short(told.add_cpu_s),
            short(told.rss_mb),
            short(told.disk_mb),
        ]);
    }
    table
}

pub(super) fn start_table(starts: &[Start]) -> Table {
    let mut table = Table::new("From saved segments to the first answer", &["chunks", "wall s", "CPU s", "RSS MB"]);
    for start in starts {
        let Start { chunks, wall_s, cpu_s, rss_mb } = start;
        table.rows.push(vec![thousands(*chunks as f64), format!("{wall_s:.3}"), format!("{cpu_s:.3}"), short(*rss_mb)]);
    }
    table
}

pub(super) fn find(cells: &[Cell], store: Store, chunks: usize) -> Option<&Cell> {
    cells.iter().find(|cell| cell.store == store && cell.chunks == chunks)
}

pub(crate) fn ask<T: serde::de::DeserializeOwned>(command: &mut Command) -> Result<T> {
    let output = command.output().with_context(|| format!("{:?}", command.get_program()))?;
    let told = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{:?} failed: {}", command.get_program(), told.trim());
    serde_json::from_slice(&output.stdout).with_context(|| format!("what {:?} printed", command.get_program()))
}

impl Store {
    fn name(self) -> &'static str {
        match self {
            Store::Corbie => "corbie, words and vectors",
            Store::Chroma => "Chroma, vectors",
            Store::LanceDb => "LanceDB, vectors",
        }
    }

    /// A peer may not be installed, and a million vectors take them too long.
    fn takes(self, chunks: usize) -> bool {
        self == Store::Corbie || (chunks <= 100_000 && Path::new(super::PYTHON).exists())
    }

    fn folder(self, chunks: usize) -> String {
        let store = match self {
            Store::Corbie => "corbie",
            Store::Chroma => "chroma",
            Store::LanceDb => "lancedb",
        };
        format!("{KEPT}/{store}-{chunks}")
    }

    fn command(self, chunks: usize) -> Command {
        let (count, folder) = (chunks.to_string(), self.folder(chunks));
        let mut command = match self {
            Store::Corbie => Command::new(PROGRAM),
            Store::Chroma | Store::LanceDb => Command::new(super::PYTHON),
        };
        match self {
            Store::Corbie => command.args(["measure", CHUNKS, &count, &folder]),
            Store::Chroma => command.args([super::SCRIPT, "search", "chroma", CHUNKS, &count, &folder]),
            Store::LanceDb => command.args([super::SCRIPT, "search", "lancedb", CHUNKS, &count, &folder]),
        };
        command
    }
}

//! Vector search speed compared with Chroma and LanceDB, which get the same vectors.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use crate::process::PinnedCore;
use crate::report::{ResultTable, group_thousands, three_digits};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum VectorStoreKind {
    Corbie,
    Chroma,
    LanceDb,
}

/// Results of a store for this many chunks.
#[derive(Debug, Serialize)]
pub(super) struct StoreMeasurement {
    pub(super) store: VectorStoreKind,
    pub(super) chunks: usize,
    #[serde(flatten)]
    pub(super) told: StoreStats,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct StoreStats {
    add_cpu_s: f64,
    pub(super) rss_mb: f64,
    disk_mb: f64,
    pub(super) plain: QueryStats,
    pub(super) filtered: QueryStats,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct QueryStats {
    pub(super) cpu_ms: f64,
    p50_ms: f64,
    /// Of the ten nearest at full precision.
    pub(super) recall: f64,
}

/// From the saved segments to the first result.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct IndexLoadTime {
    #[serde(default)]
    pub(super) chunks: usize,
    pub(super) wall_s: f64,
    cpu_s: f64,
    rss_mb: f64,
}

const STORES: [VectorStoreKind; 3] = [VectorStoreKind::Corbie, VectorStoreKind::Chroma, VectorStoreKind::LanceDb];
pub(crate) const PROGRAM: &str = ".tools/bench/target/release/corbie_search";
/// Input of all stores, and their storage.
pub(crate) const CHUNKS_FOLDER: &str = ".tools/bench/knowledge/chunks";
pub(super) const STORES_FOLDER: &str = ".tools/bench/knowledge/kept";

/// Generates as many chunks as the largest size needs.
pub(crate) fn generate_chunks(sizes: &[usize], sets: Option<&str>) -> Result<()> {
    let most = sizes.iter().max().context("there is a size")?.to_string();
    let words: Vec<&str> = ["make", CHUNKS_FOLDER, &most].into_iter().chain(sets).collect();
    eprintln!(" {most} chunks are made");
    let _: serde_json::Value = run_json(Command::new(PROGRAM).args(words))?;
    Ok(())
}

pub(super) fn measure(sizes: &[usize], sets: Option<&str>) -> Result<(Vec<StoreMeasurement>, Vec<IndexLoadTime>)> {
    generate_chunks(sizes, sets)?;
    let one_core = PinnedCore::pin()?;
    let (mut cells, mut starts) = (Vec::new(), Vec::new());
    for &chunks in sizes {
        for store in STORES.into_iter().filter(|store| store.supports(chunks)) {
            let told: StoreStats = run_json(&mut store.command(chunks))?;
            eprintln!(" {}, {chunks} chunks: {:.3} ms of CPU a query", store.name(), told.plain.cpu_ms);
            cells.push(StoreMeasurement { store, chunks, told });
        }
        let segments = VectorStoreKind::Corbie.folder(chunks);
        let mut command = Command::new(PROGRAM);
        command.args(["start", CHUNKS_FOLDER, &chunks.to_string(), &segments]);
        starts.push(IndexLoadTime { chunks, ..run_json(&mut command)? });
    }
    drop(one_core);
    fs::remove_dir_all(STORES_FOLDER)?;
    Ok((cells, starts))
}

pub(super) fn table(cells: &[StoreMeasurement]) -> ResultTable {
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
    let mut table = ResultTable::new("Search", &header);
    for StoreMeasurement { store, chunks, told } in cells {
        let own = find(cells, VectorStoreKind::Corbie, *chunks);
        let needs = |own: Option<f64>, theirs: f64| own.map(|own| format!("{:.2}x", own / theirs)).unwrap_or_default();
        table.rows.push(vec![
            group_thousands(*chunks as f64),
            store.name().into(),
            format!("{:.3}", told.plain.cpu_ms),
            format!("{:.3}", told.plain.p50_ms),
            format!("{:.4}", told.plain.recall),
            format!("{:.3}", told.filtered.cpu_ms),
            format!("{:.3}", told.filtered.p50_ms),
            format!("{:.4}", told.filtered.recall),
            needs(own.map(|own| own.told.plain.cpu_ms), told.plain.cpu_ms),
            needs(own.map(|own| own.told.filtered.cpu_ms), told.filtered.cpu_ms),
            three_digits(told.add_cpu_s),
            three_digits(told.rss_mb),
            three_digits(told.disk_mb),
        ]);
    }
    table
}

pub(super) fn start_table(starts: &[IndexLoadTime]) -> ResultTable {
    let mut table =
        ResultTable::new("From saved segments to the first answer", &["chunks", "wall s", "CPU s", "RSS MB"]);
    for start in starts {
        let IndexLoadTime { chunks, wall_s, cpu_s, rss_mb } = start;
        table.rows.push(vec![
            group_thousands(*chunks as f64),
            format!("{wall_s:.3}"),
            format!("{cpu_s:.3}"),
            three_digits(*rss_mb),
        ]);
    }
    table
}

pub(super) fn find(cells: &[StoreMeasurement], store: VectorStoreKind, chunks: usize) -> Option<&StoreMeasurement> {
    cells.iter().find(|cell| cell.store == store && cell.chunks == chunks)
}

pub(crate) fn run_json<T: serde::de::DeserializeOwned>(command: &mut Command) -> Result<T> {
    let output = command.output().with_context(|| format!("{:?}", command.get_program()))?;
    let told = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{:?} failed: {}", command.get_program(), told.trim());
    serde_json::from_slice(&output.stdout).with_context(|| format!("what {:?} printed", command.get_program()))
}

impl VectorStoreKind {
    fn name(self) -> &'static str {
        match self {
            VectorStoreKind::Corbie => "corbie, words and vectors",
            VectorStoreKind::Chroma => "Chroma, vectors",
            VectorStoreKind::LanceDb => "LanceDB, vectors",
        }
    }

    /// A peer may not be installed, and a million vectors take them too long.
    fn supports(self, chunks: usize) -> bool {
        self == VectorStoreKind::Corbie || (chunks <= 100_000 && Path::new(super::PYTHON).exists())
    }

    fn folder(self, chunks: usize) -> String {
        let store = match self {
            VectorStoreKind::Corbie => "corbie",
            VectorStoreKind::Chroma => "chroma",
            VectorStoreKind::LanceDb => "lancedb",
        };
        format!("{STORES_FOLDER}/{store}-{chunks}")
    }

    fn command(self, chunks: usize) -> Command {
        let (count, folder) = (chunks.to_string(), self.folder(chunks));
        let mut command = match self {
            VectorStoreKind::Corbie => Command::new(PROGRAM),
            VectorStoreKind::Chroma | VectorStoreKind::LanceDb => Command::new(super::PYTHON),
        };
        match self {
            VectorStoreKind::Corbie => command.args(["measure", CHUNKS_FOLDER, &count, &folder]),
            VectorStoreKind::Chroma => {
                command.args([super::SCRIPT, "search", "chroma", CHUNKS_FOLDER, &count, &folder])
            }
            VectorStoreKind::LanceDb => {
                command.args([super::SCRIPT, "search", "lancedb", CHUNKS_FOLDER, &count, &folder])
            }
        };
        command
    }
}

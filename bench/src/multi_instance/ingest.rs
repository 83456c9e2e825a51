//! Ingestion: reading, chunking, embedding and writing into a base that already has many chunks, by one, two and four
//! instances on one database.
//!
//! Four tasks have a quarter of the files each, independent of the number of instances. All start with the same base:
//! on the database each run has a copy of it, and the embedded store is used once.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Result, ensure};
use serde::Serialize;

use super::populated_base::{PopulatedBase, wait_until_merged};
use super::postgres_server::PostgresServer;
use super::{FOLDER, StoreKind, load};
use crate::knowledge::corbie_server::{CorbieServer, StorageLocation, empty_folder};
use crate::knowledge::files;
use crate::report::{ResultTable, group_thousands, three_digits};

#[derive(Debug, Serialize)]
pub(super) struct IngestRun {
    /// Chunks in the base before.
    pub(super) chunks: usize,
    pub(super) kept: StoreKind,
    pub(super) instances: usize,
    added: u64,
    wall_s: f64,
    /// CPU time of all instances, and of the database.
    cpu_s: f64,
    database_cpu_s: f64,
}

const TASKS: usize = 4;
const CHUNKS_PER_FILE: usize = 10;
const CONFIGURATIONS: [(StoreKind, usize); 4] =
    [(StoreKind::Embedded, 1), (StoreKind::Postgres, 1), (StoreKind::Postgres, 2), (StoreKind::Postgres, 4)];

/// A folder of files for each task.
pub(super) fn split_files(chunks: usize, sets: Option<&Path>) -> Result<Vec<PathBuf>> {
    let files = empty_folder(&format!("{FOLDER}/files"))?;
    files::write(&files, chunks, CHUNKS_PER_FILE, sets)?;
    let folders: Vec<PathBuf> = (0..TASKS).map(|number| files.join(format!("part-{number}"))).collect();
    let entries = fs::read_dir(&files)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>()?;
    folders.iter().try_for_each(fs::create_dir)?;
    for (number, path) in entries.iter().enumerate() {
        fs::rename(path, folders[number % TASKS].join(path.file_name().unwrap_or_default()))?;
    }
    Ok(folders)
}

/// Afterwards the folder of the base contains more; its database is unchanged.
pub(super) fn measure(
    server: &PostgresServer,
    filled: &PopulatedBase,
    folders: &[PathBuf],
    question: &str,
) -> Result<Vec<IngestRun>> {
    let mut all = Vec::new();
    for (kept, instances) in CONFIGURATIONS {
        let started = match kept {
            StoreKind::Embedded => {
                vec![CorbieServer::start_at(&StorageLocation::Folder(&filled.folder), &load::log_path("embedded"))?]
            }
            StoreKind::Postgres => {
                let database = server.copy(&filled.database, "ingested")?;
                let started = load::start_instances(&database.address, instances)?;
                wait_until_merged(&database)?;
                started
            }
        };
        // The vector index exists or is loaded before the measurement.
        started.iter().try_for_each(|instance| load::wait_until_ready(instance, question))?;
        let ingested = import(server, started, folders, kept, filled.chunks)?;
        eprintln!(
            " {} chunks, {}, {instances} of them: {} more in {:.1} s",
            ingested.chunks,
            kept.name(),
            ingested.added,
            ingested.wall_s
        );
        all.push(ingested);
    }
    Ok(all)
}

fn import(
    server: &PostgresServer,
    mut started: Vec<CorbieServer>,
    folders: &[PathBuf],
    kept: StoreKind,
    chunks: usize,
) -> Result<IngestRun> {
    let (instances, before) = (started.len(), started[0].chunks()?);
    ensure!(before == chunks as u64, "there are {before} chunks in the base, and not {chunks}");
    let cpu = |started: &[CorbieServer]| -> Result<f64> { started.iter().map(CorbieServer::cpu_seconds).sum() };
    let (began, cpu_before, database_before) = (Instant::now(), cpu(&started)?, server.cpu_seconds()?);
    let mut tasks = Vec::new();
    for (number, folder) in folders.iter().enumerate() {
        tasks.push(started[number % instances].begin_import(folder, None)?);
    }
    for (number, task) in tasks.iter().enumerate() {
        started[number % instances].wait_for_task(task)?;
    }
    let wall_s = began.elapsed().as_secs_f64();
    let (cpu_s, database_cpu_s) = (cpu(&started)? - cpu_before, server.cpu_seconds()? - database_before);
    let added = started[0].chunks()?.saturating_sub(before);
    ensure!(added > 0, "no chunk was made");
    started.into_iter().try_for_each(CorbieServer::stop)?;
    Ok(IngestRun { chunks, kept, instances, added, wall_s, cpu_s, database_cpu_s })
}

impl IngestRun {
    pub(super) fn rate(&self) -> f64 {
        self.added as f64 / self.wall_s
    }
}

/// Chunks per second relative to the embedded store with a base of the same size.
pub(super) fn ratio_to_embedded(all: &[IngestRun], ingested: &IngestRun) -> Option<f64> {
    let embedded = find(all, ingested.chunks, StoreKind::Embedded, 1)?;
    Some(ingested.rate() / embedded.rate())
}

pub(super) fn find(all: &[IngestRun], chunks: usize, kept: StoreKind, instances: usize) -> Option<&IngestRun> {
    all.iter().find(|one| one.chunks == chunks && one.kept == kept && one.instances == instances)
}

pub(super) fn table(all: &[IngestRun]) -> ResultTable {
    let header = [
        "chunks in the base",
        "kept in",
        "instances",
        "chunks added",
        "chunks/s",
        "wall s",
        "CPU s of instances",
        "CPU s of the database",
        "chunks/s of embedded",
    ];
    let mut table = ResultTable::new("Ingest into a base that holds as much already", &header);
    for ingested in all {
        let IngestRun { chunks, kept, instances, added, wall_s, cpu_s, database_cpu_s } = ingested;
        let is_kept_there = *kept == StoreKind::Postgres;
        let beside = ratio_to_embedded(all, ingested).filter(|_| is_kept_there).map(|ratio| format!("{ratio:.2}x"));
        table.rows.push(vec![
            group_thousands(*chunks as f64),
            kept.name().into(),
            instances.to_string(),
            group_thousands(*added as f64),
            three_digits(ingested.rate()),
            three_digits(*wall_s),
            three_digits(*cpu_s),
            if is_kept_there { three_digits(*database_cpu_s) } else { String::new() },
            beside.unwrap_or_default(),
        ]);
    }
    table
}

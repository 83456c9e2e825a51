//! Making files searchable: reading, cutting, embedding and writing, by one, two and four instances on one database.
//!
//! Four tasks have a quarter of the files each, however many instances do them.

use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Result, ensure};
use serde::Serialize;

use super::server::Server;
use super::{FOLDER, Kept, load};
use crate::knowledge::files;
use crate::knowledge::served::{Place, Served, fresh};
use crate::report::{Table, short, thousands};

#[derive(Debug, Serialize)]
pub(super) struct Ingested {
    pub(super) kept: Kept,
    pub(super) instances: usize,
    chunks: u64,
    wall_s: f64,
    /// Of all instances, and of the database.
    cpu_s: f64,
    database_cpu_s: f64,
}

const TASKS: usize = 4;
const CHUNKS_OF_A_FILE: usize = 10;
const WAYS: [(Kept, usize); 4] = [(Kept::Embedded, 1), (Kept::Postgres, 1), (Kept::Postgres, 2), (Kept::Postgres, 4)];

pub(super) fn measure(server: &Server, chunks: usize, sets: Option<&std::path::Path>) -> Result<Vec<Ingested>> {
    let files = fresh(&format!("{FOLDER}/files"))?;
    files::write(&files, chunks, CHUNKS_OF_A_FILE, sets)?;
    let folders = dealt(&files)?;
    let mut all = Vec::new();
    for (kept, instances) in WAYS {
        let base = fresh(&format!("{FOLDER}/ingested"))?;
        let started = match kept {
            Kept::Embedded => vec![Served::at(&Place::Folder(&base), &load::log("embedded"))?],
            Kept::Postgres => load::start(&server.database("ingested")?.address, instances)?,
        };
        let ingested = import(server, started, &folders, kept)?;
        eprintln!(" {}, {instances} of them: {} chunks in {:.1} s", kept.name(), ingested.chunks, ingested.wall_s);
        all.push(ingested);
    }
    fs::remove_dir_all(files)?;
    Ok(all)
}

/// Each file into one of the folders, in turn.
fn dealt(files: &PathBuf) -> Result<Vec<PathBuf>> {
    let folders: Vec<PathBuf> = (0..TASKS).map(|number| files.join(format!("part-{number}"))).collect();
    let entries = fs::read_dir(files)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>()?;
    folders.iter().try_for_each(fs::create_dir)?;
    for (number, path) in entries.iter().enumerate() {
        fs::rename(path, folders[number % TASKS].join(path.file_name().unwrap_or_default()))?;
    }
    Ok(folders)
}

fn import(server: &Server, mut started: Vec<Served>, folders: &[PathBuf], kept: Kept) -> Result<Ingested> {
    let instances = started.len();
    // Tables and the index over vectors are there before the clock runs.
    for instance in &mut started {
        ensure!(instance.chunks()? == 0, "there is something in the base already");
    }
    let cpu = |started: &[Served]| -> Result<f64> { started.iter().map(Served::cpu_seconds).sum() };
    let (began, before, database_before) = (Instant::now(), cpu(&started)?, server.cpu_seconds()?);
    let mut tasks = Vec::new();
    for (number, folder) in folders.iter().enumerate() {
        tasks.push(started[number % instances].begin_import(folder, None)?);
    }
    for (number, task) in tasks.iter().enumerate() {
        started[number % instances].wait_for(task)?;
    }
    let wall_s = began.elapsed().as_secs_f64();
    let (cpu_s, database_cpu_s) = (cpu(&started)? - before, server.cpu_seconds()? - database_before);
    let chunks = started[0].chunks()?;
    ensure!(chunks > 0, "no chunk was made");
    started.into_iter().try_for_each(Served::stop)?;
    Ok(Ingested { kept, instances, chunks, wall_s, cpu_s, database_cpu_s })
}

impl Ingested {
    pub(super) fn rate(&self) -> f64 {
        self.chunks as f64 / self.wall_s
    }
}

pub(super) fn find(all: &[Ingested], kept: Kept, instances: usize) -> Option<&Ingested> {
    all.iter().find(|ingested| ingested.kept == kept && ingested.instances == instances)
}

pub(super) fn table(all: &[Ingested]) -> Table {
    let header = [
        "kept in",
        "instances",
        "chunks",
        "chunks/s",
        "wall s",
        "CPU s of instances",
        "CPU s of the database",
        "chunks/s of embedded",
    ];
    let mut table = Table::new("Ingest", &header);
    let embedded = find(all, Kept::Embedded, 1).map(Ingested::rate);
    for ingested in all {
        let Ingested { kept, instances, chunks, wall_s, cpu_s, database_cpu_s } = ingested;
        let is_kept_there = *kept == Kept::Postgres;
        let beside = embedded.filter(|_| is_kept_there).map(|embedded| format!("{:.2}x", ingested.rate() / embedded));
        table.rows.push(vec![
            kept.name().into(),
            instances.to_string(),
            thousands(*chunks as f64),
            short(ingested.rate()),
            short(*wall_s),
            short(*cpu_s),
            if is_kept_there { short(*database_cpu_s) } else { String::new() },
            beside.unwrap_or_default(),
        ]);
    }
    table
}

//! A base with many precomputed chunks, in a folder and in a database: filled in the folder and migrated to the
//! database.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde::Serialize;
use serde_json::Value;

use super::postgres_server::{BenchDatabase, PostgresServer};
use super::{CORBIE, FOLDER};
use crate::knowledge::corbie_server::empty_folder;
use crate::knowledge::{FILL_STORE, search};
use crate::process::sleep;
use crate::report::{ResultTable, group_thousands, three_digits};

pub(super) struct PopulatedBase {
    pub(super) chunks: usize,
    pub(super) folder: PathBuf,
    pub(super) database: BenchDatabase,
    pub(super) migration: MigrationStats,
}

/// Cost of `corbie knowledge migrate`.
#[derive(Debug, Serialize)]
pub(super) struct MigrationStats {
    wall_s: f64,
    /// CPU time of the program, and of the database.
    cpu_s: f64,
    database_cpu_s: f64,
    /// Size of the source folder.
    folder_mb: f64,
}

/// Size of a table with all its partitions.
#[derive(Debug, Serialize)]
pub(super) struct TableSize {
    chunks: usize,
    table: String,
    rows: f64,
    bytes: f64,
    index_bytes: f64,
}

/// Posting lists are merged within this time.
const MERGE_TIMEOUT: Duration = Duration::from_secs(300);

pub(super) fn populate(server: &PostgresServer, chunks: usize) -> Result<PopulatedBase> {
    let folder = empty_folder(&format!("{FOLDER}/base-{chunks}"))?;
    let began = Instant::now();
    let filled = Command::new(FILL_STORE)
        .arg(&folder)
        .args([search::CHUNKS_FOLDER, &chunks.to_string()])
        .status()
        .context(FILL_STORE)?;
    ensure!(filled.success(), "{FILL_STORE} failed");
    eprintln!(" {chunks} chunks are in a folder after {:.0} s", began.elapsed().as_secs_f64());
    let database = server.database(&format!("chunks_{chunks}"))?;
    let moved = migrate(server, &folder, &database, chunks)?;
    eprintln!(" and in a database after {:.0} s more", moved.wall_s);
    Ok(PopulatedBase { chunks, folder, database, migration: moved })
}

fn migrate(
    server: &PostgresServer,
    folder: &PathBuf,
    database: &BenchDatabase,
    chunks: usize,
) -> Result<MigrationStats> {
    let folder_mb = bytes_in(folder)? as f64 / 1e6;
    let mut command = Command::new("bash");
    // The shell reports the CPU time of an ended child.
    let line =
        format!(r#"TIMEFORMAT="%U %S"; time "{CORBIE}" knowledge migrate --from "sqlite:$1" --to env:DATABASE --json"#);
    command.args(["-c", &line, "-"]).arg(std::path::absolute(folder)?);
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("DATABASE", &database.address);
    let (began, before) = (Instant::now(), server.cpu_seconds()?);
    let output = command.output().context(CORBIE)?;
    let (wall_s, database_cpu_s) = (began.elapsed().as_secs_f64(), server.cpu_seconds()? - before);
    let told = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "the move failed: {}{}", told.trim(), String::from_utf8_lossy(&output.stdout));
    let said: Value = serde_json::from_slice(&output.stdout).context("what the move says")?;
    ensure!(said["to"]["chunks"] == chunks, "not all chunks were moved: {said}");
    let times = told.lines().last().unwrap_or_default().split(' ').map(str::parse::<f64>);
    let cpu_s = times.sum::<Result<f64, _>>().with_context(|| format!("times in {told}"))?;
    Ok(MigrationStats { wall_s, cpu_s, database_cpu_s, folder_mb })
}

fn bytes_in(folder: &PathBuf) -> Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        bytes += if entry.file_type()?.is_dir() { bytes_in(&entry.path())? } else { entry.metadata()?.len() };
    }
    Ok(bytes)
}

/// Waits until the running instances have merged the small batches.
pub(super) fn wait_until_merged(database: &BenchDatabase) -> Result<()> {
    let crowded = "SELECT count(*) FROM (SELECT 1 FROM corbie.batches WHERE level < 4 GROUP BY base, level \
                   HAVING count(*) >= 8) AS crowded";
    let began = Instant::now();
    while database.query(crowded)? != "0" {
        if began.elapsed() > MERGE_TIMEOUT {
            bail!("lists of words are not joined after {MERGE_TIMEOUT:?}");
        }
        sleep(Duration::from_millis(500));
    }
    database.query("VACUUM ANALYZE")?;
    Ok(())
}

impl PopulatedBase {
    pub(super) fn sizes(&self) -> Result<Vec<TableSize>> {
        let sql = "SELECT regexp_replace(relname, '_[0-3]$', ''), sum(greatest(reltuples, 0)), \
                   sum(pg_table_size(oid)), sum(pg_indexes_size(oid)) FROM pg_class \
                   WHERE relnamespace = 'corbie'::regnamespace AND relkind = 'r' GROUP BY 1 \
                   HAVING sum(pg_total_relation_size(oid)) > 200000 ORDER BY sum(pg_total_relation_size(oid)) DESC";
        let mut sizes = Vec::new();
        for line in self.database.query(sql)?.lines() {
            let [table, rows, bytes, index_bytes] = line.split(' ').collect::<Vec<_>>()[..] else {
                bail!("a table is told as {line}");
            };
            let (rows, bytes, index_bytes) = (rows.parse()?, bytes.parse()?, index_bytes.parse()?);
            sizes.push(TableSize { chunks: self.chunks, table: format!("`{table}`"), rows, bytes, index_bytes });
        }
        // The HNSW share of the indexes.
        let hnsw = "SELECT sum(pg_relation_size(c.oid)) FROM pg_class AS c JOIN pg_am AS a ON a.oid = c.relam \
                    WHERE a.amname = 'hnsw' AND c.relkind = 'i' AND c.relnamespace = 'corbie'::regnamespace";
        let index_bytes = self.database.query(hnsw)?.parse()?;
        let rows = sizes.iter().find(|size| size.table == "`vectors`").map_or(0.0, |size| size.rows);
        sizes.push(TableSize { chunks: self.chunks, table: "of these HNSW".into(), rows, bytes: 0.0, index_bytes });
        Ok(sizes)
    }

    /// Average text bytes per chunk.
    pub(super) fn text_bytes(&self) -> Result<f64> {
        Ok(self.database.query("SELECT avg(octet_length(text)) FROM corbie.chunks")?.parse()?)
    }
}

pub(super) fn migration_table(all: &[(usize, &MigrationStats)]) -> ResultTable {
    let header = ["chunks", "chunks/s", "wall s", "CPU s of the program", "CPU s of the database", "MB in the folder"];
    let mut table = ResultTable::new("Moved into the database with `corbie knowledge migrate`, and compared", &header);
    for (chunks, moved) in all {
        let MigrationStats { wall_s, cpu_s, database_cpu_s, folder_mb } = moved;
        table.rows.push(vec![
            group_thousands(*chunks as f64),
            group_thousands(*chunks as f64 / wall_s),
            three_digits(*wall_s),
            three_digits(*cpu_s),
            three_digits(*database_cpu_s),
            three_digits(*folder_mb),
        ]);
    }
    table
}

pub(super) fn size_table(sizes: &[TableSize]) -> ResultTable {
    let header =
        ["chunks", "table", "rows", "MB", "its indexes, MB", "bytes a row", "index bytes a row", "GB a million chunks"];
    let mut table = ResultTable::new("Size in the database", &header);
    let mut row = |size: &TableSize| {
        let TableSize { chunks, table: name, rows, bytes, index_bytes } = size;
        let each = |bytes: f64| if *rows > 0.0 { group_thousands(bytes / rows) } else { String::new() };
        table.rows.push(vec![
            group_thousands(*chunks as f64),
            name.clone(),
            if *rows > 0.0 { group_thousands(*rows) } else { String::new() },
            three_digits(bytes / 1e6),
            three_digits(index_bytes / 1e6),
            each(*bytes),
            each(*index_bytes),
            format!("{:.2}", (bytes + index_bytes) / *chunks as f64 / 1e3),
        ]);
    };
    for of_a_base in sizes.chunk_by(|one, other| one.chunks == other.chunks) {
        of_a_base.iter().for_each(&mut row);
        let all = || of_a_base.iter().filter(|size| size.table.starts_with('`'));
        row(&TableSize {
            chunks: of_a_base[0].chunks,
            table: "all".into(),
            rows: 0.0,
            bytes: all().map(|size| size.bytes).sum(),
            index_bytes: all().map(|size| size.index_bytes).sum(),
        });
    }
    table
}

//! Several instances on one PostgreSQL compared with the embedded store: search, ingestion and retrieval quality. The
//! vector search also compared with plain pgvector.
//!
//! Bases are filled with precomputed vectors, as in `knowledge`, and migrated into the database.

mod ingest;
mod load;
mod populated_base;
mod postgres_server;
mod quality;
mod targets;
mod vectors;

use std::fs;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, ensure};
use serde::Serialize;
use serde_json::json;

use crate::Args;
use crate::knowledge::{attempt, files, search};
use crate::machine::{self, Machine};
use crate::report::{self, BenchReport};
use crate::targets;
use load::SearchEffort;
use postgres_server::PostgresServer;

/// Storage backend of a knowledge base.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum StoreKind {
    Embedded,
    Postgres,
}

const CORBIE: &str = ".tools/bench/target/dist/corbie";
const FOLDER: &str = ".tools/bench/many";

const QUESTIONS: usize = 400;
const CHUNKS_INGESTED: usize = 600;

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    ensure!(args.servers.is_empty() && args.workloads.is_empty(), "`many` has its own contestants");
    ensure!(!(args.keep && args.quick), "a quick run cannot be kept");
    let mut machine = Machine::detect();
    let sets = args.data.as_ref().map(|folder| crate::caller_folder().join(folder));
    let sets = sets.as_deref();
    let sizes: &[usize] = match (args.quick, args.large) {
        (true, _) => &[2_000],
        (false, false) => &[10_000, 100_000],
        (false, true) => &[10_000, 100_000, 1_000_000],
    };
    let server = PostgresServer::start_tuned()?;
    let database = server.describe()?;
    search::generate_chunks(sizes, sets.map(|sets| sets.display().to_string()).as_deref())?;
    let questions = files::questions(sets, QUESTIONS)?;
    let effort = effort(args);
    let to_ingest = ingest::split_files(if args.quick { 40 } else { CHUNKS_INGESTED }, sets)?;

    let (mut cells, mut vectors, mut moved, mut sizes_told, mut texts) = (vec![], vec![], vec![], vec![], vec![]);
    let mut ingested = vec![];
    for &chunks in sizes {
        let filled = populated_base::populate(&server, chunks)?;
        vectors.extend(attempt("vectors alone", || vectors::measure(&filled)));
        cells.extend(attempt("searches", || load::measure(&server, &filled, &questions, effort)).unwrap_or_default());
        sizes_told.extend(attempt("sizes", || filled.sizes()).unwrap_or_default());
        texts.extend(attempt("sizes", || filled.text_bytes()));
        let measured = attempt("ingest", || ingest::measure(&server, &filled, &to_ingest, &questions[0]));
        ingested.extend(measured.unwrap_or_default());
        fs::remove_dir_all(&filled.folder)?;
        moved.push((chunks, filled.migration));
    }
    let found = sets.filter(|_| !args.quick).and_then(|sets| attempt("quality", || quality::measure(&server, sets)));
    let found = found.unwrap_or_default();
    machine.update_load();

    let verdicts = targets::evaluate_targets(&vectors, &found);
    let moved: Vec<_> = moved.iter().map(|(chunks, moved)| (*chunks, moved)).collect();
    let report = BenchReport {
        name: "many",
        about: describe_run(&database, machine::core_count(), texts.first().copied().unwrap_or(f64::NAN)),
        machine,
        tables: vec![
            load::table(&cells),
            vectors::table(&vectors),
            vectors::filtered_table(&vectors),
            vectors::index_table(&vectors),
            ingest::table(&ingested),
            populated_base::migration_table(&moved),
            populated_base::size_table(&sizes_told),
            quality::table(&found),
            targets::table(&verdicts),
        ],
        summary: targets::summary(sizes, &cells, &vectors, &ingested),
        json: json!({
            "database": database, "search": cells, "vectors": vectors, "ingest": ingested, "moved": moved,
            "sizes": sizes_told, "text_bytes": texts, "quality": found, "verdicts": verdicts,
        }),
    };
    report::publish(&report, args.keep)?;
    Ok(ExitCode::SUCCESS)
}

fn effort(args: &Args) -> SearchEffort {
    let (rounds, warm_up, measure) = if args.quick { (1, 200, 800) } else { (3, 500, 3000) };
    SearchEffort {
        rounds: args.rounds.unwrap_or(rounds),
        warm_up: Duration::from_millis(warm_up),
        measure: Duration::from_millis(measure),
    }
}

/// Description of the method and the limits of this machine.
fn describe_run(database: &str, cores: usize, text_bytes: f64) -> String {
    format!(
        "{database}, on a Unix socket of the same machine, what is written reaching the disk; chunks have {text_bytes:.0} \
         bytes of text and one vector each; recall is of the ten nearest, against comparing all vectors of the table; a \
         filter allows a share of the documents; ingest is into a copy of the same base each time. \
         What {cores} cores can show: what a search and a chunk cost in CPU, by the program and by the database, and how \
         little it costs that instances share one database. What they cannot: how much more several machines do. \
         Clients, instances and the database share these cores, and one instance keeps them busy already, so that two and \
         four have no more to take; there is no network in between either"
    )
}

impl StoreKind {
    fn name(self) -> &'static str {
        match self {
            StoreKind::Embedded => "embedded",
            StoreKind::Postgres => "PostgreSQL",
        }
    }
}

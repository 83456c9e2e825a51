//! The knowledge base: vector search compared with Chroma and LanceDB, ingestion compared with the usual design (Chroma
//! fed by onnxruntime), and the whole program over HTTP.
//!
//! With `--data FOLDER`, which contains retrieval sets, chunks and files are made from their passages, and retrieval
//! quality is measured too.

pub(crate) mod corbie_server;
pub(crate) mod files;
mod lexical;
mod quality;
pub(crate) mod search;
mod targets;

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::Args;
use crate::machine::Machine;
use crate::process::PinnedCore;
use crate::report::{self, BenchReport, ResultTable, group_thousands, three_digits};
use crate::targets;
use corbie_server::{CorbieServer, IngestStats, SearchStats};

const PYTHON: &str = ".tools/bench/knowledge-venv/bin/python";
const SCRIPT: &str = "bench/peers/knowledge.py";
const ONNX: &str = ".tools/bench/onnx/f32.onnx";
const TOKENIZER: &str = "crates/infer/models/all-MiniLM-L6-v2/tokenizer.json";
const FOLDER: &str = ".tools/bench/knowledge";

const CHUNKS_INGESTED: usize = 3_000;
const CHUNKS_PER_FILE: usize = 30;
/// For the search over HTTP, in files of one chunk: this many documents.
const DOCUMENTS_SERVED: usize = 10_000;
const QUESTIONS: usize = 400;
/// For the start of the program: this many chunks.
const LARGE_BASE_CHUNKS: usize = 100_000;
pub(crate) const FILL_STORE: &str = ".tools/bench/target/debug/examples/fill_store";

/// Results of the usual design for the same files.
#[derive(Debug, Serialize, Deserialize)]
struct BaselineIngest {
    chunks: u64,
    cpu_s: f64,
    wall_s: f64,
    rss_mb: f64,
}

/// Ingestion.
#[derive(Debug, Serialize)]
struct IngestComparison {
    corbie: IngestStats,
    reference: Option<BaselineIngest>,
}

/// The whole program with a large base.
#[derive(Debug, Serialize)]
struct StartupTimes {
    chunks: usize,
    /// From the start of the program to its first reply, with a persisted index, and without.
    kept_s: f64,
    anew_s: f64,
    rss_mb: f64,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    ensure!(args.servers.is_empty() && args.workloads.is_empty(), "`knowledge` has its own contestants");
    ensure!(!(args.keep && args.quick), "a quick run cannot be kept");
    let mut machine = Machine::detect();
    let sets = args.data.as_ref().map(|folder| crate::caller_folder().join(folder));
    let sets = sets.as_deref();
    let sizes: &[usize] = match (args.quick, args.large) {
        (true, _) => &[1_000],
        (false, false) => &[1_000, 10_000, 100_000],
        (false, true) => &[1_000, 10_000, 100_000, 1_000_000],
    };
    let sets_named = sets.map(|sets| sets.display().to_string());
    let most = sizes.iter().copied().max().unwrap_or_default();
    let (cells, starts) = search::measure(sizes, sets_named.as_deref())?;
    let words = attempt("words alone", || lexical::measure(sizes)).unwrap_or_default();
    let found = sets.and_then(|sets| attempt("quality", || quality::measure(sets)));
    // The program may be a version without a knowledge base.
    let shrink = if args.quick { 20 } else { 1 };
    let ingest = attempt("ingest", || ingest(CHUNKS_INGESTED / shrink, sets));
    let searched = attempt("search over HTTP", || serve(DOCUMENTS_SERVED / shrink, sets));
    let start = attempt("a large base", || start(LARGE_BASE_CHUNKS.min(most), sets));
    machine.update_load();

    let verdicts =
        targets::evaluate_targets(&cells, &starts, ingest.as_ref(), searched.as_ref(), start.as_ref(), found.as_ref());
    let report = BenchReport {
        name: "knowledge",
        machine,
        about:
            "one core for the searches; CPU time is user and system time of the process; corbie searches by words and \
                vectors, its peers by vectors alone, all without embedding the query; recall is that of the vectors, \
                against the ten nearest by all digits; a filter allows a tenth of the documents; ingest is with \
                reading, cutting, embedding and writing, and the usual design embeds with onnxruntime on one thread"
                .into(),
        tables: vec![
            search::table(&cells),
            lexical::table(&words),
            search::start_table(&starts),
            ingest.as_ref().map_or_else(|| ResultTable::new("Ingest", &["who"]), ingest_table),
            searched.as_ref().map_or_else(|| ResultTable::new("Over HTTP", &["chunks"]), search_table),
            start.as_ref().map_or_else(|| ResultTable::new("A large base", &["chunks"]), startup_table),
            found.as_ref().map_or_else(|| ResultTable::new("Quality", &["set"]), quality::table),
            targets::table(&verdicts),
        ],
        summary: targets::summary(&cells, ingest.as_ref()),
        json: json!({
            "search": cells, "words": words, "starts": starts, "ingest": ingest, "served": searched, "started": start, "quality": found,
            "verdicts": verdicts,
        }),
    };
    report::publish(&report, args.keep)?;
    Ok(ExitCode::SUCCESS)
}

fn ingest(chunks: usize, sets: Option<&Path>) -> Result<IngestComparison> {
    let folder = corbie_server::empty_folder(&format!("{FOLDER}/files"))?;
    files::write(&folder, chunks, CHUNKS_PER_FILE, sets)?;
    let one_core = PinnedCore::pin()?;
    let mut program = CorbieServer::start(&corbie_server::empty_folder(&format!("{FOLDER}/base"))?)?;
    let corbie = program.import(&folder)?;
    program.stop()?;
    eprintln!(" corbie: {} chunks in {:.1} s of CPU", corbie.chunks, corbie.cpu_s);
    let reference = attempt("the usual design", || measure_baseline(&folder));
    drop(one_core);
    fs::remove_dir_all(folder)?;
    Ok(IngestComparison { corbie, reference })
}

fn measure_baseline(files: &Path) -> Result<BaselineIngest> {
    let store = format!("{FOLDER}/reference");
    let mut command = Command::new(PYTHON);
    command.arg(SCRIPT).arg("ingest").arg(files).args([ONNX, TOKENIZER, &store]);
    let output = command.output().context(PYTHON)?;
    ensure!(output.status.success(), "it failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(serde_json::from_slice(&output.stdout)?)
}

fn serve(documents: usize, sets: Option<&Path>) -> Result<SearchStats> {
    let folder = corbie_server::empty_folder(&format!("{FOLDER}/many-files"))?;
    files::write(&folder, documents, 1, sets)?;
    let base = corbie_server::empty_folder(&format!("{FOLDER}/served"))?;
    let mut program = CorbieServer::start(&base)?;
    program.import(&folder)?;
    program.stop()?;
    let questions = files::questions(sets, QUESTIONS)?;
    let mut program = CorbieServer::start(&base)?;
    let first: Duration = program.first_answer(&questions[0])?;
    let searched = program.search(&questions, first)?;
    program.stop()?;
    fs::remove_dir_all(folder)?;
    Ok(searched)
}

/// Starts the program with chunks embedded earlier.
fn start(chunks: usize, sets: Option<&Path>) -> Result<StartupTimes> {
    let base = corbie_server::empty_folder(&format!("{FOLDER}/large"))?;
    let filled = Command::new(FILL_STORE)
        .arg(&base)
        .args([search::CHUNKS_FOLDER, &chunks.to_string()])
        .status()
        .context(FILL_STORE)?;
    ensure!(filled.success(), "{FILL_STORE} failed");
    let questions = files::questions(sets, 2)?;
    let answer = || -> Result<(f64, f64)> {
        let mut program = CorbieServer::start(&base)?;
        let answered = program.first_answer(&questions[0])?.as_secs_f64();
        let rss_mb = program.resident_mb()?;
        program.stop()?;
        Ok((answered, rss_mb))
    };
    let (anew_s, _) = answer()?;
    let (kept_s, rss_mb) = answer()?;
    eprintln!(" {chunks} chunks: first answer after {kept_s:.2} s");
    fs::remove_dir_all(base)?;
    Ok(StartupTimes { chunks, kept_s, anew_s, rss_mb })
}

/// Skips a part that cannot be measured.
pub(crate) fn attempt<T>(what: &str, measure: impl FnOnce() -> Result<T>) -> Option<T> {
    measure().inspect_err(|error| eprintln!(" going on without {what}: {error:#}")).ok()
}

impl IngestComparison {
    /// CPU time of the usual design relative to corbie for the same files. Not per chunk: the two chunk differently,
    /// and smaller chunks are not more work.
    fn ratio(&self) -> Option<f64> {
        Some(self.reference.as_ref()?.cpu_s / self.corbie.cpu_s)
    }
}

fn ingest_table(ingest: &IngestComparison) -> ResultTable {
    let header = ["who", "chunks", "chunks a CPU second", "CPU s", "wall s", "RSS MB"];
    let mut table = ResultTable::new("Ingest", &header);
    let mut row = |who: &str, chunks: u64, cpu_s: f64, wall_s: f64, rss_mb: f64| {
        let chunks_a_second = three_digits(chunks as f64 / cpu_s);
        table.rows.push(vec![
            who.into(),
            group_thousands(chunks as f64),
            chunks_a_second,
            three_digits(cpu_s),
            three_digits(wall_s),
            three_digits(rss_mb),
        ]);
    };
    let IngestStats { chunks, cpu_s, wall_s, rss_mb } = ingest.corbie;
    row("corbie", chunks, cpu_s, wall_s, rss_mb);
    if let Some(BaselineIngest { chunks, cpu_s, wall_s, rss_mb }) = ingest.reference {
        row("Chroma and onnxruntime", chunks, cpu_s, wall_s, rss_mb);
    }
    table
}

fn search_table(searched: &SearchStats) -> ResultTable {
    let header = ["chunks", "p50 ms", "p99 ms", "CPU ms", "RSS MB", "start to first answer, s"];
    let mut table = ResultTable::new("`knowledge-search` over HTTP, embedding included", &header);
    let SearchStats { chunks, p50_ms, p99_ms, cpu_ms, rss_mb, start_s } = searched;
    table.rows.push(vec![
        group_thousands(*chunks as f64),
        format!("{p50_ms:.2}"),
        format!("{p99_ms:.2}"),
        format!("{cpu_ms:.2}"),
        three_digits(*rss_mb),
        format!("{start_s:.2}"),
    ]);
    table
}

fn startup_table(started: &StartupTimes) -> ResultTable {
    let header = ["chunks", "start to first answer, s", "the same without a kept index, s", "RSS MB"];
    let mut table = ResultTable::new("The program with a large base", &header);
    let StartupTimes { chunks, kept_s, anew_s, rss_mb } = started;
    let row =
        vec![group_thousands(*chunks as f64), format!("{kept_s:.2}"), format!("{anew_s:.2}"), three_digits(*rss_mb)];
    table.rows.push(row);
    table
}

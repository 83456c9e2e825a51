//! Text chunking: corbie compared with text-splitter, with the tokenizer of the embedding model, on one thread.
//!
//! With `--data FOLDER` also the retrieval quality of chunks of 254 and of 500 tokens; see `retrieval.rs`.

use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::Args;
use crate::machine::Machine;
use crate::process::PinnedCore;
use crate::protocol::median;
use crate::report::{self, BenchReport, ResultTable, three_digits};
use crate::targets::{self, at_least};

/// Megabytes per second of CPU time.
#[derive(Debug, Serialize, Deserialize)]
struct ChunkingSpeed {
    corbie: f64,
    corbie_packing_alone: f64,
    text_splitter: f64,
}

/// Retrieval results for chunks of one size. Shares are means over the queries.
#[derive(Debug, Serialize, Deserialize)]
struct ChunkSearchScore {
    set: String,
    size: u32,
    way: String,
    documents: u32,
    chunks: u32,
    ndcg: f64,
    recall: f64,
    passages_in_ten: f64,
    passages_read: f64,
}

const PROGRAM: &str = ".tools/bench/target/release/corbie_chunk";

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    ensure!(args.servers.is_empty() && args.workloads.is_empty(), "`chunk` has its own contestants");
    ensure!(!(args.keep && args.quick), "a quick run cannot be kept");
    let rounds = args.rounds.unwrap_or(if args.quick { 1 } else { 5 });
    let mut machine = Machine::detect();
    let one_core = PinnedCore::pin()?;
    let folder = args.data.as_ref().map(|folder| crate::caller_folder().join(folder).display().to_string());
    let words: Vec<&str> = ["speed"].into_iter().chain(folder.as_deref()).collect();
    let speeds: Vec<ChunkingSpeed> = (0..rounds).map(|_| run_json(&words)).collect::<Result<_>>()?;
    drop(one_core);
    let found: Vec<ChunkSearchScore> = match &folder {
        Some(folder) => run_json(&["quality", folder])?,
        None => Vec::new(),
    };
    machine.update_load();

    let figure = |figure: fn(&ChunkingSpeed) -> f64| median(speeds.iter().map(figure));
    let (corbie, peer) = (figure(|speed| speed.corbie), figure(|speed| speed.text_splitter));
    let mut speed = ResultTable::new("Speed", &["who", "MB/s"]);
    speed.rows.push(vec!["corbie, tokens included".into(), three_digits(corbie)]);
    speed.rows.push(vec!["corbie, packing alone".into(), three_digits(figure(|speed| speed.corbie_packing_alone))]);
    speed.rows.push(vec!["text-splitter".into(), three_digits(peer)]);
    let verdicts = [at_least("chunks of 500 tokens", corbie, "MB/s", 1.0, 1.5)];
    let report = BenchReport {
        name: "chunk",
        machine,
        about: format!(
            "medians of {rounds} rounds on one core, megabytes per second of CPU time, chunks of 500 tokens of \
             all-MiniLM-L6-v2 with an overlap of 50{}. Search: passages joined into long documents, a tenth of a chunk as \
             overlap, documents ranked by their nearest chunk; a passage is found where a chunk holds half of it",
            if folder.is_some() { "" } else { ", over few texts again and again" }
        ),
        tables: vec![speed, quality(&found), targets::table(&verdicts)],
        json: json!({ "speeds": speeds, "found": found, "verdicts": verdicts }),
        summary: format!("chunk {corbie:.1} MB/s, {:.1}x text-splitter", corbie / peer),
    };
    report::publish(&report, args.keep)?;
    Ok(ExitCode::SUCCESS)
}

fn run_json<T: serde::de::DeserializeOwned>(words: &[&str]) -> Result<T> {
    let output = Command::new(PROGRAM).args(words).output().context(PROGRAM)?;
    ensure!(output.status.success(), "{PROGRAM} failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    serde_json::from_slice(&output.stdout).with_context(|| format!("what {PROGRAM} printed"))
}

fn quality(found: &[ChunkSearchScore]) -> ResultTable {
    let mut table = ResultTable::new(
        "Search",
        &[
            "set",
            "tokens",
            "compared by",
            "documents",
            "chunks",
            "nDCG@10",
            "recall@10",
            "passages in 10 chunks",
            "passages in 2,500 tokens",
        ],
    );
    let shown = |share: f64| format!("{share:.3}");
    for row in found {
        table.rows.push(vec![
            row.set.clone(),
            row.size.to_string(),
            row.way.clone(),
            row.documents.to_string(),
            row.chunks.to_string(),
            shown(row.ndcg),
            shown(row.recall),
            shown(row.passages_in_ten),
            shown(row.passages_read),
        ]);
    }
    table
}

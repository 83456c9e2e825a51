//! Sentence embeddings: corbie's built-in model compared with sentence-transformers and onnxruntime, each on one thread
//! of one core, with the same texts and the same weights.
//!
//! A contestant is a program that loads its model, reports that it is ready, and then executes orders: a number of
//! seconds, the texts, and the batch size. Rounds are interleaved, since the speed of the machine varies.

use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout, Command, ExitCode};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::Args;
use crate::machine::Machine;
use crate::process::{PinnedCore, Process};
use crate::protocol::median;
use crate::report::{self, BenchReport, ResultTable, three_digits};
use crate::targets::{self, TargetResult, at_least, at_most};

/// A measured program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
enum EmbedContestant {
    Corbie,
    /// The same model through rten, as on processors without an optimized implementation.
    CorbiePortable,
    SentenceTransformers,
    OnnxruntimeF32,
    OnnxruntimeInt8,
}

const CONTESTANTS: [EmbedContestant; 5] = [
    EmbedContestant::Corbie,
    EmbedContestant::CorbiePortable,
    EmbedContestant::SentenceTransformers,
    EmbedContestant::OnnxruntimeF32,
    EmbedContestant::OnnxruntimeInt8,
];

const PROGRAM: &str = ".tools/bench/target/release/corbie_embed";
const PYTHON: &str = ".tools/bench/embed-venv/bin/python";
const ONNX: &str = ".tools/bench/onnx";

/// Token counts and batch sizes. The better of two batch sizes counts for every contestant.
const MEASUREMENTS: [(&str, &[u32]); 4] = [("15", &[1]), ("16", &[1, 32]), ("128", &[1, 32]), ("256", &[1, 32])];

#[derive(Debug, Deserialize)]
struct EmbedBatchResult {
    embeds: f64,
    cpu_s: f64,
    p50_ms: f64,
    vector: Vec<f32>,
}

/// A running contestant.
struct ContestantProcess {
    contestant: EmbedContestant,
    process: Process,
    orders: ChildStdin,
    results: BufReader<ChildStdout>,
    load_ms: f64,
}

/// Results of one contestant with texts of one length.
#[derive(Debug, Serialize)]
struct EmbedMeasurement {
    contestant: EmbedContestant,
    tokens: &'static str,
    batch: u32,
    /// Embeddings per second of CPU time, one value per round.
    per_cpu_second: Vec<f64>,
    p50_ms: Vec<f64>,
}

#[derive(Debug, Serialize)]
struct MemoryUsage {
    contestant: EmbedContestant,
    load_ms: f64,
    resident_mb: f64,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    ensure!(args.servers.is_empty() && args.workloads.is_empty(), "`embed` has its own contestants");
    ensure!(!(args.keep && args.quick), "a quick run cannot be kept");
    let (rounds, seconds) = if args.quick { (1, 0.3) } else { (5, 2.0) };
    let rounds = args.rounds.unwrap_or(rounds);
    let mut machine = Machine::detect();
    let texts = Command::new(PROGRAM).arg("--texts").output().context(PROGRAM)?;
    let texts: Value = serde_json::from_slice(&texts.stdout).context("the texts to embed")?;

    let one_core = PinnedCore::pin()?;
    let mut running: Vec<ContestantProcess> =
        CONTESTANTS.into_iter().map(ContestantProcess::start).collect::<Result<_>>()?;
    let mut cells: Vec<EmbedMeasurement> = Vec::new();
    let mut vectors: Vec<(EmbedContestant, Vec<f32>)> = Vec::new();
    for round in 0..rounds {
        for (tokens, batches) in MEASUREMENTS {
            for &batch in batches {
                eprintln!(" round {} of {rounds}, {tokens} tokens, {batch} at a time", round + 1);
                for contestant in &mut running {
                    let done = contestant.run_batch(&texts[tokens], seconds, batch)?;
                    let who = contestant.contestant;
                    let at = cells.iter().position(|cell| cell.matches(who, tokens) && cell.batch == batch);
                    let cell = at.unwrap_or_else(|| {
                        cells.push(EmbedMeasurement {
                            contestant: who,
                            tokens,
                            batch,
                            per_cpu_second: vec![],
                            p50_ms: vec![],
                        });
                        cells.len() - 1
                    });
                    cells[cell].per_cpu_second.push(done.embeds / done.cpu_s);
                    cells[cell].p50_ms.push(done.p50_ms);
                    if tokens == "128" && round == 0 {
                        vectors.push((who, done.vector));
                    }
                }
            }
        }
    }
    let held: Vec<MemoryUsage> = running.iter().map(ContestantProcess::memory_usage).collect::<Result<_>>()?;
    drop((running, one_core));
    machine.update_load();
    let like_original = similarities(&vectors)?;

    let verdicts = evaluate_targets(&cells, &held);
    let last_line = format!(
        "embed {:.1}x sentence-transformers, {:.2}x onnxruntime int8 per CPU-second, short query {:.2}x its time, {:.0} MB",
        ratio(&cells, "128", EmbedContestant::SentenceTransformers),
        ratio(&cells, "128", EmbedContestant::OnnxruntimeInt8),
        query_ms(&cells, EmbedContestant::Corbie) / query_ms(&cells, EmbedContestant::OnnxruntimeInt8),
        held[0].resident_mb,
    );
    let report = BenchReport {
        name: "embed",
        machine,
        about: format!(
            "medians of {rounds} interleaved rounds of {seconds} s, everybody on one thread of one core, the better of 1 \
             and 32 texts at a time"
        ),
        tables: vec![speed_table(&cells), memory_table(&held, &like_original), targets::table(&verdicts)],
        json: json!({ "cells": cells, "held": held, "verdicts": verdicts }),
        summary: last_line,
    };
    report::publish(&report, args.keep)?;
    Ok(ExitCode::SUCCESS)
}

impl EmbedContestant {
    fn name(self) -> &'static str {
        match self {
            EmbedContestant::Corbie => "corbie",
            EmbedContestant::CorbiePortable => "corbie, portable",
            EmbedContestant::SentenceTransformers => "sentence-transformers",
            EmbedContestant::OnnxruntimeF32 => "onnxruntime f32",
            EmbedContestant::OnnxruntimeInt8 => "onnxruntime int8",
        }
    }

    fn command(self) -> Command {
        let word = match self {
            EmbedContestant::Corbie => return Command::new(PROGRAM),
            EmbedContestant::CorbiePortable => {
                let mut command = Command::new(PROGRAM);
                command.arg("--portable");
                return command;
            }
            EmbedContestant::SentenceTransformers => "sentence-transformers",
            EmbedContestant::OnnxruntimeF32 => "onnxruntime-f32",
            EmbedContestant::OnnxruntimeInt8 => "onnxruntime-int8",
        };
        let mut command = Command::new(PYTHON);
        command.args(["bench/peers/embed.py", word, ONNX]);
        command
    }
}

impl ContestantProcess {
    fn start(contestant: EmbedContestant) -> Result<ContestantProcess> {
        let log = format!(".tools/bench/logs/embed-{}.log", contestant.name().replace([',', ' '], "-"));
        let (process, orders, results) = Process::with_pipes(contestant.command(), &log)?;
        let mut running =
            ContestantProcess { contestant, process, orders, results: BufReader::new(results), load_ms: 0.0 };
        let _: Value =
            running.read_result().with_context(|| format!("{} did not start; see {log}", contestant.name()))?;
        running.load_ms = running.process.started.elapsed().as_secs_f64() * 1e3;
        Ok(running)
    }

    fn run_batch(&mut self, texts: &Value, seconds: f64, batch: u32) -> Result<EmbedBatchResult> {
        writeln!(self.orders, "{}", json!({ "texts": texts, "seconds": seconds, "batch": batch }))?;
        self.orders.flush()?;
        self.read_result()
    }

    fn read_result<T: serde::de::DeserializeOwned>(&mut self) -> Result<T> {
        let mut line = String::new();
        self.results.read_line(&mut line)?;
        serde_json::from_str(&line).with_context(|| format!("{} said {line:?}", self.contestant.name()))
    }

    fn memory_usage(&self) -> Result<MemoryUsage> {
        let resident_mb = self.process.resident_bytes()? as f64 / 1e6;
        Ok(MemoryUsage { contestant: self.contestant, load_ms: self.load_ms, resident_mb })
    }
}

impl EmbedMeasurement {
    fn matches(&self, contestant: EmbedContestant, tokens: &str) -> bool {
        self.contestant == contestant && self.tokens == tokens
    }
}

/// The best of the batch sizes.
fn rate(cells: &[EmbedMeasurement], tokens: &str, contestant: EmbedContestant) -> f64 {
    let rates = cells.iter().filter(|cell| cell.matches(contestant, tokens));
    rates.map(|cell| median(cell.per_cpu_second.iter().copied())).fold(f64::NAN, f64::max)
}

fn query_ms(cells: &[EmbedMeasurement], contestant: EmbedContestant) -> f64 {
    let cell = cells.iter().find(|cell| cell.matches(contestant, "15"));
    cell.map_or(f64::NAN, |cell| median(cell.p50_ms.iter().copied()))
}

/// Embeddings per CPU second of corbie, relative to another contestant.
fn ratio(cells: &[EmbedMeasurement], tokens: &str, than: EmbedContestant) -> f64 {
    rate(cells, tokens, EmbedContestant::Corbie) / rate(cells, tokens, than)
}

fn evaluate_targets(cells: &[EmbedMeasurement], held: &[MemoryUsage]) -> Vec<TargetResult> {
    let quicker = query_ms(cells, EmbedContestant::Corbie) / query_ms(cells, EmbedContestant::OnnxruntimeInt8);
    vec![
        at_least(
            "embeds per CPU-second, 128 tokens",
            ratio(cells, "128", EmbedContestant::SentenceTransformers),
            "x sentence-transformers",
            2.0,
            2.3,
        ),
        at_most("one short query (15 tokens), warm", quicker, "x onnxruntime int8", 0.8, 0.6),
        at_most("RSS with the model loaded and used", held[0].resident_mb, "MB", 150.0, 100.0),
    ]
}

fn speed_table(cells: &[EmbedMeasurement]) -> ResultTable {
    let header = ["contestant", "16 tokens", "128 tokens", "256 tokens", "short query ms", "128 tokens: corbie is"];
    let mut table = ResultTable::new("Embeddings per CPU-second", &header);
    for contestant in CONTESTANTS {
        let rate = |tokens| three_digits(rate(cells, tokens, contestant));
        table.rows.push(vec![
            contestant.name().into(),
            rate("16"),
            rate("128"),
            rate("256"),
            three_digits(query_ms(cells, contestant)),
            format!("{:.2}x", ratio(cells, "128", contestant)),
        ]);
    }
    table
}

fn memory_table(held: &[MemoryUsage], like_original: &[(EmbedContestant, f32)]) -> ResultTable {
    let mut table =
        ResultTable::new("Loaded and used", &["contestant", "RSS MB", "start to first vector ms", "cosine to f32"]);
    for held in held {
        let cosine = like_original.iter().find(|(contestant, _)| *contestant == held.contestant);
        table.rows.push(vec![
            held.contestant.name().into(),
            three_digits(held.resident_mb),
            three_digits(held.load_ms),
            cosine.map_or_else(String::new, |(_, cosine)| format!("{cosine:.4}")),
        ]);
    }
    table
}

/// All contestants must compute the same vectors: the similarity of one vector of each to the original's.
fn similarities(vectors: &[(EmbedContestant, Vec<f32>)]) -> Result<Vec<(EmbedContestant, f32)>> {
    let of = |wanted| vectors.iter().find(|(contestant, _)| *contestant == wanted).map(|(_, vector)| vector);
    let original = of(EmbedContestant::SentenceTransformers).context("the original was measured")?;
    let mut found = Vec::new();
    for contestant in CONTESTANTS {
        let vector = of(contestant).context("everybody was measured")?;
        let cosine: f32 = vector.iter().zip(original).map(|(a, b)| a * b).sum();
        ensure!(cosine > 0.95, "{} computed something else: cosine {cosine}", contestant.name());
        found.push((contestant, cosine));
    }
    Ok(found)
}

//! Retrieval quality, as reported by `corbie eval-search`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use crate::report::{ResultTable, group_thousands};

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct RetrievalQuality {
    pub(super) sets: Vec<RetrievalSet>,
    pub(super) mean: ScoresByMode,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct RetrievalSet {
    name: String,
    passages: u64,
    queries: u64,
    pub(super) scores: ScoresByMode,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ScoresByMode {
    pub(super) lexical: RetrievalScore,
    pub(super) vectors: RetrievalScore,
    pub(super) hybrid: RetrievalScore,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct RetrievalScore {
    pub(super) ndcg: f64,
    recall: f64,
}

const CORBIE: &str = ".tools/bench/target/dist/corbie";

pub(super) fn measure(sets: &Path) -> Result<RetrievalQuality> {
    let mut folders: Vec<PathBuf> =
        fs::read_dir(sets)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?;
    folders.retain(|folder| folder.join("corpus.jsonl").exists());
    folders.sort();
    eprintln!(" the questions of {} sets are asked", folders.len());
    let output = Command::new(CORBIE).args(["eval-search", "--json"]).args(&folders).output().context(CORBIE)?;
    ensure!(output.status.success(), "corbie failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    serde_json::from_slice(&output.stdout).context("what corbie says")
}

pub(super) fn table(quality: &RetrievalQuality) -> ResultTable {
    let header = ["set", "passages", "questions", "words", "vectors", "both", "gain", "recall@10"];
    let mut table = ResultTable::new("Quality, nDCG@10", &header);
    for RetrievalSet { name, passages, queries, scores } in &quality.sets {
        let counts = vec![name.clone(), group_thousands(*passages as f64), group_thousands(*queries as f64)];
        table.rows.push([counts, figures(scores)].concat());
    }
    table.rows.push([vec!["mean".into(), String::new(), String::new()], figures(&quality.mean)].concat());
    table
}

fn figures(found: &ScoresByMode) -> Vec<String> {
    let ScoresByMode { lexical: words, vectors, hybrid } = found;
    let gain = format!("{:+.1} %", 100.0 * (found.ratio() - 1.0));
    let [words, vectors, both] = [words, vectors, hybrid].map(|found| format!("{:.4}", found.ndcg));
    vec![words, vectors, both, gain, format!("{:.4}", hybrid.recall)]
}

impl ScoresByMode {
    /// Hybrid search relative to the better single method.
    pub(super) fn ratio(&self) -> f64 {
        self.hybrid.ndcg / self.lexical.ndcg.max(self.vectors.ndcg)
    }
}

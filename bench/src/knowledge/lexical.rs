//! Full-text search compared with tantivy and SQLite's FTS5, which get the same texts: the reason why corbie has its
//! own index.

use std::path::Path;
use std::process::Command;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::search::{CHUNKS_FOLDER, PROGRAM, STORES_FOLDER, run_json};
use crate::process::PinnedCore;
use crate::report::{ResultTable, group_thousands, three_digits};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Searcher {
    Corbie,
    Tantivy,
    Fts5,
}

/// Results of a search engine for this many chunks.
#[derive(Debug, Serialize)]
pub(super) struct LexicalMeasurement {
    searcher: Searcher,
    chunks: usize,
    #[serde(flatten)]
    told: LexicalStats,
}

#[derive(Debug, Serialize, Deserialize)]
struct LexicalStats {
    add_cpu_s: f64,
    plain: LexicalQueryStats,
    filtered: LexicalQueryStats,
}

#[derive(Debug, Serialize, Deserialize)]
struct LexicalQueryStats {
    cpu_ms: f64,
    p50_ms: f64,
}

const SEARCHERS: [Searcher; 3] = [Searcher::Corbie, Searcher::Tantivy, Searcher::Fts5];

/// Uses the chunks generated for [`super::search`].
pub(super) fn measure(sizes: &[usize]) -> Result<Vec<LexicalMeasurement>> {
    let _one_core = PinnedCore::pin()?;
    let mut all = Vec::new();
    // A million texts take FTS5 too long.
    for &chunks in sizes.iter().filter(|chunks| **chunks <= 100_000) {
        for searcher in SEARCHERS.into_iter().filter(|searcher| searcher.is_installed()) {
            let told: LexicalStats = run_json(&mut searcher.command(chunks))?;
            eprintln!(" {}, {chunks} chunks: {:.3} ms of CPU a query", searcher.name(), told.plain.cpu_ms);
            all.push(LexicalMeasurement { searcher, chunks, told });
        }
    }
    std::fs::remove_dir_all(STORES_FOLDER).or_else(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Ok(()),
        _ => Err(error),
    })?;
    Ok(all)
}

pub(super) fn table(all: &[LexicalMeasurement]) -> ResultTable {
    let header = [
        "chunks",
        "searcher",
        "CPU ms",
        "p50 ms",
        "filtered CPU ms",
        "filtered p50 ms",
        "corbie needs",
        "CPU s to add",
    ];
    let mut table = ResultTable::new("By words alone", &header);
    for LexicalMeasurement { searcher, chunks, told } in all {
        let own = all.iter().find(|other| other.searcher == Searcher::Corbie && other.chunks == *chunks);
        table.rows.push(vec![
            group_thousands(*chunks as f64),
            searcher.name().into(),
            format!("{:.3}", told.plain.cpu_ms),
            format!("{:.3}", told.plain.p50_ms),
            format!("{:.3}", told.filtered.cpu_ms),
            format!("{:.3}", told.filtered.p50_ms),
            own.map(|own| format!("{:.2}x", own.told.plain.cpu_ms / told.plain.cpu_ms)).unwrap_or_default(),
            three_digits(told.add_cpu_s),
        ]);
    }
    table
}

impl Searcher {
    fn name(self) -> &'static str {
        match self {
            Searcher::Corbie => "corbie",
            Searcher::Tantivy => "tantivy",
            Searcher::Fts5 => "FTS5",
        }
    }

    fn is_installed(self) -> bool {
        self == Searcher::Corbie || Path::new(super::PYTHON).exists()
    }

    fn command(self, chunks: usize) -> Command {
        let (count, store) = (chunks.to_string(), format!("{STORES_FOLDER}/words-{}-{chunks}", self.name()));
        let mut command = match self {
            Searcher::Corbie => Command::new(PROGRAM),
            Searcher::Tantivy | Searcher::Fts5 => Command::new(super::PYTHON),
        };
        match self {
            Searcher::Corbie => command.args(["words", CHUNKS_FOLDER, &count]),
            Searcher::Tantivy => command.args([super::SCRIPT, "words", "tantivy", CHUNKS_FOLDER, &count, &store]),
            Searcher::Fts5 => command.args([super::SCRIPT, "words", "fts5", CHUNKS_FOLDER, &count, &store]),
        };
        command
    }
}

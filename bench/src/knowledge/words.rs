//! Full-text search compared with tantivy and SQLite's FTS5, which get the same texts: the reason why corbie has its
//! own index.

use std::path::Path;
use std::process::Command;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::search::{CHUNKS, KEPT, PROGRAM, ask};
use crate::process::OneCore;
use crate::report::{Table, short, thousands};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Searcher {
    Corbie,
    Tantivy,
    Fts5,
}

/// Results of a search engine for this many chunks.
#[derive(Debug, Serialize)]
pub(super) struct Words {
    searcher: Searcher,
    chunks: usize,
    #[serde(flatten)]
    told: Told,
}

#[derive(Debug, Serialize, Deserialize)]
struct Told {
    add_cpu_s: f64,
    plain: Asked,
    filtered: Asked,
}

#[derive(Debug, Serialize, Deserialize)]
struct Asked {
    cpu_ms: f64,
    p50_ms: f64,
}

const SEARCHERS: [Searcher; 3] = [Searcher::Corbie, Searcher::Tantivy, Searcher::Fts5];

/// Uses the chunks generated for [`super::search`].
pub(super) fn measure(sizes: &[usize]) -> Result<Vec<Words>> {
    let _one_core = OneCore::keep()?;
    let mut all = Vec::new();
    // A million texts take FTS5 too long.
    for &chunks in sizes.iter().filter(|chunks| **chunks <= 100_000) {
        for searcher in SEARCHERS.into_iter().filter(|searcher| searcher.is_there()) {
            let told: Told = ask(&mut searcher.command(chunks))?;
            eprintln!(" {}, {chunks} chunks: {:.3} ms of CPU a query", searcher.name(), told.plain.cpu_ms);
            all.push(Words { searcher, chunks, told });
        }
    }
    std::fs::remove_dir_all(KEPT).or_else(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Ok(()),
        _ => Err(error),
    })?;
    Ok(all)
}

pub(super) fn table(all: &[Words]) -> Table {
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
    let mut table = Table::new("By words alone", &header);
    for Words { searcher, chunks, told } in all {
        let own = all.iter().find(|other| other.searcher == Searcher::Corbie && other.chunks == *chunks);
        table.rows.push(vec![
            thousands(*chunks as f64),
            searcher.name().into(),
            format!("{:.3}", told.plain.cpu_ms),
            format!("{:.3}", told.plain.p50_ms),
            format!("{:.3}", told.filtered.cpu_ms),
            format!("{:.3}", told.filtered.p50_ms),
            own.map(|own| format!("{:.2}x", own.told.plain.cpu_ms / told.plain.cpu_ms)).unwrap_or_default(),
            short(told.add_cpu_s),
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

    fn is_there(self) -> bool {
        self == Searcher::Corbie || Path::new(super::PYTHON).exists()
    }

    fn command(self, chunks: usize) -> Command {
        let (count, store) = (chunks.to_string(), format!("{KEPT}/words-{}-{chunks}", self.name()));
        let mut command = match self {
            Searcher::Corbie => Command::new(PROGRAM),
            Searcher::Tantivy | Searcher::Fts5 => Command::new(super::PYTHON),
        };
        match self {
            Searcher::Corbie => command.args(["words", CHUNKS, &count]),
            Searcher::Tantivy => command.args([super::SCRIPT, "words", "tantivy", CHUNKS, &count, &store]),
            Searcher::Fts5 => command.args([super::SCRIPT, "words", "fts5", CHUNKS, &count, &store]),
        };
        command
    }
}

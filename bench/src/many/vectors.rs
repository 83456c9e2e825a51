//! Vector search compared with plain pgvector: one table with the same vectors, same queries.

use std::process::Command;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::filled::Filled;
use crate::knowledge::search::{CHUNKS, ask};
use crate::report::{Table, short, thousands};

#[derive(Debug, Serialize)]
pub(super) struct Vectors {
    pub(super) chunks: usize,
    #[serde(flatten)]
    pub(super) told: Told,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Told {
    pub(super) corbie: Asked,
    /// With the fastest setting of equal recall, interleaved with corbie.
    pub(super) plain: Asked,
    /// The plain table with higher and lower settings.
    efforts: Vec<Asked>,
    pub(super) filtered: Vec<Filtered>,
    index_s: f64,
    plain_index_s: f64,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Asked {
    #[serde(default)]
    ef_search: u64,
    /// Number of neighbours requested.
    #[serde(default)]
    limit: u64,
    pub(super) p50_ms: f64,
    p99_ms: f64,
    /// Of the ten nearest of all vectors.
    pub(super) recall: f64,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Filtered {
    percent: u64,
    #[serde(flatten)]
    pub(super) asked: Asked,
}

const NEAR: &str = ".tools/bench/target/debug/examples/near_store";

pub(super) fn measure(filled: &Filled) -> Result<Vectors> {
    let told: Told = ask(Command::new(NEAR).args([&filled.database.address, CHUNKS]))?;
    let vectors = Vectors { chunks: filled.chunks, told };
    eprintln!(
        " vectors of {} chunks: {:.2} ms, {:.2}x plain pgvector; recall {:.4}",
        vectors.chunks,
        vectors.told.corbie.p50_ms,
        vectors.ratio(),
        vectors.told.corbie.recall
    );
    Ok(vectors)
}

impl Vectors {
    pub(super) fn ratio(&self) -> f64 {
        self.told.corbie.p50_ms / self.told.plain.p50_ms
    }

    /// The lowest recall with a filter, relative to the recall without one.
    pub(super) fn kept(&self) -> f64 {
        let shares = self.told.filtered.iter().map(|filtered| filtered.asked.recall / self.told.corbie.recall);
        shares.fold(f64::INFINITY, f64::min)
    }
}

pub(super) fn table(all: &[Vectors]) -> Table {
    let header = ["chunks", "who", "ef_search", "neighbours", "p50 ms", "p99 ms", "recall@10", "corbie takes"];
    let mut table = Table::new("Vectors alone", &header);
    for vectors in all {
        let Told { corbie, plain, efforts, .. } = &vectors.told;
        let mut row = |who: &str, asked: &Asked| {
            let takes = (who != "corbie").then(|| format!("{:.2}x", corbie.p50_ms / asked.p50_ms));
            table.rows.push(vec![
                thousands(vectors.chunks as f64),
                who.into(),
                asked.ef_search.to_string(),
                asked.limit.to_string(),
                format!("{:.3}", asked.p50_ms),
                format!("{:.3}", asked.p99_ms),
                format!("{:.4}", asked.recall),
                takes.unwrap_or_default(),
            ]);
        };
        row("corbie", corbie);
        row("plain pgvector, in turn with corbie", plain);
        efforts.iter().for_each(|asked| row("plain pgvector", asked));
    }
    table
}

pub(super) fn filtered_table(all: &[Vectors]) -> Table {
    let header = ["chunks", "documents allowed", "p50 ms", "p99 ms", "recall@10", "of that without a filter"];
    let mut table = Table::new("Vectors with a filter", &header);
    for vectors in all {
        let mut row = |percent: u64, asked: &Asked| {
            table.rows.push(vec![
                thousands(vectors.chunks as f64),
                format!("{percent} %"),
                format!("{:.3}", asked.p50_ms),
                format!("{:.3}", asked.p99_ms),
                format!("{:.4}", asked.recall),
                format!("{:.3}x", asked.recall / vectors.told.corbie.recall),
            ]);
        };
        row(100, &vectors.told.corbie);
        vectors.told.filtered.iter().for_each(|filtered| row(filtered.percent, &filtered.asked));
    }
    table
}

pub(super) fn index_table(all: &[Vectors]) -> Table {
    let mut table =
        Table::new("Making the index over vectors", &["chunks", "corbie, after the move, s", "plain pgvector, s"]);
    for Vectors { chunks, told } in all {
        table.rows.push(vec![thousands(*chunks as f64), short(told.index_s), short(told.plain_index_s)]);
    }
    table
}

//! Vector search compared with plain pgvector: one table with the same vectors, same queries.

use std::process::Command;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::populated_base::PopulatedBase;
use crate::knowledge::search::{CHUNKS_FOLDER, run_json};
use crate::report::{ResultTable, group_thousands, three_digits};

#[derive(Debug, Serialize)]
pub(super) struct VectorMeasurement {
    pub(super) chunks: usize,
    #[serde(flatten)]
    pub(super) told: VectorStats,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct VectorStats {
    pub(super) corbie: VectorQueryStats,
    /// With the fastest setting of equal recall, interleaved with corbie.
    pub(super) plain: VectorQueryStats,
    /// The plain table with higher and lower settings.
    efforts: Vec<VectorQueryStats>,
    pub(super) filtered: Vec<FilteredStats>,
    index_s: f64,
    plain_index_s: f64,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct VectorQueryStats {
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
pub(super) struct FilteredStats {
    percent: u64,
    #[serde(flatten)]
    pub(super) asked: VectorQueryStats,
}

const COMPARE_PGVECTOR: &str = ".tools/bench/target/debug/examples/compare_pgvector";

pub(super) fn measure(filled: &PopulatedBase) -> Result<VectorMeasurement> {
    let told: VectorStats = run_json(Command::new(COMPARE_PGVECTOR).args([&filled.database.address, CHUNKS_FOLDER]))?;
    let vectors = VectorMeasurement { chunks: filled.chunks, told };
    eprintln!(
        " vectors of {} chunks: {:.2} ms, {:.2}x plain pgvector; recall {:.4}",
        vectors.chunks,
        vectors.told.corbie.p50_ms,
        vectors.ratio(),
        vectors.told.corbie.recall
    );
    Ok(vectors)
}

impl VectorMeasurement {
    pub(super) fn ratio(&self) -> f64 {
        self.told.corbie.p50_ms / self.told.plain.p50_ms
    }

    /// The lowest recall with a filter, relative to the recall without one.
    pub(super) fn min_filtered_recall(&self) -> f64 {
        let shares = self.told.filtered.iter().map(|filtered| filtered.asked.recall / self.told.corbie.recall);
        shares.fold(f64::INFINITY, f64::min)
    }
}

pub(super) fn table(all: &[VectorMeasurement]) -> ResultTable {
    let header = ["chunks", "who", "ef_search", "neighbours", "p50 ms", "p99 ms", "recall@10", "corbie takes"];
    let mut table = ResultTable::new("Vectors alone", &header);
    for vectors in all {
        let VectorStats { corbie, plain, efforts, .. } = &vectors.told;
        let mut row = |who: &str, asked: &VectorQueryStats| {
            let takes = (who != "corbie").then(|| format!("{:.2}x", corbie.p50_ms / asked.p50_ms));
            table.rows.push(vec![
                group_thousands(vectors.chunks as f64),
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

pub(super) fn filtered_table(all: &[VectorMeasurement]) -> ResultTable {
    let header = ["chunks", "documents allowed", "p50 ms", "p99 ms", "recall@10", "of that without a filter"];
    let mut table = ResultTable::new("Vectors with a filter", &header);
    for vectors in all {
        let mut row = |percent: u64, asked: &VectorQueryStats| {
            table.rows.push(vec![
                group_thousands(vectors.chunks as f64),
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

pub(super) fn index_table(all: &[VectorMeasurement]) -> ResultTable {
    let mut table = ResultTable::new(
        "Making the index over vectors",
        &["chunks", "corbie, after the move, s", "plain pgvector, s"],
    );
    for VectorMeasurement { chunks, told } in all {
        table.rows.push(vec![
            group_thousands(*chunks as f64),
            three_digits(told.index_s),
            three_digits(told.plain_index_s),
        ]);
    }
    table
}

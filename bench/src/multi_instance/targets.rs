//! Targets for several instances on PostgreSQL and their results. Reported, never enforced, as in `protocol`.

use super::StoreKind;
use super::ingest::{self, IngestRun};
use super::load::{self, SearchMeasurement};
use super::quality::{self, RetrievalSetScores};
use super::vectors::VectorMeasurement;
use crate::targets::{TargetResult, at_least, at_most};

/// The base size of the target.
const TARGET_CHUNKS: usize = 100_000;

pub(super) fn evaluate_targets(vectors: &[VectorMeasurement], sets: &[RetrievalSetScores]) -> Vec<TargetResult> {
    let mut verdicts = Vec::new();
    if let Some(vectors) = vectors.iter().find(|vectors| vectors.chunks == TARGET_CHUNKS) {
        let what = "100,000 chunks: the vector part, p50";
        verdicts.push(without_goal(at_most(what, vectors.ratio(), "x plain pgvector", 2.0, 2.0)));
        let what = "100,000 chunks: recall@10 of the vector part";
        verdicts.push(share_target(what, vectors.told.corbie.recall, 0.98));
        let what = "100,000 chunks: recall@10 with a filter to that without, worst of three";
        verdicts.push(share_target(what, vectors.min_filtered_recall(), 1.0));
    }
    if let Some(worst) = quality::worst_ratio(sets) {
        verdicts.push(share_target("nDCG@10 on PostgreSQL to that of the embedded store, worst set", worst, 0.98));
    }
    verdicts
}

/// One-line summary.
pub(super) fn summary(
    sizes: &[usize],
    cells: &[SearchMeasurement],
    vectors: &[VectorMeasurement],
    ingested: &[IngestRun],
) -> String {
    let mut parts = Vec::new();
    for &chunks in sizes {
        parts.extend(
            load::latency_ratio(cells, chunks).map(|ratio| format!("{chunks} chunks: search {ratio:.2}x embedded")),
        );
        parts.extend(load::scaling_ratio(cells, chunks, 4).map(|ratio| format!("4 instances {ratio:.2}x one")));
        let vectors = vectors.iter().find(|vectors| vectors.chunks == chunks);
        parts.extend(vectors.map(|vectors| format!("vectors {:.2}x plain pgvector", vectors.ratio())));
        let one = ingest::find(ingested, chunks, StoreKind::Postgres, 1);
        let beside = one.and_then(|one| ingest::ratio_to_embedded(ingested, one));
        parts.extend(beside.map(|ratio| format!("ingest {ratio:.2}x embedded")));
    }
    format!("many {}", parts.join("; "))
}

/// Rounded to three digits, more than the precision of the target.
fn share_target(what: &'static str, measured: f64, floor: f64) -> TargetResult {
    let rounded = (measured * 1e3).round() / 1e3;
    let verdict = without_goal(at_least(what, rounded, "", floor, floor));
    TargetResult { measured: format!("{measured:.4}"), floor: format!(">= {floor}"), ..verdict }
}

fn without_goal(verdict: TargetResult) -> TargetResult {
    TargetResult { goal: "-".into(), goal_met: true, ..verdict }
}

//! Targets for several instances on PostgreSQL and their results. Reported, never enforced, as in `protocol`.

use super::Kept;
use super::ingest::{self, Ingested};
use super::load::{self, Cell};
use super::quality::{self, Set};
use super::vectors::Vectors;
use crate::verdict::{Verdict, at_least, at_most};

/// The base size of the target.
const CHUNKS: usize = 100_000;

pub(super) fn judge(vectors: &[Vectors], sets: &[Set]) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    if let Some(vectors) = vectors.iter().find(|vectors| vectors.chunks == CHUNKS) {
        let what = "100,000 chunks: the vector part, p50";
        verdicts.push(without_goal(at_most(what, vectors.ratio(), "x plain pgvector", 2.0, 2.0)));
        let what = "100,000 chunks: recall@10 of the vector part";
        verdicts.push(share(what, vectors.told.corbie.recall, 0.98));
        let what = "100,000 chunks: recall@10 with a filter to that without, worst of three";
        verdicts.push(share(what, vectors.kept(), 1.0));
    }
    if let Some(worst) = quality::worst(sets) {
        verdicts.push(share("nDCG@10 on PostgreSQL to that of the embedded store, worst set", worst, 0.98));
    }
    verdicts
}

/// One-line summary.
pub(super) fn outcome(sizes: &[usize], cells: &[Cell], vectors: &[Vectors], ingested: &[Ingested]) -> String {
    let mut parts = Vec::new();
    for &chunks in sizes {
        parts.extend(load::latency(cells, chunks).map(|ratio| format!("{chunks} chunks: search {ratio:.2}x embedded")));
        parts.extend(load::gain(cells, chunks, 4).map(|ratio| format!("4 instances {ratio:.2}x one")));
        let vectors = vectors.iter().find(|vectors| vectors.chunks == chunks);
        parts.extend(vectors.map(|vectors| format!("vectors {:.2}x plain pgvector", vectors.ratio())));
        let one = ingest::find(ingested, chunks, Kept::Postgres, 1);
        let beside = one.and_then(|one| ingest::beside(ingested, one));
        parts.extend(beside.map(|ratio| format!("ingest {ratio:.2}x embedded")));
    }
    format!("many {}", parts.join("; "))
}

/// Rounded to three digits, more than the precision of the target.
fn share(what: &'static str, measured: f64, floor: f64) -> Verdict {
    let rounded = (measured * 1e3).round() / 1e3;
    let verdict = without_goal(at_least(what, rounded, "", floor, floor));
    Verdict { measured: format!("{measured:.4}"), floor: format!(">= {floor}"), ..verdict }
}

fn without_goal(verdict: Verdict) -> Verdict {
    Verdict { goal: "-".into(), goal_met: true, ..verdict }
}

//! Targets for the knowledge base and their results. Reported, never enforced, as in `protocol`.

use super::corbie_server::SearchStats;
use super::quality::RetrievalQuality;
use super::search::{IndexLoadTime, StoreMeasurement, VectorStoreKind, find};
use super::{IngestComparison, StartupTimes};
use crate::targets::{TargetResult, at_least, at_most};

/// By number of chunks: CPU time of a query, of a filtered query, and recall, each with floor and goal.
const SEARCH_TARGETS: [(usize, [&str; 3], (f64, f64), (f64, f64)); 3] = [
    (
        10_000,
        ["10,000 chunks: CPU of a query", "10,000 chunks: CPU of a filtered query", "10,000 chunks: recall@10"],
        (1.0, 0.3),
        (0.99, 0.99),
    ),
    (
        100_000,
        ["100,000 chunks: CPU of a query", "100,000 chunks: CPU of a filtered query", "100,000 chunks: recall@10"],
        (5.0, 1.5),
        (0.99, 0.99),
    ),
    (
        1_000_000,
        [
            "1,000,000 chunks: CPU of a query",
            "1,000,000 chunks: CPU of a filtered query",
            "1,000,000 chunks: recall@10",
        ],
        (25.0, 8.0),
        (0.95, 0.98),
    ),
];

pub(super) fn evaluate_targets(
    cells: &[StoreMeasurement],
    starts: &[IndexLoadTime],
    ingest: Option<&IngestComparison>,
    searched: Option<&SearchStats>,
    started: Option<&StartupTimes>,
    quality: Option<&RetrievalQuality>,
) -> Vec<TargetResult> {
    let mut verdicts = Vec::new();
    for (chunks, [plain, filtered, recall], (floor, goal), (recall_floor, recall_goal)) in SEARCH_TARGETS {
        if let Some(cell) = find(cells, VectorStoreKind::Corbie, chunks) {
            verdicts.push(at_most(plain, cell.told.plain.cpu_ms, "ms", floor, goal));
            verdicts.push(at_most(filtered, cell.told.filtered.cpu_ms, "ms", floor, goal));
            verdicts.push(share_target(
                recall,
                cell.told.plain.recall.min(cell.told.filtered.recall),
                recall_floor,
                recall_goal,
            ));
        }
    }
    if let Some(start) = starts.iter().find(|start| start.chunks == 100_000) {
        verdicts.push(at_most(
            "the index of 100,000 chunks, from files to the first answer",
            start.wall_s,
            "s",
            4.0,
            1.5,
        ));
    }
    if let Some(started) = started.filter(|started| started.chunks == 100_000) {
        let what = "the program with 100,000 chunks, from its start to the first answer";
        verdicts.push(at_most(what, started.kept_s, "s", 4.0, 1.5));
    }
    if let Some(ratio) = ingest.and_then(IngestComparison::ratio) {
        verdicts.push(at_least("ingest: the same files by CPU time", ratio, "x the usual design", 2.0, 3.0));
    }
    if let Some(searched) = searched {
        verdicts.push(at_most("`knowledge-search` over HTTP: p50", searched.p50_ms, "ms", 8.0, 3.0));
        verdicts.push(TargetResult {
            floor: "-".into(),
            floor_met: true,
            ..at_most("`knowledge-search` over HTTP: p99", searched.p99_ms, "ms", 8.0, 8.0)
        });
        if searched.chunks >= 10_000 {
            verdicts.push(at_most("memory at 10,000 documents", searched.rss_mb, "MB", 800.0, 400.0));
        }
    }
    if let Some(quality) = quality {
        let worst = quality.sets.iter().map(|set| set.scores.ratio()).fold(f64::INFINITY, f64::min);
        verdicts.push(TargetResult {
            goal: "-".into(),
            goal_met: true,
            ..share_target("nDCG@10 of both to the better of one, worst set", worst, 1.0, 1.0)
        });
        verdicts.push(share_target("nDCG@10 of both to the better of one, mean", quality.mean.ratio(), 1.0, 1.03));
    }
    verdicts
}

/// One-line summary: corbie compared with Chroma and the usual design.
pub(super) fn summary(cells: &[StoreMeasurement], ingest: Option<&IngestComparison>) -> String {
    let mut parts = Vec::new();
    for chunks in [1_000, 10_000, 100_000] {
        if let (Some(own), Some(chroma)) =
            (find(cells, VectorStoreKind::Corbie, chunks), find(cells, VectorStoreKind::Chroma, chunks))
        {
            let (plain, filtered) = (&own.told.plain, &own.told.filtered);
            let times = [chroma.told.plain.cpu_ms / plain.cpu_ms, chroma.told.filtered.cpu_ms / filtered.cpu_ms];
            parts.push(format!("{chunks} chunks {:.1}x Chroma, filtered {:.1}x", times[0], times[1]));
        }
    }
    parts.extend(ingest.and_then(IngestComparison::ratio).map(|ratio| format!("ingest {ratio:.1}x the usual design")));
    if parts.is_empty() { "no ratio: no peer was measured".into() } else { format!("knowledge {}", parts.join("; ")) }
}

/// Rounded to three digits, the precision of the target.
fn share_target(what: &'static str, measured: f64, floor: f64, goal: f64) -> TargetResult {
    let verdict = at_least(what, measured, "", floor, goal);
    let (floor, goal) = (format!(">= {floor}"), format!(">= {goal}"));
    TargetResult { measured: format!("{measured:.3}"), floor, goal, ..verdict }
}

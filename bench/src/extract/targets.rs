//! Targets for documents and their results. Reported, never enforced, as in `protocol`.

use super::extractor::Extractor;
use super::files::ExtractionTask;
use super::{TaskResults, find, speed};
use crate::report::three_digits;
use crate::targets::TargetResult;

/// The targets for one format: floor and goal for the F1 of words and optionally of bigrams, and the speed relative to
/// a peer.
struct FormatTarget {
    task: fn() -> ExtractionTask,
    words: (&'static str, f64, f64),
    bigrams: Option<(&'static str, f64, f64)>,
    speedup: Option<(&'static str, Extractor, f64, f64)>,
}

const FORMAT_TARGETS: [FormatTarget; 6] = [
    FormatTarget {
        task: || ExtractionTask::All("pdf".into()),
        words: ("PDF: word F1", 0.97, 0.985),
        bigrams: Some(("PDF: bigram F1", 0.93, 0.955)),
        speedup: Some(("PDF: pages per CPU-second", Extractor::Kreuzberg, 2.0, 3.0)),
    },
    FormatTarget {
        task: || ExtractionTask::All("docx".into()),
        words: ("DOCX: word F1", 0.98, 0.99),
        bigrams: None,
        speedup: Some(("DOCX: files per CPU-second", Extractor::Kreuzberg, 2.0, 2.0)),
    },
    FormatTarget {
        task: || ExtractionTask::All("pptx".into()),
        words: ("PPTX: word F1", 0.965, 0.97),
        bigrams: None,
        speedup: Some(("PPTX: files per CPU-second", Extractor::Kreuzberg, 2.0, 2.0)),
    },
    FormatTarget {
        task: || ExtractionTask::All("xlsx".into()),
        words: ("XLSX: word F1", 0.992, 0.995),
        bigrams: None,
        speedup: Some(("XLSX: files per CPU-second", Extractor::Kreuzberg, 2.0, 2.0)),
    },
    FormatTarget {
        task: || ExtractionTask::All("html".into()),
        words: ("HTML, all text: word F1", 0.98, 0.99),
        bigrams: None,
        speedup: Some(("HTML: files per CPU-second", Extractor::Trafilatura, 8.0, 8.0)),
    },
    FormatTarget {
        task: || ExtractionTask::Article,
        words: ("HTML, article: word F1", 0.93, 0.95),
        bigrams: None,
        speedup: None,
    },
];

pub(super) fn evaluate_targets(rows: &[TaskResults]) -> Vec<TargetResult> {
    let mut verdicts = Vec::new();
    for FormatTarget { task, words, bigrams, speedup: faster } in &FORMAT_TARGETS {
        let task = task();
        let Some(score) = find(rows, &task, Extractor::Corbie).and_then(TaskResults::score) else { continue };
        verdicts.push(share_target(*words, score.words));
        verdicts.extend(bigrams.map(|bigrams| share_target(bigrams, score.bigrams)));
        if let Some(score) = find(rows, &task, Extractor::Corbie).and_then(TaskResults::score_of_text) {
            let (_, floor, goal) = *words;
            verdicts.push(share_target(("the same, without references that are no text", floor, goal), score.words));
            let pairs = bigrams.map(|(_, floor, goal)| ("… and its bigram F1", floor, goal));
            verdicts.extend(pairs.map(|pairs| share_target(pairs, score.bigrams)));
        }
        if let Some((what, peer, floor, goal)) = *faster {
            // Without common files there is nothing to compare.
            let ratio = speed(rows, &task, peer).unwrap_or_default();
            let unit = format!("x {}", peer.name());
            verdicts.push(crate::targets::at_least(what, ratio, &unit, floor, goal));
        }
    }
    verdicts
}

/// One-line summary: corbie compared with the peers.
pub(super) fn summary(rows: &[TaskResults]) -> String {
    let own = rows.iter().filter(|row| row.extractor == Extractor::Corbie);
    let parts: Vec<String> = own
        .filter_map(|row| {
            let score = row.score()?;
            let peers = rows.iter().filter(|peer| peer.task == row.task && peer.extractor != Extractor::Corbie);
            let peers = peers.filter_map(|peer| {
                let ratio =
                    speed(rows, &row.task, peer.extractor).map(|ratio| format!(", {}x its speed", three_digits(ratio)));
                Some(format!("{} {:.3}{}", peer.extractor.name(), peer.score()?.words, ratio.unwrap_or_default()))
            });
            let peers = peers.collect::<Vec<_>>().join("; ");
            Some(format!("{} word F1 {:.3} ({peers})", row.task.name(), score.words))
        })
        .collect();
    format!("extract {}", parts.join(", "))
}

/// Rounded to three digits, the precision of the target.
fn share_target((what, floor, goal): (&'static str, f64, f64), measured: f64) -> TargetResult {
    TargetResult {
        what,
        measured: format!("{measured:.3}"),
        floor: format!(">= {floor}"),
        floor_met: measured >= floor,
        goal: format!(">= {goal}"),
        goal_met: measured >= goal,
    }
}

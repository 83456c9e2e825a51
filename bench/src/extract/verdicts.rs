//! Targets for documents and their results. Reported, never enforced, as in `protocol`.

use super::extractor::Extractor;
use super::files::Task;
use super::{Row, find, speed};
use crate::report::short;
use crate::verdict::Verdict;

/// The targets for one format: floor and goal for the F1 of words and optionally of bigrams, and the speed relative to
/// a peer.
struct Promise {
    task: fn() -> Task,
    words: (&'static str, f64, f64),
    bigrams: Option<(&'static str, f64, f64)>,
    faster: Option<(&'static str, Extractor, f64, f64)>,
}

const PROMISES: [Promise; 6] = [
    Promise {
        task: || Task::All("pdf".into()),
        words: ("PDF: word F1", 0.97, 0.985),
        bigrams: Some(("PDF: bigram F1", 0.93, 0.955)),
        faster: Some(("PDF: pages per CPU-second", Extractor::Kreuzberg, 2.0, 3.0)),
    },
    Promise {
        task: || Task::All("docx".into()),
        words: ("DOCX: word F1", 0.98, 0.99),
        bigrams: None,
        faster: Some(("DOCX: files per CPU-second", Extractor::Kreuzberg, 2.0, 2.0)),
    },
    Promise {
        task: || Task::All("pptx".into()),
        words: ("PPTX: word F1", 0.965, 0.97),
        bigrams: None,
        faster: Some(("PPTX: files per CPU-second", Extractor::Kreuzberg, 2.0, 2.0)),
    },
    Promise {
        task: || Task::All("xlsx".into()),
        words: ("XLSX: word F1", 0.992, 0.995),
        bigrams: None,
        faster: Some(("XLSX: files per CPU-second", Extractor::Kreuzberg, 2.0, 2.0)),
    },
    Promise {
        task: || Task::All("html".into()),
        words: ("HTML, all text: word F1", 0.98, 0.99),
        bigrams: None,
        faster: Some(("HTML: files per CPU-second", Extractor::Trafilatura, 8.0, 8.0)),
    },
    Promise { task: || Task::Article, words: ("HTML, article: word F1", 0.93, 0.95), bigrams: None, faster: None },
];

pub(super) fn judge(rows: &[Row]) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    for Promise { task, words, bigrams, faster } in &PROMISES {
        let task = task();
        let Some(score) = find(rows, &task, Extractor::Corbie).and_then(Row::score) else { continue };
        verdicts.push(share(*words, score.words));
        verdicts.extend(bigrams.map(|bigrams| share(bigrams, score.bigrams)));
        if let Some(score) = find(rows, &task, Extractor::Corbie).and_then(Row::score_of_text) {
            let (_, floor, goal) = *words;
            verdicts.push(share(("the same, without references that are no text", floor, goal), score.words));
            let pairs = bigrams.map(|(_, floor, goal)| ("… and its bigram F1", floor, goal));
            verdicts.extend(pairs.map(|pairs| share(pairs, score.bigrams)));
        }
        if let Some((what, peer, floor, goal)) = *faster {
            // Without common files there is nothing to compare.
            let ratio = speed(rows, &task, peer).unwrap_or_default();
            let unit = format!("x {}", peer.name());
            verdicts.push(crate::verdict::at_least(what, ratio, &unit, floor, goal));
        }
    }
    verdicts
}

/// One-line summary: corbie compared with the peers.
pub(super) fn outcome(rows: &[Row]) -> String {
    let own = rows.iter().filter(|row| row.extractor == Extractor::Corbie);
    let parts: Vec<String> = own
        .filter_map(|row| {
            let score = row.score()?;
            let peers = rows.iter().filter(|peer| peer.task == row.task && peer.extractor != Extractor::Corbie);
            let peers = peers.filter_map(|peer| {
                let ratio =
                    speed(rows, &row.task, peer.extractor).map(|ratio| format!(", {}x its speed", short(ratio)));
                Some(format!("{} {:.3}{}", peer.extractor.name(), peer.score()?.words, ratio.unwrap_or_default()))
            });
            let peers = peers.collect::<Vec<_>>().join("; ");
            Some(format!("{} word F1 {:.3} ({peers})", row.task.name(), score.words))
        })
        .collect();
    format!("extract {}", parts.join(", "))
}

/// Rounded to three digits, the precision of the target.
fn share((what, floor, goal): (&'static str, f64, f64), measured: f64) -> Verdict {
    Verdict {
        what,
        measured: format!("{measured:.3}"),
        floor: format!(">= {floor}"),
        floor_met: measured >= floor,
        goal: format!(">= {goal}"),
        goal_met: measured >= goal,
    }
}

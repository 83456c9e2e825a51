//! Renders a [`RetrievalReport`] as plain text, suitable for pipes and diffs.

use super::{DatasetResult, EmptyResultCount, IrMetrics, MetricsByMode, QueryKind, RetrievalReport};
use crate::evaluate::Calibration;

/// The report for people. Ends with a newline.
pub fn render(report: &RetrievalReport) -> String {
    let mut sections = vec![quality(report)];
    sections.extend(report.reliability.as_ref().map(reliability));
    sections.push(empty_results(&report.sets));
    let sections = sections.iter().filter(|lines| !lines.is_empty());
    sections.map(|lines| lines.join("\n") + "\n").collect::<Vec<_>>().join("\n")
}

fn quality(report: &RetrievalReport) -> Vec<String> {
    let top = report.top;
    let mut lines = vec![
        format!(
            "{:<16} {:>8} {:>8} {:>7}   nDCG@{top:<4}{:>23}   recall@{top}",
            "", "passages", "chunks", "queries", ""
        ),
        format!("{:<16} {:>8} {:>8} {:>7}   {MODE_HEADER}  gain   {MODE_HEADER}", "", "", "", ""),
    ];
    for set in &report.sets {
        let DatasetResult { name, passages, chunks, queries, scores, .. } = set;
        let counts = format!("{:<16} {passages:>8} {chunks:>8} {queries:>7}", printable(name));
        lines.push(format!("{counts}   {}", figures(scores)));
    }
    if report.sets.len() > 1 {
        lines.push(format!("{:<16} {:>8} {:>8} {:>7}   {}", "mean", "", "", "", figures(&report.mean)));
    }
    lines
}

const MODE_HEADER: &str = "lexical vectors  hybrid";

fn figures(modes: &MetricsByMode) -> String {
    let ways = [modes.lexical, modes.vectors, modes.hybrid];
    let shown = |figure: fn(IrMetrics) -> f64| {
        let cell =
            |way: Option<IrMetrics>| format!("{:>7}", way.map_or("-".to_owned(), |way| format!("{:.4}", figure(way))));
        ways.map(cell).join(" ")
    };
    let gain = modes.gain().map_or("-".to_owned(), |gain| format!("{:+.1} %", 100.0 * gain));
    format!("{} {gain:>7} {}", shown(|found| found.ndcg), shown(|found| found.recall))
}

fn reliability(calibration: &Calibration) -> Vec<String> {
    let error = calibration.error.map_or("-".to_owned(), |error| format!("{error:.3}"));
    let mut lines = vec![
        format!("Relevance: expected calibration error {error}"),
        "  relevance    hits     mean  answers".to_owned(),
    ];
    for bin in calibration.bins.iter().filter(|bin| bin.count > 0) {
        let share = |share: Option<f64>| share.map_or("-".to_owned(), |share| format!("{share:.3}"));
        let (mean, right) = (share(bin.confidence), share(bin.accuracy));
        lines.push(format!("  {:.2}-{:.2} {:>9} {mean:>8} {right:>8}", bin.lower, bin.upper, bin.count));
    }
    lines
}

fn empty_results(sets: &[DatasetResult]) -> Vec<String> {
    // The share of empty results for answerable queries means little without the unanswerable ones for comparison.
    if sets.iter().all(|set| set.empty_results.len() < 2) {
        return Vec::new();
    }
    let mut lines = vec!["Queries without results".to_owned()];
    for set in sets {
        for EmptyResultCount { kind, queries, empty_results: nothing } in &set.empty_results {
            let share =
                if *queries > 0 { format!("{:.1} %", 100.0 * *nothing as f64 / *queries as f64) } else { "-".into() };
            let name = printable(&set.name);
            lines.push(format!("  {share:>7}  of {queries:>5} {}, {name}", describe(*kind)));
        }
    }
    lines
}

fn describe(kind: QueryKind) -> &'static str {
    match kind {
        QueryKind::Answered => "with an answer",
        QueryKind::AnswersRemoved => "whose answers were removed",
        QueryKind::OtherDatasets => "from other datasets",
        QueryKind::SmallTalk => "small talk and nonsense",
    }
}

/// Replaces control characters: a file name must not emit terminal escape sequences.
fn printable(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { '\u{fffd}' } else { letter }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_reads_like_this() {
        let found = |ndcg| Some(IrMetrics { ndcg, recall: ndcg / 2.0 });
        let modes = MetricsByMode { lexical: found(0.5), vectors: found(0.4), hybrid: found(0.55) };
        let empty_results = vec![
            EmptyResultCount { kind: QueryKind::Answered, queries: 40, empty_results: 1 },
            EmptyResultCount { kind: QueryKind::SmallTalk, queries: 32, empty_results: 32 },
        ];
        let judged = vec![(0.95, true), (0.95, false)];
        let (name, scores) = ("owls\u{1b}".to_owned(), modes);
        let set = DatasetResult {
            name,
            passages: 100,
            chunks: 120,
            queries: 40,
            scores,
            empty_results,
            relevance_labels: judged,
        };
        assert_eq!(render(&RetrievalReport::of(vec![set], 10)), EXPECTED);
    }

    const EXPECTED: &str = "                 passages   chunks queries   nDCG@10                            recall@10
                                             lexical vectors  hybrid  gain   lexical vectors  hybrid
owls\u{fffd}                 100      120      40    0.5000  0.4000  0.5500 +10.0 %  0.2500  0.2000  0.2750

Relevance: expected calibration error 0.450
  relevance    hits     mean  answers
  0.93-1.00         2    0.950    0.500

Queries without results
    2.5 %  of    40 with an answer, owls\u{fffd}
  100.0 %  of    32 small talk and nonsense, owls\u{fffd}
";

    #[test]
    fn what_was_not_measured_is_not_made_up() {
        let modes = MetricsByMode { lexical: Some(IrMetrics::default()), ..MetricsByMode::default() };
        let name = "a".to_owned();
        let set = DatasetResult {
            name,
            passages: 1,
            chunks: 1,
            queries: 1,
            scores: modes,
            empty_results: vec![],
            relevance_labels: vec![],
        };
        let report = RetrievalReport::of(vec![set], 5);
        assert_eq!(report.reliability, None);
        let text = render(&report);
        assert!(text.contains("nDCG@5") && text.contains(" - "), "{text}");
        assert!(!text.contains("Relevance") && !text.contains("Queries without results"), "{text}");
    }
}

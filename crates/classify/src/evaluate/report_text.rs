//! Renders a [`EvaluationReport`] as plain text for a terminal.
//!
//! No colours, so that the text can be piped, mailed and compared. Names are last on their lines, where their width
//! cannot shift a column.

use super::accuracy::CONFIDENCE_THRESHOLD;
use super::{Bin, CategoryMetrics, Confusion, EvaluationReport, Latency, OutOfScopeMetrics, RejectionPoint};

/// Number of worst categories and most frequent confusions shown; the JSON has all.
const MAX_SHOWN: usize = 8;
/// Long enough for good names, short enough for two on a line.
const MAX_NAME_CHARS: usize = 28;
/// Columns of a full bar. A multiple of four, for its scale.
const BAR_COLUMNS: usize = 32;

/// The report for people; lists are truncated to the worst entries. Ends with a newline.
pub fn render(report: &EvaluationReport, title: &str) -> String {
    let mut sections = vec![vec![printable(title)], headline(report)];
    sections.push(reliability(&report.calibration.bins));
    sections.push(worst(&report.categories));
    sections.push(confusions(&report.confusions));
    sections.extend(report.scope.as_ref().map(scope));
    sections.extend(report.latency_micros.as_ref().map(latency));
    let sections = sections.iter().filter(|lines| !lines.is_empty());
    sections.map(|lines| lines.join("\n") + "\n").collect::<Vec<_>>().join("\n")
}

fn headline(report: &EvaluationReport) -> Vec<String> {
    let EvaluationReport { texts, in_scope, out_of_scope, .. } = report;
    let bins = report.calibration.bins.len();
    let rows = [
        ("Texts", texts.to_string(), format!("{in_scope} in scope, {out_of_scope} out of scope")),
        ("Accuracy", headline_percent(report.accuracy), String::new()),
        ("Macro F1", headline_percent(report.macro_f1), format!("over {} categories", report.categories.len())),
        (
            "Correct and confident",
            headline_percent(report.confident_accuracy),
            format!("confidence {CONFIDENCE_THRESHOLD} or more"),
        ),
        ("Calibration error", headline_percent(report.calibration.error), format!("expected, over {bins} bins")),
    ];
    rows.map(|(label, value, note)| format!("  {label:<21}  {value:>9}  {note}").trim_end().to_owned()).to_vec()
}

fn reliability(bins: &[Bin]) -> Vec<String> {
    if bins.iter().all(|bin| bin.count == 0) {
        return Vec::new();
    }
    let quarter = BAR_COLUMNS / 4;
    let mut lines = vec![
        "Reliability: accuracy (█) against mean confidence (┃)".to_owned(),
        format!(
            "  {:9}  {:<quarter$}{:<quarter$}{:<quarter$}{:<quarter$}100 % texts",
            "", "0 %", "25 %", "50 %", "75 %"
        ),
    ];
    lines.extend(bins.iter().map(|bin| {
        let Bin { lower, upper, count, .. } = bin;
        format!("  {lower:.2}-{upper:.2} ▕{}▏{count:>10}", bar(bin))
    }));
    lines
}

/// Draws in eighths of a column, the resolution of block characters.
fn bar(bin: &Bin) -> String {
    const EIGHTHS: [char; 9] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];
    let filled = (bin.accuracy.unwrap_or(0.0) * 8.0 * BAR_COLUMNS as f64).round() as usize;
    let marked = bin.confidence.map(|confidence| ((confidence * BAR_COLUMNS as f64) as usize).min(BAR_COLUMNS - 1));
    let column = |column: usize| match marked {
        Some(marked) if marked == column => '┃',
        _ => EIGHTHS[filled.saturating_sub(8 * column).min(8)],
    };
    (0..BAR_COLUMNS).map(column).collect()
}

/// Ties in F1 are sorted by number of texts, most first: these categories have the most to gain.
fn worst(categories: &[CategoryMetrics]) -> Vec<String> {
    let mut worst: Vec<&CategoryMetrics> = categories.iter().filter(|category| category.f1 < 1.0).collect();
    worst.sort_by(|a, b| a.f1.total_cmp(&b.f1).then(b.support.cmp(&a.support)));
    worst.truncate(MAX_SHOWN);
    let line = |category: &&CategoryMetrics| {
        let CategoryMetrics { name, support, precision, recall, f1, .. } = category;
        let (f1, precision, recall) = (percent(Some(*f1)), percent(*precision), percent(*recall));
        format!("  {f1:>7}  {precision:>9}  {recall:>7}  {support:>6}  {}", truncate_name(name))
    };
    titled("Worst categories\n       F1  precision   recall   texts", worst.iter().map(line))
}

fn confusions(confusions: &[Confusion]) -> Vec<String> {
    let line = |confusion: &Confusion| {
        let Confusion { truth, predicted, count } = confusion;
        format!("  {count:>5}  {} → {}", truncate_name(truth), truncate_name(predicted))
    };
    titled("Most frequent confusions\n  texts  actual → predicted", confusions.iter().take(MAX_SHOWN).map(line))
}

fn scope(scope: &OutOfScopeMetrics) -> Vec<String> {
    let at = &scope.at_threshold;
    let by_strangeness = |at: &RejectionPoint| {
        let (refused, found) = (percent(Some(at.false_rejections)), percent(Some(at.detected)));
        let allowed = 100.0 * at.allowed;
        format!("  {found:>7}  {refused:>16}  at most {allowed:.0} %, novelty over {:.3}", at.threshold)
    };
    let mut lines = vec![
        format!("Out of scope: area under ROC {}", headline_percent(Some(scope.area_under_roc))),
        "    found  in scope refused  limit".to_owned(),
    ];
    lines.extend(scope.at_rejection_rate.iter().map(by_strangeness));
    let (refused, found) = (percent(Some(at.false_rejections)), percent(Some(at.detected)));
    lines.push(format!("  {found:>7}  {refused:>16}  out_of_scope {} or more", at.threshold));
    lines
}

fn latency(latency: &Latency) -> Vec<String> {
    let Latency { p50, p90, p99, max } = latency;
    let rows = [("p50", p50), ("p90", p90), ("p99", p99), ("max", max)];
    titled("Latency of a text", rows.into_iter().map(|(label, micros)| format!("  {label}  {:>10}", time(*micros))))
}

/// Returns nothing for an empty list, so that no title is printed without lines.
fn titled(title: &str, lines: impl Iterator<Item = String>) -> Vec<String> {
    let mut lines = lines.peekable();
    if lines.peek().is_none() {
        return Vec::new();
    }
    title.lines().map(str::to_owned).chain(lines).collect()
}

fn headline_percent(share: Option<f64>) -> String {
    share.map_or_else(|| "-".to_owned(), |share| format!("{:.2} %", 100.0 * share))
}

fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "-".to_owned(), |share| format!("{:.1} %", 100.0 * share))
}

fn time(micros: f64) -> String {
    match micros {
        _ if micros < 10.0 => format!("{micros:.1} µs"),
        _ if micros < 1e3 => format!("{micros:.0} µs"),
        _ if micros < 1e6 => format!("{:.2} ms", micros / 1e3),
        _ => format!("{:.2} s", micros / 1e6),
    }
}

fn truncate_name(name: &str) -> String {
    let name = printable(name);
    match name.char_indices().nth(MAX_NAME_CHARS) {
        Some(_) => name.chars().take(MAX_NAME_CHARS - 1).chain(['…']).collect(),
        None => name,
    }
}

/// Replaces control characters: a name from a file must not emit terminal escape sequences.
fn printable(text: &str) -> String {
    text.chars().map(|character| if character.is_control() { '\u{fffd}' } else { character }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluate::EvaluatedText;
    use crate::evaluate::tests::{known, names};

    /// Ten texts of three categories with two errors, and two out-of-scope texts of which one has a high score.
    fn report() -> EvaluationReport {
        let mut judged = vec![
            known(0, 0, 0.99),
            known(0, 0, 0.97),
            known(0, 0, 0.96),
            known(0, 1, 0.75),
            known(1, 1, 0.75),
            known(1, 1, 0.75),
            known(1, 1, 0.5),
            known(2, 2, 0.98),
            known(2, 2, 0.98),
            known(2, 1, 0.3),
            EvaluatedText { truth: None, ..known(0, 0, 0.2) },
            EvaluatedText { truth: None, ..known(0, 0, 0.2) },
        ];
        for (index, text) in judged.iter_mut().enumerate() {
            text.micros = 400.0 * (index + 1) as f64;
            text.out_of_scope_score = index as f32;
            text.out_of_scope = if index >= 9 { 0.97 } else { 0.5 };
        }
        judged[11].out_of_scope_score = 2.0;
        judged[11].out_of_scope = 0.2;
        EvaluationReport::of(&judged, &names(&["billing", "returns", "shipping"]))
    }

    #[test]
    fn a_report_reads_like_this() {
        assert_eq!(render(&report(), "test.jsonl"), EXPECTED);
    }

    const EXPECTED: &str = "\
test.jsonl

  Texts                         12  10 in scope, 2 out of scope
  Accuracy                 80.00 %
  Macro F1                 80.24 %  over 3 categories
  Correct and confident    70.00 %  confidence 0.6 or more
  Calibration error        11.70 %  expected, over 15 bins

Reliability: accuracy (█) against mean confidence (┃)
             0 %     25 %    50 %    75 %    100 % texts
  0.00-0.07 ▕                                ▏         0
  0.07-0.13 ▕                                ▏         0
  0.13-0.20 ▕                                ▏         0
  0.20-0.27 ▕                                ▏         0
  0.27-0.33 ▕         ┃                      ▏         1
  0.33-0.40 ▕                                ▏         0
  0.40-0.47 ▕                                ▏         0
  0.47-0.53 ▕████████████████┃███████████████▏         1
  0.53-0.60 ▕                                ▏         0
  0.60-0.67 ▕                                ▏         0
  0.67-0.73 ▕                                ▏         0
  0.73-0.80 ▕█████████████████████▍  ┃       ▏         3
  0.80-0.87 ▕                                ▏         0
  0.87-0.93 ▕                                ▏         0
  0.93-1.00 ▕███████████████████████████████┃▏         5

Worst categories
       F1  precision   recall   texts
   75.0 %     60.0 %  100.0 %       3  returns
   80.0 %    100.0 %   66.7 %       3  shipping
   85.7 %    100.0 %   75.0 %       4  billing

Most frequent confusions
  texts  actual → predicted
      1  billing → returns
      1  shipping → returns

Out of scope: area under ROC 62.50 %
    found  in scope refused  limit
   50.0 %             0.0 %  at most 1 %, novelty over 9.000
   50.0 %             0.0 %  at most 2 %, novelty over 9.000
   50.0 %             0.0 %  at most 5 %, novelty over 9.000
   50.0 %            10.0 %  at most 10 %, novelty over 8.000
   50.0 %            20.0 %  at most 20 %, novelty over 7.000
   50.0 %            10.0 %  out_of_scope 0.95 or more

Latency of a text
  p50     2.40 ms
  p90     4.40 ms
  p99     4.80 ms
  max     4.80 ms
";

    #[test]
    fn an_empty_report_is_short_and_says_what_is_not_known() {
        let expected = "\
nothing.jsonl

  Texts                          0  0 in scope, 0 out of scope
  Accuracy                       -
  Macro F1                       -  over 0 categories
  Correct and confident          -  confidence 0.6 or more
  Calibration error              -  expected, over 15 bins
";
        assert_eq!(render(&EvaluationReport::of(&[], &[]), "nothing.jsonl"), expected);
    }

    #[test]
    fn a_bar_shows_accuracy_and_marks_confidence() {
        let check = |accuracy, confidence, expected: &str| {
            let bin = Bin { lower: 0.0, upper: 1.0, count: 1, accuracy: Some(accuracy), confidence: Some(confidence) };
            assert_eq!(bar(&bin).trim_end(), expected);
        };
        check(0.25, 0.5, "████████        ┃");
        check(0.25, 0.0, "┃███████");
        check(0.0, 1.0, "                               ┃");
        check(1.0, 1.0, "███████████████████████████████┃");
        check(1.5 / 32.0, 0.5, "█▌              ┃");
    }

    #[test]
    fn the_worst_come_first_and_perfect_ones_not_at_all() {
        let category = |name: &str, f1, support| CategoryMetrics {
            name: name.to_owned(),
            support,
            predicted: 1,
            precision: Some(f1),
            recall: Some(f1),
            f1,
        };
        let mut categories = vec![
            category("perfect", 1.0, 9),
            category("few", 0.5, 1),
            category("many", 0.5, 7),
            category("bad", 0.1, 1),
        ];
        let last_words = |lines: &[String]| -> Vec<String> {
            lines.iter().skip(2).filter_map(|line| Some(line.split(' ').next_back()?.to_owned())).collect()
        };
        assert_eq!(last_words(&worst(&categories)), ["bad", "many", "few"]);
        categories.extend((0..20).map(|_| category("more", 0.7, 1)));
        assert_eq!(last_words(&worst(&categories)).len(), MAX_SHOWN);
        assert_eq!(worst(&categories[..1]), Vec::<String>::new());
    }

    #[test]
    fn times_are_told_in_the_unit_that_fits() {
        let told = [0.4, 850.0, 1_250.0, 2_500_000.0].map(time);
        assert_eq!(told, ["0.4 µs", "850 µs", "1.25 ms", "2.50 s"]);
    }

    #[test]
    fn a_name_can_neither_steer_the_terminal_nor_fill_it() {
        assert_eq!(truncate_name("a\u{1b}[2Jb\n"), "a\u{fffd}[2Jb\u{fffd}");
        assert_eq!(truncate_name(&"ü".repeat(28)), "ü".repeat(28));
        assert_eq!(truncate_name(&"ü".repeat(29)), format!("{}…", "ü".repeat(27)));
    }
}

//! Targets for OCR and their results. Reported, never enforced, as in `protocol`.

use super::engine::Engine;
use super::pages::Group;
use super::scan::ScanResult;
use super::{GroupResults, cpu_of_all, find, mean_of_all, rows_of};
use crate::report::three_digits;
use crate::targets::{TargetResult, at_least, at_most};

pub(super) fn evaluate_targets(rows: &[GroupResults], scans: &[ScanResult]) -> Vec<TargetResult> {
    let mut verdicts = Vec::new();
    for (what, group, floor, goal) in
        [("clean pages: word F1", Group::Clean, 0.985, 0.99), ("skewed pages: word F1", Group::Skewed, 0.95, 0.98)]
    {
        if let Some(row) = find(rows, group, Engine::Corbie) {
            verdicts.push(share_target(what, row.mean(|done| done.words), floor, goal));
        }
    }
    if let Some(row) = find(rows, Group::Columns, Engine::Corbie) {
        let error = 100.0 * row.mean(|done| done.character_error);
        verdicts.push(at_most("columns: character error", error, "%", 5.0, 2.0));
    }
    let own = rows_of(rows, Engine::Corbie);
    if !own.is_empty() {
        verdicts.push(at_most("all pages: CPU a page", cpu_of_all(&own), "s", 1.6, 1.2));
        let peak = own.iter().map(|row| row.peak_mb).fold(0.0, f64::max);
        verdicts.push(at_most("all pages: peak RSS", peak, "MB", 300.0, 220.0));
    }
    if let Some(scan) = scans.iter().find(|scan| scan.engine == Engine::Corbie) {
        verdicts.push(at_least("from PDF to text", scan.pages_per_second(), "pages/s", 1.0, 1.0));
    }
    verdicts
}

/// One-line summary: corbie compared with the peers.
pub(super) fn summary(rows: &[GroupResults]) -> String {
    let parts: Vec<String> = [Engine::Corbie, Engine::Tesseract, Engine::RapidOcr]
        .into_iter()
        .filter_map(|engine| {
            let of_it = rows_of(rows, engine);
            (!of_it.is_empty()).then(|| {
                format!(
                    "{} word F1 {:.3}, character error {:.2} %, {} s of CPU a page",
                    engine.name(),
                    mean_of_all(&of_it, |done| done.words),
                    100.0 * mean_of_all(&of_it, |done| done.character_error),
                    three_digits(cpu_of_all(&of_it))
                )
            })
        })
        .collect();
    format!("ocr {}", parts.join("; "))
}

/// Rounded to three digits, the precision of the target.
fn share_target(what: &'static str, measured: f64, floor: f64, goal: f64) -> TargetResult {
    let verdict = at_least(what, measured, "", floor, goal);
    let (floor, goal) = (format!(">= {floor}"), format!(">= {goal}"));
    TargetResult { measured: format!("{measured:.3}"), floor, goal, ..verdict }
}

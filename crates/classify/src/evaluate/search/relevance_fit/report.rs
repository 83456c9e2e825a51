//! The fitted coefficients, their calibration, and how relevance differs between base sizes.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use corbie_index::RELEVANCE_INPUTS;

use super::logistic_regression::{self, Row, probability};
use super::{BASE_SIZES, COMPARED_PAIRS, Example, Features, Group, Kind, Samples};
use crate::evaluate::Calibration;

/// The result of a fit.
#[derive(Debug, Clone, PartialEq)]
pub struct FitReport {
    models: Vec<ModelFit>,
    /// By set: how far the relevance of the same passages is apart in bases of different sizes, sorted.
    differences: Vec<(String, Vec<f32>)>,
}

/// The coefficients for one kind of features.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelFit {
    /// Name of the constant in `crates/index/src/relevance.rs`.
    name: &'static str,
    coefficients: [f64; RELEVANCE_INPUTS],
    /// Expected calibration error over all queries with an answer: of the fitted half, and of the other.
    fitted: Option<f64>,
    held_out: Option<f64>,
    /// The latter by set and base size.
    by_size: Vec<(String, usize, Option<f64>)>,
}

const MODELS: [(Features, &str); 3] = [
    (Features::WordsAndVector, "HYBRID_MODEL"),
    (Features::Vector, "VECTOR_MODEL"),
    (Features::Words, "LEXICAL_MODEL"),
];

impl FitReport {
    pub(super) fn of(names: &[&str], samples: Samples) -> FitReport {
        let Samples { examples, pairs } = samples;
        let fits = MODELS.into_iter().filter_map(|(features, name)| Some((name, examples.get(&features)?)));
        FitReport {
            models: fits.map(|(name, examples)| ModelFit::of(name, names, examples)).collect(),
            differences: names
                .iter()
                .enumerate()
                .map(|(set, name)| (name.to_string(), differences(&pairs, set)))
                .collect(),
        }
    }
}

/// For passages that were compared in the most sizes: the largest minus the smallest relevance, sorted.
fn differences(pairs: &HashMap<(usize, usize, usize), HashMap<usize, f32>>, set: usize) -> Vec<f32> {
    let mut pairs: Vec<_> = pairs.iter().filter(|((of, ..), _)| *of == set).collect();
    pairs.sort_by_key(|(key, sizes)| (usize::MAX - sizes.len(), **key));
    let range = |sizes: &HashMap<usize, f32>| {
        sizes.values().copied().fold(0.0, f32::max) - sizes.values().copied().fold(1.0, f32::min)
    };
    let mut ranges: Vec<f32> = pairs.into_iter().take(COMPARED_PAIRS).map(|(_, sizes)| range(sizes)).collect();
    ranges.sort_by(f32::total_cmp);
    ranges
}

impl ModelFit {
    fn of(name: &'static str, names: &[&str], examples: &[Example]) -> ModelFit {
        let mut counts: BTreeMap<Group, usize> = BTreeMap::new();
        let fitted = || examples.iter().filter(|example| example.is_fitted);
        fitted().for_each(|example| *counts.entry(example.group).or_default() += 1);
        let rows: Vec<Row<RELEVANCE_INPUTS>> = fitted()
            .map(|example| {
                let weight = example.group.weight() / counts[&example.group] as f64;
                (example.inputs.map(f64::from), example.is_answer, 1000.0 * weight)
            })
            .collect();
        let coefficients = logistic_regression::fit(&rows);
        let error = |is_wanted: &dyn Fn(&Example) -> bool| {
            let answered = examples.iter().filter(|example| example.group.kind == Kind::Answered && is_wanted(example));
            let expected = |example: &Example| probability(&coefficients, &example.inputs.map(f64::from)) as f32;
            Calibration::of_pairs(answered.map(|example| (expected(example), example.is_answer))).error
        };
        let groups = names.iter().enumerate().flat_map(|(set, name)| BASE_SIZES.map(|size| (set, name, size)));
        let by_size = groups.map(|(set, name, size)| {
            let of = |example: &Example| !example.is_fitted && example.group.set == set && example.group.size == size;
            (name.to_string(), size, error(&of))
        });
        ModelFit {
            name,
            coefficients,
            fitted: error(&|example| example.is_fitted),
            held_out: error(&|example| !example.is_fitted),
            by_size: by_size.collect(),
        }
    }
}

impl Group {
    /// Most queries have an answer. In a large base more hits are near without an answer, and a model that overestimates
    /// them is wrong about most of its hits.
    fn weight(self) -> f64 {
        let by_kind = match self.kind {
            Kind::Answered => 1.0,
            Kind::Paraphrased => 0.3,
            Kind::Unanswered | Kind::OutOfDomain => 0.2,
        };
        by_kind * (self.size as f64).log10()
    }
}

impl fmt::Display for FitReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |error: Option<f64>| error.map_or("-".to_owned(), |error| format!("{error:.3}"));
        writeln!(f, "Coefficients for crates/index/src/relevance.rs: 1, cosine, share of words squared, ln of words")?;
        for ModelFit { name, coefficients, fitted, held_out, by_size } in &self.models {
            let coefficients = coefficients.map(|coefficient| format!("{coefficient:.2}")).join(", ");
            writeln!(f, "\n{name} = [{coefficients}]")?;
            let (fitted, held_out) = (shown(*fitted), shown(*held_out));
            writeln!(f, "  expected calibration error: {fitted} of the fitted half, {held_out} of the other half")?;
            for (set, size, error) in by_size {
                writeln!(f, "    {:<16} {size:>6} documents {:>7}", printable(set), shown(*error))?;
            }
        }
        writeln!(f, "\nRelevance of the same passages in bases of different sizes, with the current coefficients")?;
        for (set, differences) in self.differences.iter().filter(|(_, differences)| !differences.is_empty()) {
            let at = |share: f64| differences[((differences.len() - 1) as f64 * share).round() as usize];
            let (count, median, p95) = (differences.len(), at(0.5), at(0.95));
            writeln!(f, "  {:<16} {count:>6} passages   median {median:.3}   p95 {p95:.3}", printable(set))?;
        }
        Ok(())
    }
}

/// Without control characters: a file name must not emit terminal escape sequences.
fn printable(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { '\u{fffd}' } else { letter }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x51_a_report_has_coefficients_calibration_and_differences() {
        let group = Group { set: 0, size: 10, kind: Kind::Answered };
        let examples = (0..400).map(|at| {
            let cosine = (at % 20) as f32 / 20.0;
            let is_answer = at / 20 < at % 20;
            Example { inputs: [1.0, cosine, 0.0, 0.0], is_answer, is_fitted: at % 40 < 20, group }
        });
        let mut samples = Samples::default();
        samples.examples.insert(Features::Vector, examples.collect());
        samples.pairs.insert((0, 1, 2), HashMap::from([(10, 0.5), (100, 0.625), (1000, 0.5)]));
        let report = FitReport::of(&["owls\u{1b}"], samples).to_string();
        assert!(report.contains("VECTOR_MODEL = [-") && !report.contains("HYBRID_MODEL"), "{report}");
        assert!(report.contains("owls\u{fffd}                10 documents   0.0"), "{report}");
        assert!(report.contains("     1 passages   median 0.125   p95 0.125"), "{report}");
    }
}

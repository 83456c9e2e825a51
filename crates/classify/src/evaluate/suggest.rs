//! Suggestions for improving examples, from cross-validation.
//!
//! Pure functions: [`assign_folds`] assigns examples to folds, [`Suggestions::of`] evaluates the held-out predictions. Training
//! and classification happen in the command.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::Serialize;

use super::share;

/// A category and its number of examples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CategorySize {
    pub name: String,
    pub examples: usize,
}

/// An example and its prediction by a classifier trained without it.
#[derive(Debug, Clone, PartialEq)]
pub struct HeldOutExample {
    pub text: String,
    /// The labelled category.
    pub category: usize,
    pub predicted: usize,
    /// Probability that the classifier assigns to `predicted`.
    pub confidence: f32,
    /// Share of in-scope training texts with a lower out-of-scope score.
    pub out_of_scope: f32,
}

/// Examples and categories that need review.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Suggestions {
    /// Number of classified examples.
    pub held_out: usize,
    /// Share of them that were predicted correctly.
    pub accuracy: Option<f64>,
    /// Examples that seem to belong to another category, highest confidence first.
    pub mislabelled: Vec<Suspect>,
    /// Outliers: examples without similar ones, highest out-of-scope score first.
    pub outliers: Vec<Suspect>,
    /// Categories with low recall or few examples, worst first.
    pub weak_categories: Vec<WeakCategory>,
}

/// A questionable example.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Suspect {
    pub category: String,
    pub text: String,
    pub predicted: String,
    pub confidence: f32,
    pub out_of_scope: f32,
}

/// A weak category.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WeakCategory {
    pub category: String,
    pub examples: usize,
    /// Share of its examples that were predicted correctly; `None` if it has too few to hold any out.
    pub recall: Option<f64>,
    /// The category that its examples are most often confused with.
    pub confused_with: Option<ConfusedCategory>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConfusedCategory {
    pub category: String,
    pub count: usize,
}

/// Number of cross-validation folds.
pub const FOLDS: usize = 5;
/// Confidence in another category from which an example is suspected to be mislabelled.
pub const MISLABEL_CONFIDENCE: f32 = 0.7;
/// Below this confidence, a correct prediction counts as luck.
pub const LOW_CONFIDENCE: f32 = 0.5;
/// `out_of_scope` from which an example counts as an outlier.
pub const OUTLIER_THRESHOLD: f32 = 0.98;
/// Below this recall, a category is weak.
pub const MIN_RECALL: f64 = 0.8;
/// With fewer examples, a category is weak.
pub const MIN_EXAMPLES: usize = 20;

/// The fold of each example, stratified by class. `None` for the only example of a class: the other folds could not
/// teach the class.
pub fn assign_folds(class_of: &[usize]) -> Vec<Option<usize>> {
    let mut members: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (index, class) in class_of.iter().enumerate() {
        members.entry(*class).or_default().push(index);
    }
    let mut fold_of = vec![None; class_of.len()];
    // The fold counter continues from class to class; otherwise the first fold would get the surplus example of each
    // class.
    let several = members.into_values().filter(|members| members.len() > 1).flatten();
    for (turn, index) in several.enumerate() {
        fold_of[index] = Some(turn % FOLDS);
    }
    fold_of
}

impl Suggestions {
    pub fn of(held_out: &[HeldOutExample], categories: &[CategorySize]) -> Suggestions {
        let right = held_out.iter().filter(|example| example.is_correct()).count();
        let (mut mislabelled, rest): (Vec<&HeldOutExample>, Vec<&HeldOutExample>) =
            held_out.iter().partition(|example| !example.is_correct() && example.confidence >= MISLABEL_CONFIDENCE);
        mislabelled.sort_by(|a, b| b.confidence.total_cmp(&a.confidence));
        let mut alone: Vec<&HeldOutExample> = rest.into_iter().filter(|example| example.is_outlier()).collect();
        alone.sort_by(|a, b| b.out_of_scope.total_cmp(&a.out_of_scope).then(a.confidence.total_cmp(&b.confidence)));
        let suspects = |examples: Vec<&HeldOutExample>| {
            examples.into_iter().map(|example| example.to_suspect(categories)).collect()
        };
        Suggestions {
            held_out: held_out.len(),
            accuracy: share(right, held_out.len()),
            mislabelled: suspects(mislabelled),
            outliers: suspects(alone),
            weak_categories: weak_categories(held_out, categories),
        }
    }
}

impl HeldOutExample {
    fn is_correct(&self) -> bool {
        self.category == self.predicted
    }

    fn is_outlier(&self) -> bool {
        (self.is_correct() && self.confidence < LOW_CONFIDENCE) || self.out_of_scope >= OUTLIER_THRESHOLD
    }

    fn to_suspect(&self, categories: &[CategorySize]) -> Suspect {
        Suspect {
            category: categories[self.category].name.clone(),
            text: self.text.clone(),
            predicted: categories[self.predicted].name.clone(),
            confidence: self.confidence,
            out_of_scope: self.out_of_scope,
        }
    }
}

fn weak_categories(held_out: &[HeldOutExample], categories: &[CategorySize]) -> Vec<WeakCategory> {
    /// Number of examples of a category by predicted category.
    type PredictionCounts = BTreeMap<usize, usize>;
    let mut given: Vec<PredictionCounts> = vec![PredictionCounts::new(); categories.len()];
    for example in held_out {
        *given[example.category].entry(example.predicted).or_default() += 1;
    }
    let judge = |(class, (category, given)): (usize, (&CategorySize, &PredictionCounts))| {
        let recall = share(given.get(&class).copied().unwrap_or(0), given.values().sum());
        let mistaken = given.iter().filter(|(other, _)| **other != class);
        let most = mistaken.max_by_key(|(other, count)| (**count, Reverse(**other)));
        WeakCategory {
            category: category.name.clone(),
            examples: category.examples,
            recall,
            confused_with: most
                .map(|(other, count)| ConfusedCategory { category: categories[*other].name.clone(), count: *count }),
        }
    };
    let all = categories.iter().zip(&given).enumerate().map(judge);
    let mut weak: Vec<WeakCategory> = all
        .filter(|each| each.examples < MIN_EXAMPLES || each.recall.is_none_or(|recall| recall < MIN_RECALL))
        .collect();
    // A category without any prediction needs examples most.
    let badness = |each: &WeakCategory| each.recall.unwrap_or(-1.0);
    weak.sort_by(|a, b| badness(a).total_cmp(&badness(b)).then(a.examples.cmp(&b.examples)));
    weak
}

#[cfg(test)]
mod tests {
    use super::*;

    fn categories(counts: &[usize]) -> Vec<CategorySize> {
        let category = |(name, count): (&str, &usize)| CategorySize { name: name.into(), examples: *count };
        ["a", "b", "c", "d"].into_iter().zip(counts).map(category).collect()
    }

    fn held_out(category: usize, predicted: usize, confidence: f32, out_of_scope: f32) -> HeldOutExample {
        let text = format!("{category} {predicted} {confidence} {out_of_scope}");
        HeldOutExample { text, category, predicted, confidence, out_of_scope }
    }

    fn texts(suspects: &[Suspect]) -> Vec<&str> {
        suspects.iter().map(|suspect| suspect.text.as_str()).collect()
    }

    #[test]
    fn every_example_is_held_out_once_and_never_all_of_its_class() {
        let class_of = [0, 0, 0, 0, 0, 0, 0, 1, 2, 2, 1, 3, 0];
        let fold_of = assign_folds(&class_of);
        assert_eq!(fold_of[11], None, "the only one of its class");
        assert!(fold_of.iter().enumerate().all(|(index, fold)| fold.is_some() == (index != 11)));
        for fold in 0..FOLDS {
            for class in 0..4 {
                let left =
                    (0..class_of.len()).filter(|index| class_of[*index] == class && fold_of[*index] != Some(fold));
                assert!(left.count() > 0, "class {class} without fold {fold}");
            }
        }
        assert_eq!(assign_folds(&[]), []);
    }

    #[test]
    fn who_is_surely_taken_for_another_category_looks_mislabelled() {
        let judged =
            [held_out(0, 1, 0.7, 0.0), held_out(0, 1, 0.69, 0.0), held_out(1, 0, 0.9, 0.99), held_out(1, 1, 0.9, 0.0)];
        let found = Suggestions::of(&judged, &categories(&[20, 20]));
        assert_eq!(texts(&found.mislabelled), ["1 0 0.9 0.99", "0 1 0.7 0"], "surest first");
        assert_eq!((found.mislabelled[0].category.as_str(), found.mislabelled[0].predicted.as_str()), ("b", "a"));
        assert_eq!(texts(&found.outliers), [""; 0], "what looks mislabelled is told once");
        assert_eq!((found.held_out, found.accuracy), (4, Some(0.25)));
    }

    #[test]
    fn who_was_recognised_by_luck_or_is_strange_stands_alone() {
        let judged = [
            held_out(0, 0, 0.49, 0.1),
            held_out(0, 0, 0.5, 0.97),
            held_out(0, 0, 0.99, 0.98),
            held_out(0, 1, 0.3, 1.0),
            held_out(0, 1, 0.3, 0.5),
        ];
        let found = Suggestions::of(&judged, &categories(&[20, 20]));
        assert_eq!(texts(&found.outliers), ["0 1 0.3 1", "0 0 0.99 0.98", "0 0 0.49 0.1"], "strangest first");
    }

    #[test]
    fn a_category_is_weak_if_it_is_mistaken_or_has_few_examples() {
        let right = |category: usize, count: usize| vec![held_out(category, category, 0.9, 0.0); count];
        let wrong = |category: usize, other: usize, count: usize| vec![held_out(category, other, 0.6, 0.0); count];
        // `a` has 79 % recall, `b` 80 %; `c` has too few examples, `d` cannot be measured.
        let judged =
            [right(0, 79), wrong(0, 2, 10), wrong(0, 1, 11), right(1, 16), wrong(1, 0, 4), right(2, 19)].concat();
        let found = Suggestions::of(&judged, &categories(&[100, 20, 19, 1])).weak_categories;
        let told: Vec<(&str, usize, Option<f64>)> =
            found.iter().map(|weak| (weak.category.as_str(), weak.examples, weak.recall)).collect();
        assert_eq!(told, [("d", 1, None), ("a", 100, Some(0.79)), ("c", 19, Some(1.0))]);
        assert_eq!(found[1].confused_with, Some(ConfusedCategory { category: "b".into(), count: 11 }));
        assert_eq!(found[2].confused_with, None);
    }

    #[test]
    fn without_verdicts_nothing_is_claimed() {
        let found = Suggestions::of(&[], &categories(&[20, 1]));
        assert_eq!((found.held_out, found.accuracy), (0, None));
        assert!(found.mislabelled.is_empty() && found.outliers.is_empty());
        assert_eq!(found.weak_categories.len(), 2);
    }
}

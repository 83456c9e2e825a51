//! Stratified k-fold splits for cross-validation.

use super::shuffle::SplitMix64;

/// From this size, only two of the folds are held out, because training on all folds would take minutes. Below it, all
/// folds are held out, because the choice of the two folds changes the confidence by a third of a percent.
const MAX_FULL_CV_EXAMPLES: usize = 20_000;

const FOLDS: usize = 5;
const SEED: u64 = 0;

/// Indices of the training examples and of the held-out examples.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Split {
    pub(super) training: Vec<usize>,
    pub(super) held_out: Vec<usize>,
}

/// Stratified split of examples, given by their classes.
///
/// A class with a single example is never held out, because no training example of it would remain. Every other example
/// is held out once, unless there are more than `MANY_EXAMPLES`.
pub(super) fn splits(class_of: &[usize], classes: usize) -> Vec<Split> {
    let used = if class_of.len() < MAX_FULL_CV_EXAMPLES { FOLDS } else { 2 };
    let fold_of = assign_folds(class_of, classes);
    (0..used)
        .map(|fold| {
            let (held_out, training) = (0..class_of.len()).partition(|index| fold_of[*index] == Some(fold));
            Split { training, held_out }
        })
        .filter(|split| !split.held_out.is_empty())
        .collect()
}

/// Assigns the examples of each class to the folds round-robin. The rotation continues from class to class; otherwise
/// the first fold would receive the surplus example of every class.
fn assign_folds(class_of: &[usize], classes: usize) -> Vec<Option<usize>> {
    let mut members = vec![Vec::new(); classes];
    for (index, class) in class_of.iter().enumerate() {
        members[*class].push(index);
    }
    let mut shuffle = SplitMix64::seeded(SEED);
    let mut fold_of = vec![None; class_of.len()];
    let mut turn = 0;
    for mut members in members.into_iter().filter(|members| members.len() > 1) {
        shuffle.shuffle(&mut members);
        for index in members {
            fold_of[index] = Some(turn % FOLDS);
            turn += 1;
        }
    }
    fold_of
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_has_its_share_in_every_fold() {
        let class_of: Vec<usize> = (0..60).map(|index| index % 3).collect();
        let splits = splits(&class_of, 3);
        assert_eq!(splits.len(), 5);
        for split in &splits {
            for class in 0..3 {
                assert_eq!(split.held_out.iter().filter(|index| class_of[**index] == class).count(), 4);
            }
            assert_eq!(split.training.len(), 48);
        }
        let mut held_out: Vec<usize> = splits.into_iter().flat_map(|split| split.held_out).collect();
        held_out.sort_unstable();
        assert_eq!(held_out, (0..60).collect::<Vec<_>>());
    }

    #[test]
    fn a_class_never_loses_its_last_example() {
        let class_of = [0, 1, 1, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3];
        for split in splits(&class_of, 4) {
            assert!(!split.held_out.contains(&0));
            for class in 0..4 {
                assert!(split.training.iter().any(|index| class_of[*index] == class));
            }
        }
        assert_eq!(splits(&[0, 1, 2], 3), []);
    }

    #[test]
    fn of_many_examples_two_folds_are_held_out() {
        let class_of: Vec<usize> = (0..MAX_FULL_CV_EXAMPLES).map(|index| index % 2).collect();
        let splits = splits(&class_of, 2);
        assert_eq!(splits.iter().map(|split| split.held_out.len()).collect::<Vec<_>>(), [4000, 4000]);
    }
}

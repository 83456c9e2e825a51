//! Confusion matrix.

use super::{EvaluatedText, in_scope};

/// Rows are true categories, columns predicted ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfusionMatrix {
    /// The classes of rows and columns, in order.
    pub classes: Vec<usize>,
    /// Has one more column than `classes` if texts were predicted as classes that are not shown.
    pub rows: Vec<Vec<usize>>,
}

/// Maximum number of classes shown: a larger matrix is unreadable. Of more categories, the ones with the most texts are
/// kept.
const MAX_CLASSES: usize = 100;

impl ConfusionMatrix {
    /// `classes` are all existing classes. Texts whose true class is not shown are omitted.
    pub fn of(judged: &[EvaluatedText], classes: &[usize]) -> ConfusionMatrix {
        let mut shown = classes.to_vec();
        if shown.len() > MAX_CLASSES {
            let most = shown.iter().max().map_or(0, |most| most + 1);
            let mut texts = vec![0usize; most];
            in_scope(judged).filter(|(truth, _)| *truth < most).for_each(|(truth, _)| texts[truth] += 1);
            shown.sort_by_key(|class| std::cmp::Reverse(texts[*class]));
            shown.truncate(MAX_CLASSES);
            shown.sort_unstable();
        }
        let place = |class: usize| shown.iter().position(|shown| *shown == class);
        let mut rows = vec![vec![0; shown.len() + 1]; shown.len()];
        for (truth, text) in in_scope(judged) {
            if let Some(row) = place(truth) {
                rows[row][place(text.class).unwrap_or(shown.len())] += 1;
            }
        }
        if rows.iter().all(|row| row.last() == Some(&0)) {
            rows.iter_mut().for_each(|row| row.truncate(shown.len()));
        }
        ConfusionMatrix { classes: shown, rows }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluate::tests::known;

    #[test]
    fn rows_are_the_truth_and_columns_what_was_given() {
        let judged = [known(0, 0, 0.9), known(0, 2, 0.9), known(2, 2, 0.9), known(2, 2, 0.9)];
        let found = ConfusionMatrix::of(&judged, &[0, 1, 2]);
        assert_eq!(
            found,
            ConfusionMatrix { classes: vec![0, 1, 2], rows: vec![vec![1, 0, 1], vec![0; 3], vec![0, 0, 2]] }
        );
    }

    #[test]
    fn what_is_not_shown_is_counted_last() {
        let judged = [known(0, 0, 0.9), known(0, 7, 0.9), known(7, 0, 0.9)];
        assert_eq!(ConfusionMatrix::of(&judged, &[0]).rows, [[1, 1]]);
    }

    #[test]
    fn of_many_categories_those_with_the_most_texts_are_shown() {
        let classes: Vec<usize> = (0..500).collect();
        let judged: Vec<EvaluatedText> = (400..500).flat_map(|class| vec![known(class, class, 0.9); 2]).collect();
        let found = ConfusionMatrix::of(&judged, &classes);
        assert_eq!(found.classes, (400..500).collect::<Vec<_>>());
        assert_eq!(found.rows[0][0], 2);
    }
}

//! Cross-validation: each fold is classified by a classifier trained on the other folds.

use corbie_infer::Embedding;
use corbie_infer::heads::{Classifier, ClassifyError, Example, TrainError};

use super::suggest::{FOLDS, HeldOutExample, assign_folds};

/// Labelled texts with their embeddings. All slices have the same length.
#[derive(Debug, Clone, Copy)]
pub struct LabelledEmbeddings<'a> {
    pub texts: &'a [String],
    pub embeddings: &'a [Embedding],
    pub class_of: &'a [usize],
    pub classes: usize,
}

/// Why cross-validation failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{0}")]
    Training(#[from] TrainError),
    #[error("{0}")]
    Classification(#[from] ClassifyError),
    #[error("evaluation cancelled")]
    Cancelled,
}

/// Classifies all held-out examples. Calls `goes_on` with the fold number, counted from 0, before each training.
pub fn cross_validate(
    lesson: LabelledEmbeddings<'_>,
    mut goes_on: impl FnMut(usize) -> bool,
) -> Result<Vec<HeldOutExample>, Error> {
    let LabelledEmbeddings { texts, embeddings, class_of, classes } = lesson;
    let fold_of = assign_folds(class_of);
    let mut judged = Vec::with_capacity(texts.len());
    for fold in 0..FOLDS {
        let (held_out, training): (Vec<usize>, Vec<usize>) =
            (0..texts.len()).partition(|index| fold_of[*index] == Some(fold));
        if held_out.is_empty() {
            continue;
        }
        if !goes_on(fold) {
            return Err(Error::Cancelled);
        }
        let example =
            |index: usize| Example { text: &texts[index], embedding: &embeddings[index], class: class_of[index] };
        let training: Vec<Example<'_>> = training.into_iter().map(example).collect();
        let classifier = Classifier::train(&training, classes)?;
        for index in held_out {
            let verdict = classifier.classify(&texts[index], &embeddings[index])?;
            judged.push(HeldOutExample {
                text: texts[index].clone(),
                category: class_of[index],
                predicted: verdict.class(),
                confidence: verdict.confidence(),
                out_of_scope: verdict.out_of_scope,
            });
        }
    }
    Ok(judged)
}

/// Stratified sample: indices of about `most` examples, spread evenly over each class in proportion to its size. At
/// least two per class (if it has two), because a single example cannot be held out.
pub fn stratified_sample(class_of: &[usize], most: usize) -> Vec<usize> {
    if class_of.len() <= most {
        return (0..class_of.len()).collect();
    }
    let classes = class_of.iter().max().map_or(0, |most| most + 1);
    let mut counts = vec![0usize; classes];
    class_of.iter().for_each(|class| counts[*class] += 1);
    let wanted = |class: usize| (counts[class] * most / class_of.len()).max(2).min(counts[class]);
    let mut seen = vec![0usize; classes];
    let mut places = Vec::with_capacity(most);
    for (place, class) in class_of.iter().enumerate() {
        // Take the example where the running quota of the class reaches the next integer.
        let (count, wanted) = (counts[*class], wanted(*class));
        if (seen[*class] + 1) * wanted / count > seen[*class] * wanted / count {
            places.push(place);
        }
        seen[*class] += 1;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_has_of_each_class_its_share() {
        let class_of: Vec<usize> = [vec![0; 800], vec![1; 199], vec![2; 1]].concat();
        let places = stratified_sample(&class_of, 100);
        let of = |class: usize| places.iter().filter(|place| class_of[**place] == class).count();
        assert_eq!((of(0), of(1), of(2)), (80, 19, 1));
        assert!(places.iter().any(|place| *place < 100) && places.iter().any(|place| (700..800).contains(place)));
        assert_eq!(stratified_sample(&class_of, 1000), (0..1000).collect::<Vec<_>>());
    }
}

//! Text classifiers trained on examples.
//!
//! Four heads score a text: by its embedding, its words, its character n-grams, and its nearest examples. Each head
//! returns log-probabilities, and a weighted product (ensemble) combines them. The weights are fitted on held-out
//! examples, which calibrates the probabilities. An out-of-scope score measures how far a text is from the training
//! data.
//!
//! Training is deterministic: the same examples in the same order give the same bytes on the same CPU type.

mod cross_validation;
mod dense;
mod early_exit;
mod ensemble;
mod file;
mod fnv;
mod held_out_neighbours;
mod knn;
mod lbfgs;
mod neighbours;
mod ngrams;
mod out_of_scope;
mod shuffle;
mod softmax;
mod sparse;
mod train;
mod vocabulary;

use std::fmt;

use crate::{Embedding, ModelId};
use dense::DenseHead;
use early_exit::EarlyExit;
use ensemble::Ensemble;
pub use file::LoadError;
use knn::KnnHead;
use out_of_scope::OutOfScope;
use sparse::SparseHead;

/// A labelled text with its embedding.
#[derive(Debug, Clone, Copy)]
pub struct Example<'a> {
    pub text: &'a str,
    pub embedding: &'a Embedding,
    /// Class index, from 0.
    pub class: usize,
}

/// A trained, immutable text classifier; threads can share one.
#[derive(Clone)]
pub struct Classifier {
    model: ModelId,
    dense: DenseHead,
    words: SparseHead,
    chars: SparseHead,
    ensemble: Ensemble,
    knn: KnnHead,
    early_exit: EarlyExit,
    out_of_scope: OutOfScope,
}

/// A training example near a text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Neighbour {
    /// Its index in the training examples.
    pub example: usize,
    pub class: usize,
    /// Cosine similarity.
    pub similarity: f32,
}

/// The result of classifying one text.
#[derive(Debug, Clone, PartialEq)]
pub struct Prediction {
    /// One per class; the sum is one.
    pub probabilities: Vec<f32>,
    /// The share of in-scope texts with a lower out-of-scope score: at 0.95, only one in-scope text in twenty has a
    /// higher score. It is 0 if there were too few examples to calibrate.
    pub out_of_scope: f32,
    /// The raw score behind `out_of_scope`, for comparing texts beyond the calibrated range. Higher is farther out of
    /// scope; only comparable within one classifier.
    pub strangeness: f32,
}

/// Why training failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TrainError {
    #[error("no examples; add some for each class")]
    NoExamples,
    #[error("{classes} classes are too few; at least two are required")]
    TooFewClasses { classes: usize },
    #[error("example {index} has class {class}, but there are only {classes} classes (starting at 0)")]
    NoSuchClass { index: usize, class: usize, classes: usize },
    #[error("class {class} has no examples; add at least one or remove the class")]
    ClassWithoutExamples { class: usize },
    #[error(
        "example {index} was embedded with `{found}`, previous ones with `{expected}`; embed all with the same \
        model"
    )]
    MixedModels { index: usize, found: ModelId, expected: ModelId },
    #[error("vector dimension of example {index} is {found}, expected {expected}; embed all texts with the same model")]
    MixedDimensions { index: usize, found: usize, expected: usize },
    #[error("vector of example {index} is not normalized; embed its text again")]
    NotAUnitVector { index: usize },
}

/// Why classification failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClassifyError {
    #[error(
        "the text was embedded with `{found}`, but the classifier was trained with `{expected}`; use that model or \
         retrain"
    )]
    ModelMismatch { found: ModelId, expected: ModelId },
    #[error(
        "vector dimension is {found}, but the classifier was trained with {expected}; embed the text again or retrain"
    )]
    DimensionMismatch { found: usize, expected: usize },
    #[error("the vector is not normalized; embed the text again")]
    NotAUnitVector,
}

impl Classifier {
    /// Trains a classifier for `classes` classes, each with at least one example.
    ///
    /// A few hundred examples take a tenth of a second; fifteen thousand of 150 classes take half a minute.
    pub fn train(examples: &[Example<'_>], classes: usize) -> Result<Classifier, TrainError> {
        train::train(examples, classes)
    }

    /// Classifies a text. For an empty text, only the embedding counts.
    pub fn classify(&self, text: &str, embedding: &Embedding) -> Result<Prediction, ClassifyError> {
        self.check(embedding)?;
        let dense = self.dense.log_probabilities(&embedding.vector);
        let words = self.words.predict(text).log_probabilities;
        let chars = self.chars.predict(text).log_probabilities;
        let nearest = self.out_of_scope.nearest(&embedding.vector);
        let mut scores = self.ensemble.combine([&dense, &words, &chars, &self.out_of_scope.votes(&nearest)]);
        let energy = -softmax::softmax(&mut scores);
        Ok(self.prediction(scores, energy, &nearest, embedding))
    }

    /// Early exit: classifies a text in microseconds by its words and characters alone, if the confidence is high
    /// enough. About one in two hundred of these verdicts is wrong. `None` means that the text has to be embedded.
    ///
    /// With few examples, the confidence is never high enough.
    pub fn classify_early(&self, text: &str) -> Option<Prediction> {
        let verdict = self.early_exit.predict(&self.words, &self.chars, text)?;
        Some(Prediction { strangeness: self.out_of_scope.typical_strangeness(verdict.out_of_scope), ..verdict })
    }

    /// Classifies by nearest neighbours (k-NN) alone, without the other heads. `None` if the classifier has no
    /// neighbours because there were too many examples.
    pub fn classify_knn(&self, embedding: &Embedding) -> Option<Result<Prediction, ClassifyError>> {
        self.out_of_scope.neighbours.as_ref()?;
        Some(self.check(embedding).map(|()| {
            let nearest = self.out_of_scope.nearest(&embedding.vector);
            let mut scores = self.out_of_scope.votes(&nearest);
            scores.iter_mut().for_each(|score| *score *= self.knn.power);
            softmax::softmax(&mut scores);
            // Without the other heads there is no energy, so the mean energy of in-scope texts is used.
            self.prediction(scores, self.out_of_scope.standardizers[0].mean, &nearest, embedding)
        }))
    }

    /// The nearest examples, nearest first; empty if there were too many examples to store.
    pub fn nearest(&self, embedding: &Embedding) -> Result<Vec<Neighbour>, ClassifyError> {
        self.check(embedding)?;
        Ok(self.out_of_scope.nearest(&embedding.vector))
    }

    fn prediction(
        &self,
        probabilities: Vec<f32>,
        energy: f32,
        nearest: &[Neighbour],
        embedding: &Embedding,
    ) -> Prediction {
        let strangeness = self.out_of_scope.strangeness(energy, nearest, &embedding.vector);
        Prediction { probabilities, out_of_scope: self.out_of_scope.reference_quantile(strangeness), strangeness }
    }

    fn check(&self, embedding: &Embedding) -> Result<(), ClassifyError> {
        let expected = self.dense.dimension();
        if embedding.model != self.model {
            return Err(ClassifyError::ModelMismatch { found: embedding.model.clone(), expected: self.model.clone() });
        }
        if embedding.vector.len() != expected {
            return Err(ClassifyError::DimensionMismatch { found: embedding.vector.len(), expected });
        }
        if !is_unit(&embedding.vector) {
            return Err(ClassifyError::NotAUnitVector);
        }
        Ok(())
    }

    /// The embedding model of the training data.
    pub fn model(&self) -> &ModelId {
        &self.model
    }

    pub fn classes(&self) -> usize {
        self.dense.classes()
    }

    /// Serializes the classifier. A loaded classifier gives bit-identical verdicts.
    pub fn to_bytes(&self) -> Vec<u8> {
        file::write(self)
    }

    /// Parses the output of [`Classifier::to_bytes`]. Validates everything, so untrusted bytes are safe.
    pub fn from_bytes(bytes: &[u8]) -> Result<Classifier, LoadError> {
        file::read(bytes)
    }
}

impl Prediction {
    /// The most probable class; the first one on a tie.
    pub fn class(&self) -> usize {
        argmax(&self.probabilities)
    }

    /// The probability of the most probable class.
    pub fn confidence(&self) -> f32 {
        self.probabilities.get(self.class()).copied().unwrap_or_default()
    }

    /// Entropy in nats: 0 when certain, ln(number of classes) for a uniform distribution.
    pub fn entropy(&self) -> f32 {
        let terms = self.probabilities.iter().filter(|probability| **probability > 0.0).map(|p| -p * p.ln());
        terms.sum::<f32>().max(0.0)
    }
}

/// Index of the largest probability; the first one on a tie.
pub fn argmax(probabilities: &[f32]) -> usize {
    let mut best = 0;
    for (class, probability) in probabilities.iter().enumerate() {
        if *probability > probabilities[best] {
            best = class;
        }
    }
    best
}

impl fmt::Debug for Classifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Classifier")
            .field("model", &self.model)
            .field("dimension", &self.dense.dimension())
            .field("classes", &self.classes())
            .finish_non_exhaustive()
    }
}

/// All code here requires unit vectors. Also false if a component is not finite.
fn is_unit(vector: &[f32]) -> bool {
    let length = vector.iter().map(|number| number * number).sum::<f32>().sqrt();
    (length - 1.0).abs() <= 0.01
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(probabilities: &[f32]) -> Prediction {
        Prediction { probabilities: probabilities.to_vec(), out_of_scope: 0.0, strangeness: 0.0 }
    }

    #[test]
    fn a_verdict_names_the_first_of_the_most_probable_classes() {
        assert_eq!(verdict(&[0.2, 0.4, 0.4]).class(), 1);
        assert_eq!(verdict(&[0.2, 0.4, 0.4]).confidence(), 0.4);
    }

    #[test]
    fn entropy_goes_from_certain_to_clueless() {
        assert_eq!(verdict(&[0.0, 1.0]).entropy(), 0.0);
        assert!((verdict(&[0.25; 4]).entropy() - 4f32.ln()).abs() < 1e-6);
    }

    #[test]
    fn only_vectors_of_length_one_are_taken() {
        assert!(is_unit(&[0.6, -0.8]));
        for vector in [vec![], vec![0.0, 0.0], vec![2.0], vec![f32::NAN, 1.0], vec![f32::INFINITY], vec![1e30, 1e30]] {
            assert!(!is_unit(&vector), "{vector:?}");
        }
    }
}

//! Evaluation of the live taxonomy, on texts from the caller or by cross-validation on its own examples.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use corbie_infer::Purpose;

use super::taxonomy_editor::TaxonomyEditor;
use super::{InvalidText, TaxonomySnapshot, input};
use crate::evaluate::EvaluatedText;
use crate::evaluate::cross_validation::{self, LabelledEmbeddings};
use crate::evaluate::suggest::{FOLDS, HeldOutExample};
use crate::inference;
use corbie_util::concurrency_limit::QueueFull;

/// A text with the index of its true category.
pub(super) type Example = (String, usize);

/// The result of an evaluation.
#[derive(Debug)]
pub(super) struct Evaluation {
    pub(super) snapshot: Arc<TaxonomySnapshot>,
    pub(super) texts: Vec<String>,
    /// One per text.
    pub(super) results: Vec<EvaluatedText>,
    /// Whether each text was classified by a model that was not trained on it.
    pub(super) held_out: bool,
    /// Number of examples that the sample was drawn from.
    pub(super) available: usize,
}

/// Why the evaluation failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum EvaluationError {
    #[error(transparent)]
    Busy(#[from] QueueFull),
    #[error("`examples[{index}].text`: {why}")]
    InvalidText { index: usize, why: InvalidText },
    /// Otherwise the evaluation would attribute the results of the fallback rules to the failing model.
    #[error("evaluation is not possible while the classifier is impaired: {0}")]
    Impaired(String),
    #[error(
        "cross-validation requires a category with at least two examples; pass `examples` (texts with their \
        categories)"
    )]
    TooFew,
    #[error("cannot embed the examples: {0}")]
    Embedding(#[from] inference::Error),
    #[error("training failed: {0}")]
    CrossValidation(#[from] cross_validation::Error),
    #[error("evaluation failed unexpectedly; see the log")]
    Stopped,
}

/// Maximum number of examples for cross-validation. More are sampled: training on all takes minutes.
const MAX_CROSS_VALIDATION_EXAMPLES: usize = 2000;
/// Batch size between two progress reports.
const PROGRESS_BATCH: usize = 64;

impl TaxonomyEditor {
    /// Classifies texts as `classify_text` does. `tell` receives the number of finished texts and the total.
    pub(super) async fn evaluate(
        &self,
        published: Arc<TaxonomySnapshot>,
        examples: Vec<Example>,
        tell: impl Fn(usize, usize),
    ) -> Result<Evaluation, EvaluationError> {
        let _turn = self.acquire_trial_permit().await?;
        let with = self.classification().method_context();
        let (mut judged, of) = (Vec::with_capacity(examples.len()), examples.len());
        for piece in examples.chunks(PROGRESS_BATCH) {
            let before = judged.len();
            let clean = |(place, (text, _)): (usize, &Example)| {
                let clean = input::normalize(text, with.settings.max_text_length).map(std::borrow::Cow::into_owned);
                clean.map_err(|why| EvaluationError::InvalidText { index: before + place, why })
            };
            let texts: Vec<String> = piece.iter().enumerate().map(clean).collect::<Result<_, _>>()?;
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            let verdicts = published.classify_many(&texts, with).await;
            if let Some(why) = published.impairment() {
                return Err(EvaluationError::Impaired(why));
            }
            let each = piece.iter().zip(verdicts);
            judged.extend(each.map(|((_, truth), (verdict, _))| EvaluatedText {
                truth: Some(*truth),
                class: verdict.class(),
                confidence: verdict.confidence(),
                out_of_scope: verdict.out_of_scope,
                out_of_scope_score: verdict.out_of_scope_score,
                micros: 0.0,
            }));
            tell(judged.len(), of);
        }
        let texts = examples.into_iter().map(|(text, _)| text).collect();
        Ok(Evaluation { snapshot: published, texts, results: judged, held_out: false, available: of })
    }

    /// Cross-validates the taxonomy's examples: each is classified by a model trained without it. Rules and models from
    /// a folder are not trained on the examples and classify all of them directly.
    pub(super) async fn cross_validate(
        &self,
        tell: impl Fn(usize, usize) + Send + Clone + 'static,
    ) -> Result<Evaluation, EvaluationError> {
        let published = self.classification().snapshot();
        let own = own_examples(&published);
        let of = own.len();
        let class_of: Vec<usize> = own.iter().map(|(_, class)| *class).collect();
        let places = cross_validation::stratified_sample(&class_of, MAX_CROSS_VALIDATION_EXAMPLES);
        let sample: Vec<Example> = places.into_iter().map(|place| own[place].clone()).collect();
        let method = published.method(None, self.classification().method_context()).await;
        if method.trained().is_none() {
            let measured = self.evaluate(published, sample, tell).await?;
            return Ok(Evaluation { available: of, ..measured });
        }
        let judged = self.classify_held_out(sample, tell).await?;
        if judged.is_empty() {
            return Err(EvaluationError::TooFew);
        }
        let texts = judged.iter().map(|example| example.text.clone()).collect();
        let judged = judged.iter().map(|example| EvaluatedText {
            truth: Some(example.category),
            class: example.predicted,
            confidence: example.confidence,
            out_of_scope: example.out_of_scope,
            out_of_scope_score: example.out_of_scope,
            micros: 0.0,
        });
        Ok(Evaluation { snapshot: published, texts, results: judged.collect(), held_out: true, available: of })
    }

    async fn classify_held_out(
        &self,
        examples: Vec<Example>,
        tell: impl Fn(usize, usize) + Send + Clone + 'static,
    ) -> Result<Vec<HeldOutExample>, EvaluationError> {
        let turn = self.acquire_trial_permit().await?;
        let inference = &self.classification().0.inference;
        let (texts, category_of): (Vec<String>, Vec<usize>) = examples.into_iter().unzip();
        // Embedding and each training fold count as one unit of progress per text.
        let all = texts.len() * (1 + FOLDS);
        let mut embeddings = Vec::with_capacity(texts.len());
        for piece in texts.chunks(PROGRESS_BATCH) {
            embeddings.extend(inference.embed(piece.to_vec(), Purpose::Passage).await?);
            tell(embeddings.len(), all);
        }
        // Class indices are dense, category indices are not.
        let mut known = category_of.clone();
        known.sort_unstable();
        known.dedup();
        let class_of: Vec<usize> =
            category_of.iter().map(|category| known.partition_point(|it| it < category)).collect();
        let caller = SetOnDrop::default();
        let left = caller.0.clone();
        let judged = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            let lesson = LabelledEmbeddings {
                texts: &texts,
                embeddings: &embeddings,
                class_of: &class_of,
                classes: known.len(),
            };
            let judged = cross_validation::cross_validate(lesson, |fold| {
                tell(texts.len() * (1 + fold), all);
                !left.load(Ordering::Relaxed)
            });
            let in_place = |example: HeldOutExample| HeldOutExample {
                category: known[example.category],
                predicted: known[example.predicted],
                ..example
            };
            judged.map(|judged| judged.into_iter().map(in_place).collect())
        });
        let judged: Result<Vec<HeldOutExample>, cross_validation::Error> =
            judged.await.map_err(|_| EvaluationError::Stopped)?;
        drop(caller);
        Ok(judged?)
    }
}

/// Set on drop, so the blocking thread can detect that its caller has disconnected.
#[derive(Default)]
struct SetOnDrop(Arc<AtomicBool>);

impl Drop for SetOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// All distinct examples with the index of their category. A duplicate could end up in the training fold and the test
/// fold.
fn own_examples(published: &TaxonomySnapshot) -> Vec<Example> {
    let mut seen = HashSet::new();
    let categories = published.taxonomy.categories.iter().enumerate();
    let examples =
        categories.flat_map(|(place, category)| category.examples.iter().map(move |text| (text.as_ref(), place)));
    examples.filter(|(text, _)| seen.insert(*text)).map(|(text, place)| (text.to_owned(), place)).collect()
}

//! Evaluation of the live taxonomy, on texts from the caller or by cross-validation on its own examples.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use corbie_infer::Purpose;

use super::desk::Desk;
use super::turns::Busy;
use super::{Published, Unfit, text};
use crate::evaluate::Judged;
use crate::evaluate::held_out::{self, Lesson};
use crate::evaluate::suggest::{FOLDS, HeldOut};
use crate::inference;

/// A text with the index of its true category.
pub(super) type Example = (String, usize);

/// The result of an evaluation.
#[derive(Debug)]
pub(super) struct Measured {
    pub(super) published: Arc<Published>,
    pub(super) texts: Vec<String>,
    /// One per text.
    pub(super) judged: Vec<Judged>,
    /// Whether each text was classified by a model that was not trained on it.
    pub(super) held_out: bool,
    /// Number of examples that the sample was drawn from.
    pub(super) of: usize,
}

/// Why the evaluation failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotMeasured {
    #[error(transparent)]
    Busy(#[from] Busy),
    #[error("`examples[{index}].text`: {why}")]
    Unfit { index: usize, why: Unfit },
    /// Otherwise the evaluation would attribute the results of the fallback rules to the failing model.
    #[error("nothing was measured, as not all works as it should: {0}")]
    Impaired(String),
    #[error("no category has two examples, so none can be held out; give `examples`: texts with their categories")]
    TooFew,
    #[error("the examples could not be embedded: {0}")]
    Embedding(#[from] inference::Error),
    #[error("the examples could not be learned: {0}")]
    Learning(#[from] held_out::Error),
    #[error("measuring stopped unexpectedly; look at the log")]
    Stopped,
}

/// Maximum number of examples for cross-validation. More are sampled: training on all takes minutes.
const MOST_HELD_OUT: usize = 2000;
/// Batch size between two progress reports.
const TOGETHER: usize = 64;

impl Desk {
    /// Classifies texts as `classify_text` does. `tell` receives the number of finished texts and the total.
    pub(super) async fn measure(
        &self,
        published: Arc<Published>,
        examples: Vec<Example>,
        tell: impl Fn(usize, usize),
    ) -> Result<Measured, NotMeasured> {
        let _turn = self.turn().await?;
        let with = self.classification().with_settings();
        let (mut judged, of) = (Vec::with_capacity(examples.len()), examples.len());
        for piece in examples.chunks(TOGETHER) {
            let before = judged.len();
            let clean = |(place, (text, _)): (usize, &Example)| {
                let clean = text::clean(text, with.settings.max_text_length).map(std::borrow::Cow::into_owned);
                clean.map_err(|why| NotMeasured::Unfit { index: before + place, why })
            };
            let texts: Vec<String> = piece.iter().enumerate().map(clean).collect::<Result<_, _>>()?;
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            let verdicts = published.classify_many(&texts, with).await;
            if let Some(why) = published.impairment() {
                return Err(NotMeasured::Impaired(why));
            }
            let each = piece.iter().zip(verdicts);
            judged.extend(each.map(|((_, truth), (verdict, _))| Judged {
                truth: Some(*truth),
                class: verdict.class(),
                confidence: verdict.confidence(),
                out_of_scope: verdict.out_of_scope,
                strangeness: verdict.strangeness,
                micros: 0.0,
            }));
            tell(judged.len(), of);
        }
        let texts = examples.into_iter().map(|(text, _)| text).collect();
        Ok(Measured { published, texts, judged, held_out: false, of })
    }

    /// Cross-validates the taxonomy's examples: each is classified by a model trained without it. Rules and models from
    /// a folder are not trained on the examples and classify all of them directly.
    pub(super) async fn measure_own(
        &self,
        tell: impl Fn(usize, usize) + Send + Clone + 'static,
    ) -> Result<Measured, NotMeasured> {
        let published = self.classification().published();
        let own = own_examples(&published);
        let of = own.len();
        let class_of: Vec<usize> = own.iter().map(|(_, class)| *class).collect();
        let places = held_out::sample(&class_of, MOST_HELD_OUT);
        let sample: Vec<Example> = places.into_iter().map(|place| own[place].clone()).collect();
        let method = published.method(None, self.classification().with_settings()).await;
        if method.learned().is_none() {
            let measured = self.measure(published, sample, tell).await?;
            return Ok(Measured { of, ..measured });
        }
        let judged = self.hold_out(sample, tell).await?;
        if judged.is_empty() {
            return Err(NotMeasured::TooFew);
        }
        let texts = judged.iter().map(|example| example.text.clone()).collect();
        let judged = judged.iter().map(|example| Judged {
            truth: Some(example.category),
            class: example.predicted,
            confidence: example.confidence,
            out_of_scope: example.out_of_scope,
            strangeness: example.out_of_scope,
            micros: 0.0,
        });
        Ok(Measured { published, texts, judged: judged.collect(), held_out: true, of })
    }

    async fn hold_out(
        &self,
        examples: Vec<Example>,
        tell: impl Fn(usize, usize) + Send + Clone + 'static,
    ) -> Result<Vec<HeldOut>, NotMeasured> {
        let turn = self.turn().await?;
        let inference = &self.classification().0.inference;
        let (texts, category_of): (Vec<String>, Vec<usize>) = examples.into_iter().unzip();
        // Embedding and each training fold count as one unit of progress per text.
        let all = texts.len() * (1 + FOLDS);
        let mut embeddings = Vec::with_capacity(texts.len());
        for piece in texts.chunks(TOGETHER) {
            embeddings.extend(inference.embed(piece.to_vec(), Purpose::Passage).await?);
            tell(embeddings.len(), all);
        }
        // Class indices are dense, category indices are not.
        let mut known = category_of.clone();
        known.sort_unstable();
        known.dedup();
        let class_of: Vec<usize> =
            category_of.iter().map(|category| known.partition_point(|it| it < category)).collect();
        let caller = Caller::default();
        let left = caller.0.clone();
        let judged = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            let lesson = Lesson { texts: &texts, embeddings: &embeddings, class_of: &class_of, classes: known.len() };
            let judged = held_out::judge(lesson, |fold| {
                tell(texts.len() * (1 + fold), all);
                !left.load(Ordering::Relaxed)
            });
            let in_place = |example: HeldOut| HeldOut {
                category: known[example.category],
                predicted: known[example.predicted],
                ..example
            };
            judged.map(|judged| judged.into_iter().map(in_place).collect())
        });
        let judged: Result<Vec<HeldOut>, held_out::Error> = judged.await.map_err(|_| NotMeasured::Stopped)?;
        drop(caller);
        Ok(judged?)
    }
}

/// Set on drop, so the blocking thread can detect that its caller has disconnected.
#[derive(Default)]
struct Caller(Arc<AtomicBool>);

impl Drop for Caller {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// All distinct examples with the index of their category. A duplicate could end up in the training fold and the test
/// fold.
fn own_examples(published: &Published) -> Vec<Example> {
    let mut seen = HashSet::new();
    let categories = published.taxonomy.categories.iter().enumerate();
    let examples =
        categories.flat_map(|(place, category)| category.examples.iter().map(move |text| (text.as_ref(), place)));
    examples.filter(|(text, _)| seen.insert(*text)).map(|(text, place)| (text.to_owned(), place)).collect()
}

//! A fine-tuned sequence-classification model from a folder decides about every text.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use corbie_infer::{ModelId, SequenceClassifier};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::{By, Verdict};
use crate::classify::taxonomy::Taxonomy;
use crate::inference;

pub struct Sequence {
    model: Arc<SequenceClassifier>,
    /// The category of each output of the model.
    category_of: Arc<[usize]>,
    categories: usize,
    /// The model uses several cores for one text; more texts at a time would only wait for each other.
    turns: Arc<Semaphore>,
    /// How long a caller waits for a turn, and then for the model.
    limit: Duration,
}

/// Why a folder's model cannot be used for a taxonomy.
#[derive(Debug, thiserror::Error)]
pub enum Mismatch {
    #[error("{0}")]
    Model(#[from] corbie_infer::Error),
    #[error("the model's label `{label}` is no category; name the categories as its labels are named")]
    NoCategory { label: String },
    #[error("the model has no label for the category `{category}`; train it for this one too, or take it out")]
    NoLabel { category: String },
}

const AT_A_TIME: usize = 2;

impl Sequence {
    pub fn open(
        path: &Path,
        max_tokens: Option<usize>,
        threads: usize,
        limit: Duration,
        taxonomy: &Taxonomy,
    ) -> Result<Sequence, Mismatch> {
        let model = SequenceClassifier::open(path, max_tokens, threads)?;
        let place = |label: &String| {
            let place = taxonomy.categories.iter().position(|category| category.name == *label && !category.retired);
            place.ok_or_else(|| Mismatch::NoCategory { label: label.clone() })
        };
        let category_of: Vec<usize> = model.labels().iter().map(place).collect::<Result<_, _>>()?;
        if let Some((_, missing)) = taxonomy.in_use().find(|(place, _)| !category_of.contains(place)) {
            return Err(Mismatch::NoLabel { category: missing.name.clone() });
        }
        Ok(Sequence {
            model: Arc::new(model),
            category_of: category_of.into(),
            categories: taxonomy.categories.len(),
            turns: Arc::new(Semaphore::new(AT_A_TIME)),
            limit,
        })
    }

    pub fn id(&self) -> &ModelId {
        self.model.id()
    }

    pub(super) async fn read(&self, text: String) -> Result<Verdict, inference::Error> {
        let model = self.model.clone();
        let scored = in_turn(&self.turns, self.limit, move || model.classify(&text)).await??;
        let mut probabilities = vec![0.0; self.categories];
        for (category, probability) in self.category_of.iter().zip(scored) {
            probabilities[*category] = probability;
        }
        // Such a model knows its labels and nothing of other texts.
        Ok(Verdict { probabilities, out_of_scope: 0.0, strangeness: 0.0, by: By::Model })
    }
}

/// Nobody can stop a model, so the turn is over when it is done, and not when its caller leaves: one that does not come
/// back would otherwise take a thread with every call, until none is left for anybody.
async fn in_turn<T: Send + 'static>(
    turns: &Arc<Semaphore>,
    limit: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, inference::Error> {
    let stuck = |_| inference::Error::Stuck(limit);
    let turn = timeout(limit, turns.clone().acquire_owned()).await.map_err(stuck)?;
    let turn = turn.map_err(|_| inference::Error::Stopped)?;
    let done = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        work()
    });
    timeout(limit, done).await.map_err(stuck)?.map_err(|_| inference::Error::Stopped)
}

impl std::fmt::Debug for Sequence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sequence").field("model", self.model.id()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn a_model_that_does_not_come_back_takes_no_more_threads_than_it_has_turns() {
        let (turns, begun) = (Arc::new(Semaphore::new(1)), Arc::new(AtomicUsize::new(0)));
        let (hold, held) = mpsc::channel::<()>();
        let mut held = Some(held);
        for _ in 0..3 {
            let (begun, held) = (begun.clone(), held.take());
            let work = move || {
                begun.fetch_add(1, Ordering::Relaxed);
                // Nothing is ever sent.
                held.map(|held| held.recv())
            };
            let answer = in_turn(&turns, Duration::from_millis(50), work).await;
            assert!(matches!(answer, Err(inference::Error::Stuck(_))), "everybody is answered: {answer:?}");
        }
        assert_eq!(begun.load(Ordering::Relaxed), 1);
        drop(hold);
        let answer = in_turn(&turns, Duration::from_secs(60), || 7).await;
        assert!(matches!(answer, Ok(7)), "it goes on when it comes back: {answer:?}");
    }
}

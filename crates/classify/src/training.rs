//! Trained classifier of a taxonomy: loaded from its file, or trained from the examples on first use.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use corbie_infer::heads::{Classifier, ClassifyError, Example, Prediction};
use corbie_infer::{Embedding, ModelId, Purpose, Spelling};
use sha2::{Digest, Sha256};

use super::taxonomy::{self, Category, Taxonomy};
use crate::inference::{self, Inference};
use corbie_util::concurrency_limit::ConcurrencyPermit;

/// A classifier for the categories of one taxonomy.
pub struct TrainedClassifier {
    training_set: Arc<TrainingSet>,
    classifier: Arc<Classifier>,
    /// The category index of each class of the classifier, which has no retired categories and its own order.
    category_of: Vec<usize>,
    categories: usize,
    /// Built lazily, by the first text that needs it.
    spelling: Arc<OnceLock<Spelling>>,
}

/// A hash of everything that training depends on except the embedding model. The classifier stores the model's name.
pub type Fingerprint = [u8; 32];

/// Why training failed.
#[derive(Debug, thiserror::Error)]
pub enum TrainingError {
    #[error("cannot embed the examples: {0}")]
    Model(#[from] inference::Error),
    #[error("{0}")]
    Training(#[from] corbie_infer::heads::TrainError),
    #[error("training stopped unexpectedly")]
    Panicked,
}

const MAGIC: &[u8] = b"corbie trained 2\n";
/// Two thousand categories with the maximum number of examples each take a third of this.
const MAX_SAVED_BYTES: u64 = 512 << 20;
/// Bumped whenever training changes, so that classifiers saved by older versions are retrained.
const TRAINING_VERSION: &[u8] = b"4 heads, glance";

impl TrainedClassifier {
    /// Loads the saved classifier, or trains one now. Returns `None` for fewer than two active categories.
    pub(super) async fn load_or_train(
        taxonomy: &Taxonomy,
        inference: &Inference,
        turn: Option<ConcurrencyPermit>,
    ) -> Result<Option<TrainedClassifier>, TrainingError> {
        if active(taxonomy).count() < 2 {
            return Ok(None);
        }
        let (copy, model) = (taxonomy.clone(), inference.model().await?);
        // Hashing many examples and reading a large classifier block the thread.
        let found = tokio::task::spawn_blocking(move || {
            let lesson = TrainingSet::of(&copy);
            let saved = lesson.load_saved(copy.path.as_deref(), &model);
            (lesson, saved)
        });
        let (lesson, saved) = found.await.map_err(|_| TrainingError::Panicked)?;
        let classifier = match saved {
            Some(classifier) => classifier,
            None => {
                let started = Instant::now();
                let classifier = lesson.train(inference, turn).await?;
                let seconds = started.elapsed().as_secs_f32();
                tracing::info!(examples = lesson.texts.len(), seconds, "taxonomy trained");
                if let Some(path) = &taxonomy.path {
                    tracing::info!("run `corbie taxonomy train {}` to save the trained model", path.display());
                }
                classifier
            }
        };
        Ok(Some(TrainedClassifier::new(Arc::new(lesson), Arc::new(classifier), taxonomy)))
    }

    /// Trains from scratch and ignores a saved classifier.
    pub async fn train(taxonomy: &Taxonomy, inference: &Inference) -> Result<Option<TrainedClassifier>, TrainingError> {
        if active(taxonomy).count() < 2 {
            return Ok(None);
        }
        let lesson = TrainingSet::of(taxonomy);
        let classifier = lesson.train(inference, None).await?;
        Ok(Some(TrainedClassifier::new(Arc::new(lesson), Arc::new(classifier), taxonomy)))
    }

    /// Reuses this classifier for a taxonomy with the same examples, in any category order. Returns `None` if the
    /// examples differ.
    pub fn reuse_for(&self, taxonomy: &Taxonomy) -> Option<TrainedClassifier> {
        let same = TrainingSet::of(taxonomy).fingerprint == self.training_set.fingerprint;
        let reused = || TrainedClassifier {
            spelling: self.spelling.clone(),
            ..TrainedClassifier::new(self.training_set.clone(), self.classifier.clone(), taxonomy)
        };
        same.then(reused)
    }

    fn new(lesson: Arc<TrainingSet>, classifier: Arc<Classifier>, taxonomy: &Taxonomy) -> TrainedClassifier {
        let category_of = active(taxonomy).map(|(place, _)| place).collect();
        let categories = taxonomy.categories.len();
        TrainedClassifier { training_set: lesson, classifier, category_of, categories, spelling: Arc::default() }
    }

    /// Serializes the classifier for the file at [`saved_path`].
    pub fn to_bytes(&self) -> Vec<u8> {
        [MAGIC, &self.training_set.fingerprint, &self.classifier.to_bytes()].concat()
    }

    pub fn model(&self) -> &ModelId {
        self.classifier.model()
    }

    pub fn examples(&self) -> &[String] {
        &self.training_set.texts
    }

    /// Early exit: a verdict from the words alone, if they are conclusive.
    pub fn early_exit(&self, text: &str) -> Option<Prediction> {
        self.classifier.classify_early(text).map(|verdict| self.remap_classes(verdict))
    }

    /// Corrects typing errors. Returns `None` if the text has none.
    pub fn correct_spelling(&self, text: &str) -> Option<String> {
        let known = || Spelling::of(self.examples().iter().map(String::as_str));
        self.spelling.get_or_init(known).correct(text)
    }

    /// Combines all heads. The vector must come from the model that the classifier was trained with.
    pub fn classify(&self, text: &str, embedding: &Embedding) -> Result<Prediction, inference::Error> {
        self.map_model_error(self.classifier.classify(text, embedding))
    }

    /// k-nearest-neighbour vote. Falls back to all heads if there are too many examples to store their vectors.
    pub fn vote(&self, text: &str, embedding: &Embedding) -> Result<Prediction, inference::Error> {
        match self.classifier.classify_knn(embedding) {
            Some(verdict) => self.map_model_error(verdict),
            None => self.classify(text, embedding),
        }
    }

    /// The nearest examples to a vector, nearest first, each with its category and similarity. Empty if there are too
    /// many examples to store, or if the vector comes from another model.
    pub fn nearest(&self, embedding: &Embedding) -> impl Iterator<Item = (usize, &str, f32)> {
        let near = self.classifier.nearest(embedding).unwrap_or_default().into_iter();
        near.filter_map(|near| {
            let (category, text) = (self.category_of.get(near.class)?, self.training_set.texts.get(near.example)?);
            Some((*category, text.as_str(), near.similarity))
        })
    }

    /// The classifier rejects vectors of another model. That is reported as a model error.
    fn map_model_error(&self, verdict: Result<Prediction, ClassifyError>) -> Result<Prediction, inference::Error> {
        verdict.map(|verdict| self.remap_classes(verdict)).map_err(|error| inference::Error::Model(error.to_string()))
    }

    /// Moves each class's probability to the position of its category.
    fn remap_classes(&self, verdict: Prediction) -> Prediction {
        let mut probabilities = vec![0.0; self.categories];
        for (category, probability) in self.category_of.iter().zip(verdict.probabilities) {
            probabilities[*category] = probability;
        }
        Prediction { probabilities, ..verdict }
    }
}

/// Path of a taxonomy's trained classifier, next to the taxonomy file.
pub fn saved_path(taxonomy: &Path) -> PathBuf {
    taxonomy.with_extension("trained")
}

/// Whether the saved classifier was trained from the current examples. `None` if no classifier is saved.
pub fn saved_is_current(taxonomy: &Taxonomy) -> Option<bool> {
    let mut start = [0; MAGIC.len() + size_of::<Fingerprint>()];
    let is_whole = open(&saved_path(taxonomy.path.as_deref()?))?.read_exact(&mut start).is_ok();
    Some(is_whole && start.strip_prefix(MAGIC) == Some(&TrainingSet::of(taxonomy).fingerprint))
}

/// Opens a saved classifier with a size limit. Only regular files: any other kind could block or be endless.
fn open(path: &Path) -> Option<std::io::Take<File>> {
    let is_file = std::fs::metadata(path).ok()?.is_file();
    let file = is_file.then(|| File::open(path).ok()).flatten()?;
    Some(file.take(MAX_SAVED_BYTES))
}

/// The categories in use, sorted by name. Classes have this order, so training does not depend on the position of a
/// category.
fn active(taxonomy: &Taxonomy) -> impl Iterator<Item = (usize, &Category)> {
    let mut active: Vec<(usize, &Category)> = taxonomy.active_categories().collect();
    active.sort_by(|(_, one), (_, other)| one.name.cmp(&other.name));
    active.into_iter()
}

/// The training set of a taxonomy.
struct TrainingSet {
    fingerprint: Fingerprint,
    texts: Vec<String>,
    class_of: Vec<usize>,
    classes: usize,
}

impl TrainingSet {
    fn of(taxonomy: &Taxonomy) -> TrainingSet {
        let mut hash = Sha256::new();
        let mut part = |bytes: &[u8]| {
            hash.update((bytes.len() as u64).to_le_bytes());
            hash.update(bytes);
        };
        part(TRAINING_VERSION);
        let (mut texts, mut class_of, mut classes) = (Vec::new(), Vec::new(), 0);
        for (class, (_, category)) in active(taxonomy).enumerate() {
            classes += 1;
            part(category.name.as_bytes());
            part(&category.training_texts().count().to_le_bytes());
            for text in category.training_texts() {
                part(text.as_bytes());
                class_of.push(class);
                texts.push(text.into_owned());
            }
        }
        TrainingSet { fingerprint: hash.finalize().into(), texts, class_of, classes }
    }

    fn load_saved(&self, path: Option<&Path>, model: &ModelId) -> Option<Classifier> {
        let mut file = Vec::new();
        let bytes = match path {
            None => taxonomy::default::TRAINED,
            Some(path) => {
                open(&saved_path(path))?.read_to_end(&mut file).ok()?;
                &file
            }
        };
        let (fingerprint, bytes) = bytes.strip_prefix(MAGIC)?.split_at_checked(size_of::<Fingerprint>())?;
        if fingerprint != self.fingerprint {
            if path.is_some() {
                tracing::warn!("ignoring the trained model next to the taxonomy: it was trained on different examples");
            }
            return None;
        }
        let classifier = Classifier::from_bytes(bytes).inspect_err(|error| tracing::warn!("{error}")).ok()?;
        (classifier.model() == model && classifier.classes() == self.classes).then_some(classifier)
    }

    /// Training cannot be cancelled, so the permit is released when training ends, not when its caller disconnects.
    async fn train(&self, inference: &Inference, turn: Option<ConcurrencyPermit>) -> Result<Classifier, TrainingError> {
        let embeddings = inference.embed(self.texts.clone(), Purpose::Passage).await?;
        let (texts, class_of, classes) = (self.texts.clone(), self.class_of.clone(), self.classes);
        let trained = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            let examples: Vec<Example<'_>> = texts
                .iter()
                .zip(&embeddings)
                .zip(&class_of)
                .map(|((text, embedding), class)| Example { text, embedding, class: *class })
                .collect();
            Ok(Classifier::train(&examples, classes)?)
        });
        trained.await.unwrap_or(Err(TrainingError::Panicked))
    }
}

impl std::fmt::Debug for TrainedClassifier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Learned").field("classifier", &self.classifier).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/taxonomy/default/trained");

    #[tokio::test]
    async fn what_was_learned_of_the_builtin_taxonomy_is_inside() {
        let (taxonomy, inference) = (Taxonomy::builtin(), Inference::new(Default::default()));
        let lesson = TrainingSet::of(&taxonomy);
        let model = inference.model().await.unwrap();
        if lesson.load_saved(None, &model).is_none() && std::env::var_os("CORBIE_BLESS").is_some() {
            let learned = TrainedClassifier::train(&taxonomy, &inference).await.unwrap().unwrap();
            std::fs::write(FILE, learned.to_bytes()).unwrap();
            return;
        }
        assert!(
            lesson.load_saved(None, &model).is_some(),
            "the examples have changed; run this test with CORBIE_BLESS=1"
        );
    }

    #[test]
    fn the_fingerprint_sees_every_word_and_not_where_a_category_stands() {
        let of = |yaml: &str| TrainingSet::of(&Taxonomy::parse(yaml).unwrap()).fingerprint;
        let first = of("categories: [{name: a, examples: [x, y]}, {name: b, examples: [z]}]");
        assert_eq!(first, of("categories: [{name: b, patterns: [q], examples: [z]}, {name: a, examples: [x, y]}]"));
        assert_ne!(first, of("categories: [{name: a, examples: [x]}, {name: b, examples: [y, z]}]"));
        assert_ne!(first, of("categories: [{name: a, examples: [x, y]}, {name: b, examples: [Z]}]"));
        assert_ne!(first, of("categories: [{name: a, examples: [xy]}, {name: b, examples: [z]}]"));
    }

    #[cfg(unix)]
    #[test]
    fn what_is_no_regular_file_is_not_opened() {
        assert!(open(Path::new("/dev/zero")).is_none());
        assert!(open(Path::new("/no/such/file")).is_none());
    }
}

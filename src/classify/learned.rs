//! What is learned from a taxonomy's examples: a trained classifier, kept in a file or made when it is needed.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use corbie_infer::heads::{Classifier, Example, Verdict};
use corbie_infer::{Embedding, ModelId, Purpose, Spelling};
use sha2::{Digest, Sha256};

use super::taxonomy::{self, Taxonomy};
use crate::inference::{self, Inference};

/// A classifier for the categories of one taxonomy.
pub struct Learned {
    /// What it was learned from; the same examples need not be learned twice.
    fingerprint: Fingerprint,
    classifier: Classifier,
    /// The category of each class of the classifier, which knows nothing of retired ones.
    category_of: Vec<usize>,
    categories: usize,
    examples: Arc<[String]>,
    /// Made with the first text that needs it.
    spelling: OnceLock<Spelling>,
}

/// A hash of everything that training depends on, but for the embedding model, whose name the classifier carries.
pub type Fingerprint = [u8; 32];

/// Why nothing was learned.
#[derive(Debug, thiserror::Error)]
pub enum LearnError {
    #[error("the examples could not be embedded: {0}")]
    Model(#[from] inference::Error),
    #[error("{0}")]
    Training(#[from] corbie_infer::heads::TrainError),
    #[error("training stopped unexpectedly")]
    Panicked,
}

const MAGIC: &[u8] = b"corbie trained 1\n";
/// Two thousand categories with as many examples as are looked through take a third of it.
const MOST_BYTES: u64 = 512 << 20;
/// Changed whenever training changes, so that what an older version learned is learned again.
const TRAINING: &[u8] = b"4 heads, glance";

impl Learned {
    /// Loads what was learned before, or learns it now. None where there are not two categories to tell apart.
    pub async fn of(taxonomy: &Taxonomy, inference: &Inference) -> Result<Option<Learned>, LearnError> {
        if taxonomy.categories.iter().filter(|category| !category.retired).count() < 2 {
            return Ok(None);
        }
        let (taxonomy, model) = (taxonomy.clone(), inference.model().await?);
        // Hashing many examples and reading a large classifier take their time.
        let found = tokio::task::spawn_blocking(move || {
            let lesson = Lesson::of(&taxonomy);
            let saved = lesson.saved(taxonomy.path.as_deref(), &model);
            (lesson, saved)
        });
        let lesson = match found.await.map_err(|_| LearnError::Panicked)? {
            (_, Some(learned)) => return Ok(Some(learned)),
            (lesson, None) => lesson,
        };
        let started = std::time::Instant::now();
        let learned = lesson.learn(inference).await?;
        tracing::info!(
            examples = learned.examples.len(),
            seconds = started.elapsed().as_secs_f32(),
            "learned the taxonomy; `corbie taxonomy train` keeps the result"
        );
        Ok(Some(learned))
    }

    /// Learns anew, whatever was saved.
    pub async fn train(taxonomy: &Taxonomy, inference: &Inference) -> Result<Option<Learned>, LearnError> {
        let lesson = Lesson::of(taxonomy);
        if lesson.category_of.len() < 2 {
            return Ok(None);
        }
        lesson.learn(inference).await.map(Some)
    }

    /// The same classifier for a taxonomy with the same examples; none if they differ.
    pub fn reused(self: &Arc<Self>, taxonomy: &Taxonomy) -> Option<Arc<Learned>> {
        let lesson = Lesson::of(taxonomy);
        let same = lesson.fingerprint == self.fingerprint
            && lesson.category_of == self.category_of
            && lesson.categories == self.categories;
        same.then(|| self.clone())
    }

    /// As a file, to be saved at [`saved_at`].
    pub fn to_bytes(&self) -> Vec<u8> {
        [MAGIC, &self.fingerprint, &self.classifier.to_bytes()].concat()
    }

    pub fn model(&self) -> &ModelId {
        self.classifier.model()
    }

    pub fn examples(&self) -> &[String] {
        &self.examples
    }

    /// A verdict from the words alone, where they leave no doubt.
    pub fn glance(&self, text: &str) -> Option<Verdict> {
        self.classifier.glance(text).map(|verdict| self.placed(verdict))
    }

    /// The text with its typing errors mended; none where there are none.
    pub fn mend(&self, text: &str) -> Option<String> {
        let known = || Spelling::of(self.examples.iter().map(String::as_str));
        self.spelling.get_or_init(known).mend(text)
    }

    /// What all heads say. The vector must be of the model that the classifier was trained with.
    pub fn classify(&self, text: &str, embedding: &Embedding) -> Result<Verdict, inference::Error> {
        let verdict = self.classifier.classify(text, embedding);
        verdict.map(|verdict| self.placed(verdict)).map_err(|error| inference::Error::Model(error.to_string()))
    }

    /// What the nearest examples say; all heads where there are too many examples to keep.
    pub fn vote(&self, text: &str, embedding: &Embedding) -> Result<Verdict, inference::Error> {
        match self.classifier.vote(embedding) {
            Some(verdict) => {
                verdict.map(|verdict| self.placed(verdict)).map_err(|error| inference::Error::Model(error.to_string()))
            }
            None => self.classify(text, embedding),
        }
    }

    /// Puts each class's probability in the place of its category.
    fn placed(&self, verdict: Verdict) -> Verdict {
        if self.category_of.len() == self.categories {
            return verdict;
        }
        let mut probabilities = vec![0.0; self.categories];
        for (category, probability) in self.category_of.iter().zip(verdict.probabilities) {
            probabilities[*category] = probability;
        }
        Verdict { probabilities, ..verdict }
    }
}

/// Where a taxonomy's classifier is kept: beside it.
pub fn saved_at(taxonomy: &Path) -> PathBuf {
    taxonomy.with_extension("trained")
}

/// Whether what is saved beside a taxonomy was learned from the examples it has now; none where nothing is saved.
pub fn saved_fits(taxonomy: &Taxonomy) -> Option<bool> {
    let mut file = std::fs::File::open(saved_at(taxonomy.path.as_deref()?)).ok()?;
    let mut start = [0; MAGIC.len() + size_of::<Fingerprint>()];
    let is_whole = file.read_exact(&mut start).is_ok();
    Some(is_whole && start.strip_prefix(MAGIC) == Some(&Lesson::of(taxonomy).fingerprint))
}

/// The examples of a taxonomy, ready to be learned.
struct Lesson {
    fingerprint: Fingerprint,
    texts: Vec<String>,
    class_of: Vec<usize>,
    category_of: Vec<usize>,
    categories: usize,
}

impl Lesson {
    fn of(taxonomy: &Taxonomy) -> Lesson {
        let mut hash = Sha256::new();
        hash.update(TRAINING);
        let (mut texts, mut class_of, mut category_of) = (Vec::new(), Vec::new(), Vec::new());
        for (category, text) in taxonomy.examples() {
            if category_of.last() != Some(&category) {
                category_of.push(category);
            }
            let class = category_of.len() - 1;
            hash.update((class as u32).to_le_bytes());
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text.as_bytes());
            class_of.push(class);
            texts.push(text.into_owned());
        }
        let categories = taxonomy.categories.len();
        Lesson { fingerprint: hash.finalize().into(), texts, class_of, category_of, categories }
    }

    fn saved(&self, path: Option<&Path>, model: &ModelId) -> Option<Learned> {
        let file;
        let bytes = match path {
            None => taxonomy::default::TRAINED,
            Some(path) => {
                let path = saved_at(path);
                if std::fs::metadata(&path).ok()?.len() > MOST_BYTES {
                    tracing::warn!("`{}` is too large to be a classifier; it is not used", path.display());
                    return None;
                }
                file = std::fs::read(path).ok()?;
                &file
            }
        };
        let (fingerprint, bytes) = bytes.strip_prefix(MAGIC)?.split_at_checked(32)?;
        if fingerprint != self.fingerprint {
            return None;
        }
        let classifier = Classifier::from_bytes(bytes).inspect_err(|error| tracing::warn!("{error}")).ok()?;
        let fits = classifier.model() == model && classifier.classes() == self.category_of.len();
        fits.then(|| self.learned(classifier))
    }

    async fn learn(self, inference: &Inference) -> Result<Learned, LearnError> {
        let embeddings = inference.embed(self.texts.clone(), Purpose::Passage).await?;
        let trained = tokio::task::spawn_blocking(move || {
            let examples: Vec<Example<'_>> = self
                .texts
                .iter()
                .zip(&embeddings)
                .zip(&self.class_of)
                .map(|((text, embedding), class)| Example { text, embedding, class: *class })
                .collect();
            let classifier = Classifier::train(&examples, self.category_of.len())?;
            Ok(self.learned(classifier))
        });
        trained.await.unwrap_or(Err(LearnError::Panicked))
    }

    fn learned(&self, classifier: Classifier) -> Learned {
        Learned {
            fingerprint: self.fingerprint,
            classifier,
            category_of: self.category_of.clone(),
            categories: self.categories,
            examples: self.texts.clone().into(),
            spelling: OnceLock::new(),
        }
    }
}

impl std::fmt::Debug for Learned {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Learned").field("classifier", &self.classifier).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/classify/taxonomy/default/trained");

    #[tokio::test]
    async fn what_was_learned_of_the_builtin_taxonomy_is_inside() {
        let (taxonomy, inference) = (Taxonomy::builtin(), Inference::new(Default::default()));
        let lesson = Lesson::of(&taxonomy);
        let model = inference.model().await.unwrap();
        if lesson.saved(None, &model).is_none() && std::env::var_os("CORBIE_BLESS").is_some() {
            let learned = lesson.learn(&inference).await.unwrap();
            std::fs::write(FILE, learned.to_bytes()).unwrap();
            return;
        }
        assert!(lesson.saved(None, &model).is_some(), "the examples have changed; run this test with CORBIE_BLESS=1");
    }

    #[test]
    fn the_fingerprint_sees_every_word_and_where_it_stands() {
        let of = |yaml: &str| Lesson::of(&Taxonomy::parse(yaml).unwrap()).fingerprint;
        let first = of("categories: [{name: a, examples: [x, y]}, {name: b, examples: [z]}]");
        assert_eq!(first, of("categories: [{name: c, examples: [x, y]}, {name: d, patterns: [q], examples: [z]}]"));
        assert_ne!(first, of("categories: [{name: a, examples: [x]}, {name: b, examples: [y, z]}]"));
        assert_ne!(first, of("categories: [{name: a, examples: [x, y]}, {name: b, examples: [Z]}]"));
    }
}

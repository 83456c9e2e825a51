//! Fine-tuned sequence classification models.
//!
//! The model directory contains the exporter's files: `model.onnx`, `tokenizer.json`, and `config.json` with the class
//! names.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use serde::Deserialize;

use crate::embedding::ModelId;
use crate::error::Error;
use crate::model_dir::{self, ModelDir};
use crate::rten_runtime::{ModelTask, RtenModel};
use crate::tokenizer::TruncatingTokenizer;

/// A fine-tuned classifier. The same text gives the same probabilities, bit for bit.
#[derive(Debug)]
pub struct SequenceClassifier {
    id: ModelId,
    /// At least two, all different, in the order of the model's outputs.
    labels: Vec<String>,
    reader: TruncatingTokenizer,
    network: RtenModel,
}

impl SequenceClassifier {
    /// Loads a model from a directory. Runs it once to verify that it works.
    pub fn open(path: &Path, max_tokens: Option<usize>, threads: usize) -> Result<SequenceClassifier, Error> {
        model_dir::open_guarded(path, || SequenceClassifier::open_or_panic(path, max_tokens, threads))
    }

    fn open_or_panic(path: &Path, max_tokens: Option<usize>, threads: usize) -> Result<SequenceClassifier, Error> {
        let folder = ModelDir::read_model(path, max_tokens)?;
        let labels = read_labels(path)?;
        let bad = |reason: String| Error::BadModel { path: folder.network.clone(), reason };
        let settings = format!("classes {labels:?} {}", folder.max_tokens);
        let classifier = SequenceClassifier {
            network: RtenModel::load(ModelTask::TextClassification, &folder.network, threads).map_err(bad)?,
            id: folder.id_with(&settings).map_err(|error| bad(error.to_string()))?,
            reader: TruncatingTokenizer::new(&folder.tokenizer, folder.max_tokens).map_err(bad)?,
            labels,
        };
        classifier.classify_or_panic("a word to try").map_err(|error| bad(error.to_string()))?;
        Ok(classifier)
    }

    /// Identifies the directory and everything that affects the result, including the class names.
    pub fn id(&self) -> &ModelId {
        &self.id
    }

    /// Class names, in the order of the probabilities.
    pub fn labels(&self) -> &[String] {
        &self.labels
    }

    /// Maximum number of tokens of a text, including special tokens.
    pub fn max_tokens(&self) -> usize {
        self.reader.max_tokens()
    }

    /// The probability of each label: finite numbers with sum one. Longer texts are truncated to the input limit.
    pub fn classify(&self, text: &str) -> Result<Vec<f32>, Error> {
        // A tokenizer may pass the trial run and panic on another text. It is only read here, so a panic leaves no
        // inconsistent state.
        catch_unwind(AssertUnwindSafe(|| self.classify_or_panic(text)))
            .unwrap_or_else(|_| Err(self.run_error("it panicked on this text; export it again".into())))
    }

    fn classify_or_panic(&self, text: &str) -> Result<Vec<f32>, Error> {
        let tokens = self.reader.tokenize(text, 0)?;
        let scores = self.network.score(&tokens.ids, self.labels.len()).map_err(|reason| self.run_error(reason))?;
        softmax(&scores).ok_or_else(|| Error::Unusable {
            model: self.id.to_string(),
            index: 0,
            reason: "its values are not finite",
        })
    }

    fn run_error(&self, reason: String) -> Error {
        Error::Run { model: self.id.to_string(), reason }
    }
}

/// The class-related part of `config.json`.
#[derive(Deserialize)]
struct ConfigFile {
    id2label: Option<BTreeMap<String, String>>,
    problem_type: Option<String>,
}

const CONFIG_FILE: &str = "config.json";

/// Class names, in the order of the model's outputs.
fn read_labels(folder: &Path) -> Result<Vec<String>, Error> {
    let bad = |reason: String| Error::BadModel { path: folder.join(CONFIG_FILE), reason };
    let config: Option<ConfigFile> = model_dir::read_optional(folder, CONFIG_FILE)?;
    let config = config
        .ok_or_else(|| bad("missing; copy it from the training output, it has the class names in `id2label`".into()))?;
    // With multi-label models, softmax would make the classes exclusive, and the result would look valid.
    if let Some(kind) = config.problem_type.filter(|kind| kind != "single_label_classification") {
        return Err(bad(format!(
            "unsupported `problem_type` `{kind}`; only `single_label_classification` is supported"
        )));
    }
    let by_output = config
        .id2label
        .ok_or_else(|| bad("no `id2label`; add it, for example {\"0\": \"no\", \"1\": \"yes\"}".into()))?;
    labels_by_output(by_output).map_err(bad)
}

fn labels_by_output(mut by_output: BTreeMap<String, String>) -> Result<Vec<String>, String> {
    let count = by_output.len();
    if count < 2 {
        return Err(format!("`id2label` has {count} labels; at least two are required"));
    }
    let mut labels = Vec::with_capacity(count);
    let mut seen = BTreeSet::new();
    for output in 0..count {
        let label = by_output.remove(&output.to_string()).ok_or_else(|| {
            format!("`id2label` has {count} labels but none for `{output}`; number them from 0 without gaps")
        })?;
        if label.trim().is_empty() {
            return Err(format!("the label of `{output}` in `id2label` is empty; add a name"));
        }
        if !seen.insert(label.clone()) {
            return Err(format!("duplicate label `{label}` in `id2label`; labels must be unique"));
        }
        labels.push(label);
    }
    Ok(labels)
}

/// Converts logits to probabilities; `None` if a logit is not finite.
fn softmax(scores: &[f32]) -> Option<Vec<f32>> {
    if !scores.iter().all(|score| score.is_finite()) {
        return None;
    }
    // In f64, because the difference of two large numbers would overflow.
    let most = f64::from(scores.iter().copied().fold(f32::MIN, f32::max));
    let exps: Vec<f64> = scores.iter().map(|score| (f64::from(*score) - most).exp()).collect();
    let total: f64 = exps.iter().sum();
    Some(exps.iter().map(|exp| (exp / total) as f32).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_are_finite_and_sum_to_one_whatever_the_scores() {
        for scores in [[0.0, 0.0, 0.0], [f32::MAX, f32::MIN, 0.0], [f32::MIN; 3], [-80.0, 80.0, 79.0]] {
            let probabilities = softmax(&scores).expect("finite");
            assert!((probabilities.iter().sum::<f32>() - 1.0).abs() < 1e-6, "{scores:?} gave {probabilities:?}");
        }
        assert_eq!(softmax(&[f32::MAX, f32::MIN]), Some(vec![1.0, 0.0]));
    }

    #[test]
    fn scores_that_are_not_finite_have_no_probabilities() {
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            assert_eq!(softmax(&[bad, 0.0]), None);
        }
    }
}

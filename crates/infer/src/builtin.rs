//! Built-in models and their metadata.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::ocr;

/// Metadata of a model: identity, origin, and checksums of its files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelCard {
    pub id: String,
    pub name: String,
    /// Dimension of its embeddings; 0 for models without embeddings, such as OCR.
    #[serde(default, skip_serializing_if = "is_none")]
    pub dimension: usize,
    /// Maximum input length; 0 for models without text input.
    #[serde(default, skip_serializing_if = "is_none")]
    pub max_tokens: usize,
    pub languages: Vec<String>,
    pub source: ModelSource,
    #[serde(rename = "file")]
    pub files: Vec<ModelFile>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelSource {
    /// Publisher of the model.
    pub publisher: String,
    /// The package that contains the weights.
    pub package: String,
    pub version: String,
    /// SHA-256 of the package.
    pub sha256: String,
    pub model_license: String,
    pub package_license: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelFile {
    pub name: String,
    pub bytes: u64,
    pub sha256: String,
}

/// The graph, without its weights.
pub(crate) const NETWORK: &[u8] = include_bytes!("../models/all-MiniLM-L6-v2/model.onnx");
pub(crate) const TOKENIZER: &[u8] = include_bytes!("../models/all-MiniLM-L6-v2/tokenizer.json");
/// The name of the weights file in the graph.
pub(crate) const WEIGHTS_NAME: &str = "model.onnx.data";
/// Memory-mapped from the executable: unused pages are never read.
pub(crate) static WEIGHTS: &[u8] = rten::include_external_data!("../models/all-MiniLM-L6-v2/model.onnx.data");

/// The embedding model comes first.
static CARDS: LazyLock<[ModelCard; 2]> = LazyLock::new(|| {
    [include_str!("../models/all-MiniLM-L6-v2/MODEL.toml"), include_str!("../models/PP-OCRv6-tiny/MODEL.toml")]
        .map(|card| toml::from_str(card).expect("the card was checked by a test"))
});

/// One word per line. The source is the WordPiece vocabulary: it is sorted by frequency, and many tokens are not
/// words.
static ENGLISH_WORDS: LazyLock<String> = LazyLock::new(|| {
    #[derive(Deserialize)]
    struct Tokenizer {
        model: Vocabulary,
    }
    #[derive(Deserialize)]
    struct Vocabulary {
        vocab: HashMap<String, u32>,
    }
    // Most of the rarer short tokens are fragments and abbreviations.
    let is_word = |token: &str, rank: u32| match token.len() {
        1 => matches!(token, "a" | "i"),
        2 => rank < 4000,
        3 => rank < 9000,
        _ => true,
    };
    let tokenizer: Tokenizer = serde_json::from_slice(TOKENIZER).expect("the tokenizer was checked by a test");
    let mut words: Vec<(u32, String)> = tokenizer.model.vocab.into_iter().map(|(token, rank)| (rank, token)).collect();
    words.retain(|(rank, token)| token.bytes().all(|byte| byte.is_ascii_lowercase()) && is_word(token, *rank));
    words.sort_unstable();
    words.into_iter().map(|(_, token)| token + "\n").collect()
});

/// Common English words, the most common first.
pub(crate) fn english_words() -> impl Iterator<Item = &'static str> + Clone {
    ENGLISH_WORDS.lines()
}

impl ModelCard {
    /// Short description of its input and output.
    pub fn description(&self) -> String {
        match self.dimension {
            0 => "OCR: image to text".to_owned(),
            dimension => format!("text embeddings, {dimension} dimensions, up to {} tokens", self.max_tokens),
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "required by serde")]
fn is_none(number: &usize) -> bool {
    *number == 0
}

/// The models in this build: the embedding model, then the OCR model.
pub fn builtin_models() -> &'static [ModelCard] {
    &*CARDS
}

/// Names of the built-in files that do not match their checksums. Blocks: hashes all files.
pub fn damaged_builtin_files() -> Vec<String> {
    let inside: [(&str, &[u8]); 6] = [
        ("model.onnx", NETWORK),
        ("model.onnx.data", WEIGHTS),
        ("tokenizer.json", TOKENIZER),
        ("det.onnx", ocr::DETECTION_MODEL),
        ("rec.onnx", ocr::RECOGNITION_MODEL),
        ("characters.txt", ocr::CHARACTERS.as_bytes()),
    ];
    let is_sound = |(name, bytes): &(&str, &[u8])| {
        let hash: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        let mut files = CARDS.iter().flat_map(|card| &card.files);
        files.any(|file| file.name == *name && file.bytes == bytes.len() as u64 && file.sha256 == hash)
    };
    inside.iter().filter(|file| !is_sound(file)).map(|(name, _)| (*name).to_owned()).collect()
}

/// Metadata of the embedding model.
pub(crate) fn embedding_model_card() -> &'static ModelCard {
    &CARDS[0]
}

//! Local inference: text embeddings, text classification, and OCR.
//!
//! A synchronous library without protocols or configuration. [`Embedder`] turns text into unit vectors, with the
//! built-in model or one from a directory. [`heads::Classifier`] learns classes from a few examples on top of the
//! embeddings. [`SequenceClassifier`] runs a fine-tuned sequence classification model. [`ocr::Engine`] recognizes text
//! in images.

mod builtin;
mod embedder;
mod embedding;
mod error;
mod folder;
#[cfg(all(test, target_os = "linux"))]
#[path = "../../../tests/guarded/mod.rs"]
mod guarded;
pub mod heads;
mod language;
#[cfg(target_arch = "x86_64")]
mod minilm;
mod network;
pub mod ocr;
mod pooling;
mod sequence;
mod spelling;
mod tokens;

pub use builtin::{Card, builtin_models, damaged_builtin_files};
pub use embedder::{Embedder, Purpose};
pub use embedding::{Embedding, ModelId};
pub use error::Error;
pub use folder::FolderOptions;
pub use language::Language;
pub use pooling::Pooling;
pub use sequence::SequenceClassifier;
pub use spelling::Spelling;
pub use tokens::{MAX_TEXT_BYTES, Tokenizer, Tokens};

//! Local inference: text embeddings, text classification, and OCR.
//!
//! A synchronous library without protocols or configuration. [`Embedder`] turns text into unit vectors, with the
//! built-in model or one from a directory. [`heads::Classifier`] learns classes from a few examples on top of the
//! embeddings. [`SequenceClassifier`] runs a fine-tuned sequence classification model. [`ocr::OcrEngine`] recognizes text
//! in images.

mod builtin;
mod embedder;
mod embedding;
mod error;
pub mod heads;
mod language;
#[cfg(target_arch = "x86_64")]
mod minilm;
mod model_dir;
pub mod ocr;
mod pooling;
mod rten_runtime;
mod sequence;
mod spelling;
mod tokenizer;

pub use builtin::{ModelCard, builtin_models, damaged_builtin_files};
pub use embedder::{Embedder, Purpose};
pub use embedding::{Embedding, ModelId};
pub use error::Error;
pub use language::Language;
pub use model_dir::ModelDirOptions;
pub use pooling::Pooling;
pub use sequence::SequenceClassifier;
pub use spelling::Spelling;
pub use tokenizer::{MAX_TEXT_BYTES, TokenizedText, Tokenizer};

#[cfg(all(test, target_os = "linux"))]
#[global_allocator]
static ALLOCATOR: corbie_test_support::guard_page::GuardPageAllocator =
    corbie_test_support::guard_page::GuardPageAllocator;

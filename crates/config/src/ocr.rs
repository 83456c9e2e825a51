//! `ocr`: OCR engine and image descriptions.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::duration::Timeout;
use super::program::Program;

/// OCR of scans, photographs, and images inside documents.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Ocr {
    /// OCR engine: `builtin`, `tesseract` (external program) or `off`.
    pub engine: Engine,
    /// Languages for Tesseract, such as `eng` or `deu+eng`. The built-in engine always recognizes all of its languages.
    #[schemars(regex(pattern = r"^[A-Za-z][A-Za-z0-9_/]*(\+[A-Za-z][A-Za-z0-9_/]*)*$"), length(max = 200))]
    pub language: String,
    /// Tesseract program: a name that is searched in `PATH`, or a path. A relative path is resolved against the folder
    /// of the configuration file, and the program runs in that folder.
    pub tesseract: Program,
    /// Additional time and processor time of a file for each page and image that is recognized.
    pub page_timeout: Timeout,
    /// Model that describes images without recognized text, such as `openai/gpt-5-mini`. The images are sent to its
    /// provider. If unset, images are processed on this machine only.
    #[schemars(length(min = 1, max = 200))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vision_model: Option<String>,
}

/// OCR engine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Engine {
    /// Built-in neural networks: Latin script and Chinese.
    #[default]
    Builtin,
    /// External program, with its installed languages.
    Tesseract,
    /// OCR disabled.
    Off,
}

impl Default for Ocr {
    fn default() -> Self {
        Self {
            engine: Engine::default(),
            language: "eng".into(),
            tesseract: "tesseract".into(),
            page_timeout: Timeout::seconds(30),
            vision_model: None,
        }
    }
}

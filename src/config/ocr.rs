//! `ocr`: how text in pictures is read.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::duration::Timeout;

/// How text in pictures is read: scans, photographs, and pictures inside documents.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Ocr {
    /// Who reads: `builtin`, the program `tesseract`, or nobody (`off`).
    pub engine: Engine,
    /// The languages Tesseract is told to expect, such as `eng` or `deu+eng`. What is built in reads all it knows.
    #[schemars(regex(pattern = r"^[A-Za-z][A-Za-z0-9_/]*(\+[A-Za-z][A-Za-z0-9_/]*)*$"), length(max = 200))]
    pub language: String,
    /// Where Tesseract is, if it is not where programs usually are.
    pub tesseract: PathBuf,
    /// How much longer a file may take, in time and of a processor, for each page and picture that is read.
    pub page_timeout: Timeout,
    /// The model of a provider that describes pictures in which no words are found, such as `openai/gpt-5-mini`. The
    /// pictures are sent to that provider. If left out, nothing leaves this machine.
    #[schemars(length(min = 1, max = 200))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vision_model: Option<String>,
}

/// Who reads text in pictures.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Engine {
    /// Networks inside this program: Latin letters and Chinese.
    #[default]
    Builtin,
    /// The program of that name, with the languages installed for it.
    Tesseract,
    /// Nobody.
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

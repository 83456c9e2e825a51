//! Checks OCR with a small test image.

use std::sync::Arc;

use corbie_extract::Format;

use super::{Check, Findings, SetupContext};
use crate::config::ocr::Engine;
use crate::workers::{InputFile, OcrMode, Tenant, WorkerPool};

/// The word `TEXT` drawn as strokes, so that no font is needed. Upside down it is a different text.
const DRAWING: &str = r##"<svg xmlns="http://www.w3.org/2000/svg" width="306" height="132"><rect width="306" height="132" fill="#fff"/><g fill="none" stroke="#000" stroke-width="9"><path d="M40 36h40M60 36v60"/><path d="M140 36h-38v60h38M102 65h32"/><path d="M162 36l40 60M202 36l-40 60"/><path d="M224 36h40M244 36v60"/></g></svg>"##;
const WORD: &str = "TEXT";

pub(super) async fn check(subject: Arc<SetupContext>) -> Option<Check> {
    let config = subject.config.as_ref()?;
    let mut findings = Findings::default();
    let (engine, advice) = match config.ocr.engine {
        Engine::Off => {
            findings.note(
                "OCR is disabled, so scans and images have no text",
                "set `ocr.engine` to `builtin` to enable it",
            );
            return findings.check("ocr");
        }
        Engine::Builtin => {
            ("built-in OCR", "raise `documents.memory` if it ran out of memory; otherwise reinstall corbie")
        }
        Engine::Tesseract => {
            ("Tesseract", "install Tesseract with the languages of `ocr.language`, or set `ocr.engine` to `builtin`")
        }
    };
    let pool = WorkerPool::new(config.documents.clone(), config.ocr.clone());
    let file = InputFile {
        bytes: DRAWING.as_bytes(),
        name: Some("word.svg"),
        format_hint: Some(Format::Svg),
        full_html: false,
        ocr: OcrMode::Force,
        tenant: &Tenant::local(),
    };
    match pool.extract(file, |_| {}).await {
        Ok(read) => match (read.document.text(), read.partial) {
            (text, None) if text.contains(WORD) => findings.ok(format!("{engine}: OK")),
            (_, Some(error)) => findings.problem(error.to_string(), advice),
            (_, None) => {
                findings.problem(format!("{engine} did not recognize the word `{WORD}` in a test image"), advice)
            }
        },
        Err(error) => findings.problem(error.to_string(), advice),
    }
    findings.check("ocr")
}

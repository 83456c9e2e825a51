//! Documents that were there before anything was broken, and that nobody changes: as many as a base in use has.

use std::fs;

use serde_json::Value;

use super::texts;
use crate::program::Program;

/// Whose words they have; no client has this number.
const NOBODY: usize = 900;
const CHUNKS_OF_A_DOCUMENT: usize = 50;

/// What stands on it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shelf {
    pub(crate) documents: usize,
    pub(crate) chunks: usize,
}

impl Shelf {
    /// Fills it while nobody else is there, with at least so many chunks.
    pub(crate) fn fill(program: &Program, chunks: usize) -> Result<Shelf, String> {
        let in_words = |error: std::io::Error| error.to_string();
        let folder = program.home.join("shelf");
        fs::create_dir_all(&folder).map_err(in_words)?;
        let documents = chunks.div_ceil(CHUNKS_OF_A_DOCUMENT);
        for document in 0..documents {
            let page = |number: usize| format!("{}\n\n", paragraph(document, number));
            let text: String = (0..CHUNKS_OF_A_DOCUMENT).map(page).collect();
            fs::write(folder.join(format!("shelf{document}.txt")), text).map_err(in_words)?;
        }
        let folder = folder.display().to_string();
        let (added, said) = program.run(&["add", &folder, "--json"]).map_err(in_words)?;
        let (_, status) = program.run(&["status", "--json"]).map_err(in_words)?;
        let status: Value = serde_json::from_str(&status).map_err(|error| format!("{error}: {status}"))?;
        let there = |key: &str| status["knowledge_base"][key].as_u64().unwrap_or_default() as usize;
        let shelf = Shelf { documents: there("document_count"), chunks: there("total_chunks") };
        match added && shelf.documents == documents && shelf.chunks >= chunks {
            true => Ok(shelf),
            false => Err(format!("the shelf is not filled: {shelf:?} {said}")),
        }
    }
}

/// A word that only one document on the shelf has.
pub(crate) fn word(document: usize) -> String {
    texts::word(NOBODY, document, 0)
}

/// As long as a chunk may be, so that each becomes one.
fn paragraph(document: usize, number: usize) -> String {
    let sentence = |step: usize| texts::SENTENCES[(document + number + step) % texts::SENTENCES.len()];
    format!("{} {number}: {} {} {}", word(document), sentence(0), sentence(1), sentence(2))
}

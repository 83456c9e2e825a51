//! Fixed corpus: documents added before the first fault and never changed, as many as in a base in use.

use std::fs;

use serde_json::Value;

use super::document_text;
use crate::program::ProgramConfig;

/// Client number of the corpus documents; no client has it.
const CORPUS_CLIENT: usize = 900;
const CHUNKS_PER_DOCUMENT: usize = 50;

/// Size of the corpus.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Corpus {
    pub(crate) documents: usize,
    pub(crate) chunks: usize,
}

impl Corpus {
    /// Adds at least this many chunks before any client runs.
    pub(crate) fn fill(program: &ProgramConfig, chunks: usize) -> Result<Corpus, String> {
        let in_words = |error: std::io::Error| error.to_string();
        let folder = program.home.join("shelf");
        fs::create_dir_all(&folder).map_err(in_words)?;
        let documents = chunks.div_ceil(CHUNKS_PER_DOCUMENT);
        for document in 0..documents {
            let page = |number: usize| format!("{}\n\n", paragraph(document, number));
            let text: String = (0..CHUNKS_PER_DOCUMENT).map(page).collect();
            fs::write(folder.join(format!("shelf{document}.txt")), text).map_err(in_words)?;
        }
        let folder = folder.display().to_string();
        let (added, said) = program.run(&["add", &folder, "--json"]).map_err(in_words)?;
        let (_, status) = program.run(&["status", "--json"]).map_err(in_words)?;
        let status: Value = serde_json::from_str(&status).map_err(|error| format!("{error}: {status}"))?;
        let there = |key: &str| status["knowledge_base"][key].as_u64().unwrap_or_default() as usize;
        let shelf = Corpus { documents: there("document_count"), chunks: there("total_chunks") };
        match added && shelf.documents == documents && shelf.chunks >= chunks {
            true => Ok(shelf),
            false => Err(format!("the shelf is not filled: {shelf:?} {said}")),
        }
    }
}

/// A word unique to one document of the corpus.
pub(crate) fn word(document: usize) -> String {
    document_text::unique_word(CORPUS_CLIENT, document, 0)
}

/// As long as a chunk may be, so that each paragraph becomes one chunk.
fn paragraph(document: usize, number: usize) -> String {
    let sentence = |step: usize| document_text::SENTENCES[(document + number + step) % document_text::SENTENCES.len()];
    format!("{} {number}: {} {} {}", word(document), sentence(0), sentence(1), sentence(2))
}

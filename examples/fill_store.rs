//! Fills a knowledge base with precomputed chunks and vectors: `fill_store STORAGE CHUNKS COUNT`.
//!
//! For benchmarks of large knowledge bases, which would take hours to embed. CHUNKS is a directory with `chunks.jsonl`,
//! one line `{"text", "tag"}` per chunk, and `vectors.f32`, the concatenated vectors.

use std::error::Error;
use std::fs::File;
use std::io::{BufRead, BufReader, Lines, Read};
use std::path::Path;

use corbie::knowledge::document::{
    BaseName, DocumentId, DocumentPage, NewChunk, NewDocument, Origin, PutOutcome, Status,
};
use corbie::knowledge::store::Options;
use corbie::knowledge::store::sqlite::Store;
use corbie::knowledge::task::TaskLink;
use serde_json::{Map, Value, json};

const CHUNKS_PER_DOCUMENT: usize = 10;

struct ChunkFiles {
    texts: Lines<BufReader<File>>,
    vectors: BufReader<File>,
    dimension: usize,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [storage, folder, count] = &words[..] else { return Err("use `fill_store STORAGE CHUNKS COUNT`".into()) };
    let (folder, count) = (Path::new(folder), count.parse::<usize>()?);
    let model = &corbie_infer::builtin_models()[0];
    let mut chunks = ChunkFiles {
        texts: BufReader::new(File::open(folder.join("chunks.jsonl"))?).lines(),
        vectors: BufReader::new(File::open(folder.join("vectors.f32"))?),
        dimension: model.dimension,
    };
    let store = Store::open(Path::new(storage), Options::default())?;
    for first in (0..count).step_by(CHUNKS_PER_DOCUMENT) {
        let number = first / CHUNKS_PER_DOCUMENT;
        let last = (first + CHUNKS_PER_DOCUMENT).min(count);
        let document = chunks.document(number, last - first, model.id.as_str())?;
        let put = store.put_document(document, TaskLink::Standalone).await?;
        if !matches!(put, PutOutcome::Written(_)) {
            return Err(format!("document {number} was not written; is {storage} an empty folder?").into());
        }
    }
    Ok(())
}

impl ChunkFiles {
    fn document(&mut self, number: usize, count: usize, model: &str) -> Result<NewDocument, Box<dyn Error>> {
        let (mut chunks, mut pages, mut tag) = (Vec::new(), Vec::new(), Value::Null);
        for place in 1..=u32::try_from(count)? {
            let line: Value = serde_json::from_str(&self.texts.next().ok_or("there are fewer chunks")??)?;
            let text = line["text"].as_str().ok_or("a chunk has no text")?.to_owned();
            tag = line["tag"].clone();
            pages.push(DocumentPage { number: place, label: None, text: text.clone() });
            let tokens = u32::try_from(text.split_whitespace().count())?;
            let vectors = vec![self.vector()?];
            chunks.push(NewChunk {
                text,
                pages: (place, place),
                spans: Vec::new(),
                headings: Vec::new(),
                tokens,
                vectors,
            });
        }
        // Distinct content for each document.
        let mut sha256 = [0; 32];
        sha256[..8].copy_from_slice(&(number as u64).to_le_bytes());
        Ok(NewDocument {
            replaces: None,
            id: DocumentId::random(),
            base: BaseName::default(),
            filename: format!("notes-{number}.pdf"),
            path: None,
            origin: Origin::Uploaded,
            title: None,
            format: "pdf".into(),
            size_bytes: chunks.iter().map(|chunk| chunk.text.len() as u64).sum(),
            sha256,
            status: Status::Completed,
            method: "text_extraction".into(),
            // A tenth of all documents has the first tag, a hundredth the second.
            metadata: Map::from_iter([("tags".to_owned(), json!([tag, format!("s{}", number % 100)]))]),
            model: model.to_owned(),
            warning: None,
            pages,
            chunks,
        })
    }

    fn vector(&mut self) -> Result<Vec<f32>, Box<dyn Error>> {
        let mut bytes = vec![0; self.dimension * 4];
        self.vectors.read_exact(&mut bytes)?;
        Ok(bytes.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())
    }
}

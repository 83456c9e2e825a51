//! Prepared document: extracted, chunked and embedded, not stored yet.

use corbie_extract::chunk::{self, Chunk, DocumentText};
use corbie_extract::{Document as Extracted, Format, Metadata};
use corbie_infer::Tokenizer;
use serde_json::{Map, Value};

use super::char_spans::{CharOffsets, split_by_page};
use super::{IngestRequest, IngestTarget};
use crate::Error;
use crate::document::{DocumentPage, NewChunk, NewDocument, Status};
use crate::path_policy::CheckedFile;

/// A document that is ready to be stored.
pub(super) struct PreparedDocument {
    pub(super) document: Extracted,
    pub(super) chunks: Vec<Chunk>,
    /// One vector per window, for each chunk.
    pub(super) vectors: Vec<Vec<Vec<f32>>>,
    /// Page of each window, for each chunk.
    pub(super) window_pages: Vec<Vec<u32>>,
    pub(super) model: String,
    /// Why extraction is incomplete.
    pub(super) partial: Option<String>,
}

impl PreparedDocument {
    pub(super) fn into_new_document(
        self,
        wish: &IngestRequest,
        source: &CheckedFile,
        sha256: [u8; 32],
        target: IngestTarget<'_>,
    ) -> NewDocument {
        let PreparedDocument { document, chunks, vectors, window_pages, model, partial } = self;
        let has_pages = has_pages(document.format);
        let pages: Vec<DocumentPage> = document
            .pages
            .iter()
            .map(|page| DocumentPage { number: page.number, label: page.name.clone(), text: page.text() })
            .collect();
        let counted = CharOffsets::of(&pages);
        let chunks = chunks.into_iter().zip(vectors).zip(&window_pages).map(|((chunk, vectors), pages)| NewChunk {
            spans: counted.spans(&chunk, pages),
            text: chunk.text,
            pages: if has_pages { chunk.pages } else { (0, 0) },
            headings: chunk.path,
            tokens: u32::try_from(chunk.tokens).unwrap_or(u32::MAX),
            vectors,
        });
        let chunks = chunks.collect();
        let mut warnings: Vec<String> = partial.iter().cloned().collect();
        warnings.extend(source.warning.iter().chain(&document.warnings).map(ToString::to_string));
        let mut metadata = metadata_members(&document.metadata);
        metadata.extend(wish.metadata.clone());
        NewDocument {
            replaces: None,
            id: target.id,
            base: target.base.clone(),
            filename: source.filename.clone(),
            path: wish.stored_path(source),
            origin: wish.origin,
            title: document.metadata.title.clone(),
            format: document.format.as_str().into(),
            size_bytes: source.bytes.len() as u64,
            sha256,
            status: if partial.is_some() { Status::Partial } else { Status::Completed },
            method: document.method.as_str().into(),
            metadata,
            model,
            warning: (!warnings.is_empty()).then(|| warnings.join("; ")),
            pages,
            chunks,
        }
    }
}

/// Pages, slides and sheets have numbers that users know. Other formats are treated as one page (K-34).
fn has_pages(format: Format) -> bool {
    matches!(format, Format::Pdf | Format::Pptx | Format::Xlsx)
}

/// Metadata embedded in the file. Values from the caller override it.
fn metadata_members(metadata: &Metadata) -> Map<String, Value> {
    let Metadata { title, author, subject, language, created, modified, .. } = metadata;
    let members = [
        ("title", title),
        ("author", author),
        ("subject", subject),
        ("language", language),
        ("created", created),
        ("modified", modified),
    ];
    members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value.clone()?.into()))).collect()
}

/// A part of a chunk that is embedded on its own.
pub(super) struct Window {
    /// Number of its chunk.
    pub(super) chunk: usize,
    pub(super) page: u32,
    pub(super) text: String,
}

/// Splits a document into chunks, and each chunk into the windows to embed. No window extends across two pages, so that
/// its vector also tells which page of a chunk is meant.
pub(super) fn split_into_chunks(
    document: Extracted,
    settings: chunk::Settings,
    tokenizer: &Tokenizer,
) -> Result<(Extracted, Vec<Chunk>, Vec<Window>), Error> {
    let failed = |error: corbie_infer::Error| Error::Model(error.to_string());
    let text = DocumentText::of_document(&document);
    let tokens = chunk::bound_tokens(text.as_str(), tokenizer.offsets(text.as_str()).map_err(failed)?);
    let mut chunks = chunk::pack(&text, &tokens, settings);
    chunks.retain(|chunk| !chunk.text.is_empty());
    let mut windows = Vec::new();
    for (number, chunk) in chunks.iter().enumerate() {
        for (page, text) in split_by_page(chunk) {
            let pieces = tokenizer.windows(text).map_err(failed)?.into_iter();
            windows.extend(pieces.map(|piece| Window { chunk: number, page, text: piece.to_owned() }));
        }
    }
    drop(text);
    Ok((document, chunks, windows))
}

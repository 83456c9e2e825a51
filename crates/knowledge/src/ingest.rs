//! Ingestion pipeline: extracts a file's text, splits it into chunks, embeds them and stores the document.
//!
//! All writes happen at the end in one transaction, so a document is stored completely or not at all. The future can be
//! dropped at any point without leaving partial data.

mod char_spans;
mod dedup;
mod prepared_document;
mod result;

use std::path::{Path, PathBuf};
use std::time::Instant;

use corbie_extract::{Format, chunk};
use corbie_infer::Purpose;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use prepared_document::{PreparedDocument, split_into_chunks};
pub use result::{IngestOutcome, IngestResult, document_of, documents_of};

use super::document::{BaseName, Claim, DocumentId, DocumentRecord, Origin, PutOutcome, Status};
use super::path_policy::{CheckedFile, PathPolicy};
use super::progress::{self, Progress};
use super::retriever::Retriever;
use super::retry::RetryPolicy;
use super::store::Store;
use super::task::{TaskEnd, TaskId, TaskLink};
use super::{Error, run_blocking};
use crate::image_description::ImageDescriber;
use crate::workers::{self, Extraction, OcrMode, Tenant, WorkerPool};
use corbie_classify::inference::Inference;

/// Dependencies and settings of the ingestion pipeline.
#[derive(Debug, Clone)]
pub struct Ingester {
    pub pool: WorkerPool,
    pub inference: Inference,
    pub describer: Option<ImageDescriber>,
    pub chunk_settings: chunk::Settings,
    /// Whether OCR runs on pages and images without text.
    pub ocr_enabled: bool,
    pub path_policy: PathPolicy,
    /// Rules for directory listing. They exclude the upload folder: an upload is accessible only by its full path.
    pub listing_policy: PathPolicy,
}

/// Request to add a file to a base. It is stored with its task so that the file can be read again after a restart.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IngestRequest {
    pub file_path: PathBuf,
    /// Canonical path of the folder in which the file was discovered, or of the file itself if it was named. The file must
    /// still be there when it is opened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<PathBuf>,
    #[serde(default)]
    pub metadata: Map<String, Value>,
    #[serde(default)]
    pub force_ocr: bool,
    pub origin: Origin,
}

/// Where the document is stored, and for which task.
#[derive(Debug, Clone, Copy)]
pub struct IngestTarget<'t> {
    pub store: &'t Store,
    pub retriever: &'t Retriever,
    pub base: &'t BaseName,
    /// The caller who requested it.
    pub caller: &'t str,
    /// ID of the document if it is new.
    pub id: DocumentId,
    pub task: TaskId,
    /// Whether the task completes with this document.
    pub ends_task: bool,
    /// Retry policy for writes while the store is busy or unavailable.
    pub retry_policy: RetryPolicy<'t>,
}

/// Number of windows embedded between two progress updates.
const EMBED_BATCH: usize = 16;
/// Maximum attempts to store a file that other requests change concurrently.
const MAX_WRITE_ATTEMPTS: usize = 4;

impl Ingester {
    /// Adds a file and reports progress to `tell`.
    pub async fn add(
        &self,
        wish: &IngestRequest,
        target: IngestTarget<'_>,
        tell: impl Fn(Progress) + Send + Sync,
    ) -> Result<IngestResult, Error> {
        let began = Instant::now();
        let (rules, path) = (self.path_policy.clone().within(wish.within.as_deref()), wish.file_path.clone());
        let (source, sha256) = run_blocking(move || {
            let source = rules.read(&path)?;
            let sha256: [u8; 32] = Sha256::digest(&source.bytes).into();
            Ok::<_, Error>((source, sha256))
        })
        .await??;
        let same = target.store.document_by_content(target.base, sha256).await?;
        let (model, _) = self.inference.id_and_dimension().await?;
        if let Some(same) = same.filter(|same| !wish.needs_reprocessing(same, model.as_str()))
            && let Some(added) = self.reuse_existing(&same, wish, &source, target, began).await?
        {
            return Ok(added);
        }
        let mut progress = progress::DocumentProgress::default();
        let made = self.prepare(wish, &source, target, &mut progress, &tell).await?;
        progress.mark_stored();
        tell(progress.progress());
        self.write(made, wish, &source, sha256, target, began).await
    }

    /// Extracts, chunks and embeds a file.
    async fn prepare(
        &self,
        wish: &IngestRequest,
        source: &CheckedFile,
        target: IngestTarget<'_>,
        progress: &mut progress::DocumentProgress,
        tell: &(impl Fn(Progress) + Send + Sync),
    ) -> Result<PreparedDocument, Error> {
        let ocr = match (wish.force_ocr, self.ocr_enabled) {
            (true, _) => OcrMode::Force,
            (false, true) => OcrMode::Auto,
            (false, false) => OcrMode::Off,
        };
        let tenant = Tenant { caller: target.caller.to_owned(), base: target.base.to_string() };
        let file = workers::InputFile {
            bytes: &source.bytes,
            name: Some(&source.filename),
            format_hint: Some(source.format),
            full_html: false,
            ocr,
            tenant: &tenant,
        };
        let heard = |told| {
            progress.on_worker_progress(told);
            tell(progress.progress());
        };
        let mut read = self.pool.extract(file, heard).await?;
        if let Some(describer) = &self.describer {
            describer.describe(&source.bytes, &mut read).await;
        }
        let Extraction { document, partial, .. } = read;
        let loaded = self.inference.load().await?;
        let (settings, tokenizer) = (self.chunk_settings, loaded.tokenizer);
        let (document, chunks, windows) =
            run_blocking(move || split_into_chunks(document, settings, &tokenizer)).await??;
        if chunks.is_empty() {
            // The cause of the incomplete extraction is more specific than `NoText`.
            return Err(partial.map_or_else(|| corbie_extract::Error::NoText.into(), Error::from));
        }
        progress.set_vector_count(windows.len());
        tell(progress.progress());
        let mut vectors: Vec<Vec<Vec<f32>>> = vec![Vec::new(); chunks.len()];
        let mut window_pages: Vec<Vec<u32>> = vec![Vec::new(); chunks.len()];
        let (mut done, mut model) = (0, loaded.id);
        for together in windows.chunks(EMBED_BATCH) {
            let texts = together.iter().map(|window| window.text.clone()).collect();
            let embedded = self.inference.embed(texts, Purpose::Passage).await?;
            for (window, embedding) in together.iter().zip(embedded) {
                if done == 0 {
                    model = embedding.model.clone();
                } else if model != embedding.model {
                    return Err(corbie_classify::inference::Error::ModelReplaced.into());
                }
                done += 1;
                vectors[window.chunk].push(embedding.vector);
                window_pages[window.chunk].push(window.page);
            }
            progress.set_embedded(done);
            tell(progress.progress());
        }
        Ok(PreparedDocument {
            document,
            chunks,
            vectors,
            window_pages,
            model: model.to_string(),
            partial: partial.map(|error| error.to_string()),
        })
    }

    /// Stores the prepared document. A concurrent call may have stored the same file in the meantime.
    async fn write(
        &self,
        made: PreparedDocument,
        wish: &IngestRequest,
        source: &CheckedFile,
        sha256: [u8; 32],
        target: IngestTarget<'_>,
        began: Instant,
    ) -> Result<IngestResult, Error> {
        let path = wish.stored_path(source);
        let mut new = made.into_new_document(wish, source, sha256, target);
        for _ in 0..MAX_WRITE_ATTEMPTS {
            let before = match new.replaces {
                Some(id) => target.store.document(target.base, id).await?,
                None => match &path {
                    Some(path) => self.document_to_replace(path, sha256, target).await?,
                    None => None,
                },
            };
            new.replaces = before.as_ref().map(|before| before.id);
            let mut metadata = before.map(|before| before.metadata).unwrap_or_default();
            metadata.extend(std::mem::take(&mut new.metadata));
            new.metadata = metadata;
            let added = IngestResult {
                document_id: new.replaces.unwrap_or(new.id),
                filename: new.filename.clone(),
                chunks: new.chunks.len() as u64,
                method: new.method.clone(),
                outcome: if new.replaces.is_some() { IngestOutcome::Updated } else { IngestOutcome::Added },
                warning: new.warning.clone(),
                seconds: progress::elapsed_seconds(began),
            };
            let put = || target.store.put_document(new.clone(), target.task_link(&added));
            match target.retry_policy.retry(put).await {
                Ok(PutOutcome::Written(_)) => {
                    target.update_index().await;
                    return Ok(added);
                }
                Ok(PutOutcome::DuplicateContent(id)) => {
                    match target.store.document_by_content(target.base, sha256).await? {
                        // This request extracts more than the stored document has, so it replaces that document.
                        Some(same) if wish.needs_reprocessing(&same, &new.model) => new.replaces = Some(id),
                        Some(same) => {
                            if let Some(added) = self.reuse_existing(&same, wish, source, target, began).await? {
                                return Ok(added);
                            }
                        }
                        None => {}
                    }
                }
                // A concurrent request added the file. The next attempt finds its document.
                Ok(PutOutcome::PathTaken(_)) => new.replaces = None,
                // The document to be replaced was removed in the meantime.
                Err(super::store::Error::DocumentNotFound) => new.replaces = None,
                Err(error) => return Err(error.into()),
            }
        }
        Err(Error::Internal("too many concurrent changes of a document".into()))
    }

    /// Updates path and metadata of a document with identical content. Returns `None` if the document was removed in
    /// the meantime.
    async fn reuse_existing(
        &self,
        same: &DocumentRecord,
        wish: &IngestRequest,
        source: &CheckedFile,
        target: IngestTarget<'_>,
        began: Instant,
    ) -> Result<Option<IngestResult>, Error> {
        let path = wish.stored_path(source);
        if let Some(path) = &path
            && let Some(before) = target.store.document_by_path(target.base, path).await?
            && before.id != same.id
        {
            if wish.origin == Origin::Watched && before.origin != Origin::Watched {
                // Metadata that a user set for the file has precedence. Both documents now have the same content.
                return Ok(None);
            }
            if !self.reassign(&before, path, target).await? {
                // No other file has the previous content (K-43).
                target.retry_policy.retry(|| target.store.remove_document(target.base, before.id)).await?;
            }
        }
        let claims = wish.claims_watched(same);
        // A moved file keeps its document. An upload has no path, so a watched file does not become its next version.
        let moves = match same.path.clone() {
            Some(path) => run_blocking(move || !Path::new(&path).exists()).await?,
            None => wish.origin != Origin::Watched,
        };
        let copy = match (claims, moves) {
            (true, _) => same.path.clone().map(Some),
            (false, false) => Some(path.clone()),
            (false, true) => None,
        };
        if let Some(copy) = copy.filter(|copy| claims || *copy != same.path) {
            target.retry_policy.retry(|| target.store.record_duplicate(same.id, copy.clone())).await?;
        }
        let path = path.filter(|_| claims || moves);
        let named = path.as_deref().and_then(|path| Path::new(path).file_name());
        let filename = match named {
            _ if claims => source.filename.clone(),
            Some(name) => name.to_string_lossy().into_owned(),
            None => same.filename.clone(),
        };
        let mut metadata = same.metadata.clone();
        metadata.extend(wish.metadata.clone());
        let added = IngestResult {
            document_id: same.id,
            filename,
            chunks: u64::from(same.chunk_count),
            method: same.method.clone(),
            outcome: IngestOutcome::Unchanged,
            warning: None,
            seconds: progress::elapsed_seconds(began),
        };
        let described = if claims {
            let claim = || {
                let (metadata, path, filename) = (metadata.clone(), path.clone(), source.filename.clone());
                let claim = Claim { origin: wish.origin, filename, path, metadata };
                target.store.claim_document(target.base, same.id, claim, target.task_link(&added))
            };
            target.retry_policy.retry(claim).await?
        } else {
            let describe = || {
                let (metadata, path) = (metadata.clone(), path.clone());
                target.store.update_metadata(target.base, same.id, metadata, path, target.task_link(&added))
            };
            target.retry_policy.retry(describe).await?
        };
        target.update_index().await;
        Ok(described.map(|document| IngestResult { filename: document.filename, ..added }))
    }
}

impl IngestRequest {
    /// Whether this request extracts more than the stored document has.
    fn needs_reprocessing(&self, there: &DocumentRecord, model: &str) -> bool {
        // The watcher does not replace documents that a user added.
        if self.origin == Origin::Watched && there.origin != Origin::Watched {
            return false;
        }
        let is_looked_at = self.force_ocr && !is_plain_text(&there.format) && there.method == "text_extraction";
        there.model != model || is_looked_at || there.status == Status::Partial
    }

    /// Whether a user adds a file that so far only the watcher has added.
    fn claims_watched(&self, there: &DocumentRecord) -> bool {
        self.origin != Origin::Watched && there.origin == Origin::Watched
    }

    /// Uploads are temporary files, so their path is not stored.
    fn stored_path(&self, source: &CheckedFile) -> Option<String> {
        (self.origin != Origin::Uploaded).then(|| source.path.to_string_lossy().into_owned())
    }
}

/// Whether a format is plain text, which has no images for OCR.
fn is_plain_text(format: &str) -> bool {
    matches!(Format::from_extension(format), Some(Format::Text | Format::Markdown | Format::Csv))
}

impl IngestTarget<'_> {
    /// Makes the stored document searchable. On failure the document stays stored, and every search tries to catch up
    /// again.
    async fn update_index(&self) {
        if let Err(error) = self.retriever.catch_up().await {
            tracing::warn!(%error, "cannot update the index from the store; retrying at the next search");
        }
    }

    fn task_link(&self, added: &IngestResult) -> TaskLink {
        match self.ends_task {
            true => TaskLink::Ends(TaskEnd::completed(self.task, added.to_json())),
            false => TaskLink::PartOf(self.task),
        }
    }
}

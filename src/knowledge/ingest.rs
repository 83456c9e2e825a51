//! Ingestion pipeline: extracts a file's text, splits it into chunks, embeds them and stores the document.
//!
//! All writes happen at the end in one transaction, so a document is stored completely or not at all. The future can be
//! dropped at any point without leaving partial data.

mod added;
mod copies;
mod made;
mod stretches;

use std::path::{Path, PathBuf};
use std::time::Instant;

use corbie_extract::{Format, chunk};
use corbie_infer::Purpose;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

pub use added::{Added, Became};
use made::{Made, cut};

use super::document::{BaseName, Claim, Document, DocumentId, Origin, Put, Status};
use super::far::{self, Far};
use super::finder::Finder;
use super::patience::Patience;
use super::source::{Rules, Source};
use super::store::Store;
use super::task::{TaskEnd, TaskId, Work};
use super::{Error, blocking};
use crate::describe::Describer;
use crate::inference::Inference;
use crate::workers::{self, Ocr, Pool, Read, Tenant};

/// Dependencies and settings of the ingestion pipeline.
#[derive(Debug, Clone)]
pub struct Reader {
    pub pool: Pool,
    pub inference: Inference,
    pub describer: Option<Describer>,
    pub chunks: chunk::Settings,
    /// Whether OCR runs on pages and images without text.
    pub looks: bool,
    pub rules: Rules,
    /// Rules for directory listing. They exclude the upload folder: an upload is accessible only by its full path.
    pub folders: Rules,
}

/// Request to add a file to a base. It is stored with its task so that the file can be read again after a restart.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Wish {
    pub file_path: PathBuf,
    /// Canonical path of the folder in which the file was discovered. The file must still be inside it when it is
    /// opened.
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
pub struct Target<'t> {
    pub store: &'t Store,
    pub finder: &'t Finder,
    pub base: &'t BaseName,
    /// The caller who requested it.
    pub caller: &'t str,
    /// ID of the document if it is new.
    pub id: DocumentId,
    pub task: TaskId,
    /// Whether the task completes with this document.
    pub ends: bool,
    /// Retry policy for writes while the store is busy or unavailable.
    pub patience: Patience<'t>,
}

/// Number of windows embedded between two progress updates.
const TOGETHER: usize = 16;
/// Maximum attempts to store a file that other requests change concurrently.
const TRIES: usize = 4;

impl Reader {
    /// Adds a file and reports progress to `tell`.
    pub async fn add(&self, wish: &Wish, target: Target<'_>, tell: impl Fn(Far) + Send + Sync) -> Result<Added, Error> {
        let began = Instant::now();
        let (rules, path) = (self.rules.clone().within(wish.within.as_deref()), wish.file_path.clone());
        let (source, sha256) = blocking(move || {
            let source = rules.read(&path)?;
            let sha256: [u8; 32] = Sha256::digest(&source.bytes).into();
            Ok::<_, Error>((source, sha256))
        })
        .await??;
        let same = target.store.document_by_content(target.base, sha256).await?;
        let (model, _) = self.inference.shape().await?;
        if let Some(same) = same.filter(|same| !wish.wants_more(same, model.as_str()))
            && let Some(added) = self.describe(&same, wish, &source, target, began).await?
        {
            return Ok(added);
        }
        let mut progress = far::Document::default();
        let made = self.make(wish, &source, target, &mut progress, &tell).await?;
        progress.stored();
        tell(progress.far());
        self.store(made, wish, &source, sha256, target, began).await
    }

    /// Extracts, chunks and embeds a file.
    async fn make(
        &self,
        wish: &Wish,
        source: &Source,
        target: Target<'_>,
        progress: &mut far::Document,
        tell: &(impl Fn(Far) + Send + Sync),
    ) -> Result<Made, Error> {
        let ocr = match (wish.force_ocr, self.looks) {
            (true, _) => Ocr::Force,
            (false, true) => Ocr::Auto,
            (false, false) => Ocr::Off,
        };
        let tenant = Tenant { caller: target.caller.to_owned(), base: target.base.to_string() };
        let file = workers::File {
            bytes: &source.bytes,
            name: Some(&source.filename),
            named: Some(source.format),
            full: false,
            ocr,
            tenant: &tenant,
        };
        let heard = |told| {
            progress.told(told);
            tell(progress.far());
        };
        let mut read = self.pool.read(file, heard).await?;
        if let Some(describer) = &self.describer {
            describer.describe(&source.bytes, &mut read).await;
        }
        let Read { document, partial, .. } = read;
        let loaded = self.inference.load().await?;
        let (settings, tokenizer) = (self.chunks, loaded.tokenizer);
        let (document, chunks, windows) = blocking(move || cut(document, settings, &tokenizer)).await??;
        if chunks.is_empty() {
            // The cause of the incomplete extraction is more specific than `NoText`.
            return Err(partial.map_or_else(|| corbie_extract::Error::NoText.into(), Error::from));
        }
        progress.cut(windows.len());
        tell(progress.far());
        let mut vectors: Vec<Vec<Vec<f32>>> = vec![Vec::new(); chunks.len()];
        let (mut done, mut model) = (0, loaded.id);
        for together in windows.chunks(TOGETHER) {
            let texts = together.iter().map(|(_, text)| text.clone()).collect();
            let embedded = self.inference.embed(texts, Purpose::Passage).await?;
            for ((chunk, _), embedding) in together.iter().zip(embedded) {
                if done == 0 {
                    model = embedding.model.clone();
                } else if model != embedding.model {
                    return Err(crate::inference::Error::Replaced.into());
                }
                done += 1;
                vectors[*chunk].push(embedding.vector);
            }
            progress.embedded(done);
            tell(progress.far());
        }
        Ok(Made {
            document,
            chunks,
            vectors,
            model: model.to_string(),
            partial: partial.map(|error| error.to_string()),
        })
    }

    /// Stores the prepared document. A concurrent call may have stored the same file in the meantime.
    async fn store(
        &self,
        made: Made,
        wish: &Wish,
        source: &Source,
        sha256: [u8; 32],
        target: Target<'_>,
        began: Instant,
    ) -> Result<Added, Error> {
        let path = wish.kept_path(source);
        let mut new = made.into_new(wish, source, sha256, target);
        for _ in 0..TRIES {
            let before = match new.replaces {
                Some(id) => target.store.document(target.base, id).await?,
                None => match &path {
                    Some(path) => self.giving_way(path, sha256, target).await?,
                    None => None,
                },
            };
            new.replaces = before.as_ref().map(|before| before.id);
            let mut metadata = before.map(|before| before.metadata).unwrap_or_default();
            metadata.extend(std::mem::take(&mut new.metadata));
            new.metadata = metadata;
            let added = Added {
                document_id: new.replaces.unwrap_or(new.id),
                filename: new.filename.clone(),
                chunks: new.chunks.len() as u64,
                method: new.method.clone(),
                became: if new.replaces.is_some() { Became::Updated } else { Became::Added },
                warning: new.warning.clone(),
                seconds: far::seconds(began),
            };
            let put = || target.store.put_document(new.clone(), target.work(&added));
            match target.patience.persistently(put).await {
                Ok(Put::Written(_)) => {
                    target.show().await;
                    return Ok(added);
                }
                Ok(Put::Same(id)) => match target.store.document_by_content(target.base, sha256).await? {
                    // This request extracts more than the stored document has, so it replaces that document.
                    Some(same) if wish.wants_more(&same, &new.model) => new.replaces = Some(id),
                    Some(same) => {
                        if let Some(added) = self.describe(&same, wish, source, target, began).await? {
                            return Ok(added);
                        }
                    }
                    None => {}
                },
                // A concurrent request added the file. The next attempt finds its document.
                Ok(Put::PathTaken(_)) => new.replaces = None,
                // The document to be replaced was removed in the meantime.
                Err(super::store::Error::DocumentGone) => new.replaces = None,
                Err(error) => return Err(error.into()),
            }
        }
        Err(Error::Internal("a document was changed by others again and again".into()))
    }

    /// Updates path and metadata of a document with identical content. Returns `None` if the document was removed in
    /// the meantime.
    async fn describe(
        &self,
        same: &Document,
        wish: &Wish,
        source: &Source,
        target: Target<'_>,
        began: Instant,
    ) -> Result<Option<Added>, Error> {
        let path = wish.kept_path(source);
        if let Some(path) = &path
            && let Some(before) = target.store.document_by_path(target.base, path).await?
            && before.id != same.id
        {
            if wish.origin == Origin::Watched && before.origin != Origin::Watched {
                // Metadata that a user set for the file has precedence. Both documents now have the same content.
                return Ok(None);
            }
            if !self.hand_on(&before, path, target).await? {
                // No other file has the previous content (K-43).
                target.patience.persistently(|| target.store.remove_document(target.base, before.id)).await?;
            }
        }
        let claims = wish.claims(same);
        // A moved file keeps its document. An upload has no path, so a watched file does not become its next version.
        let moves = match same.path.clone() {
            Some(path) => blocking(move || !Path::new(&path).exists()).await?,
            None => wish.origin != Origin::Watched,
        };
        let copy = match (claims, moves) {
            (true, _) => same.path.clone().map(Some),
            (false, false) => Some(path.clone()),
            (false, true) => None,
        };
        if let Some(copy) = copy.filter(|copy| claims || *copy != same.path) {
            target.patience.persistently(|| target.store.note_copy(same.id, copy.clone())).await?;
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
        let added = Added {
            document_id: same.id,
            filename,
            chunks: u64::from(same.chunk_count),
            method: same.method.clone(),
            became: Became::Unchanged,
            warning: None,
            seconds: far::seconds(began),
        };
        let described = if claims {
            let claim = || {
                let (metadata, path, filename) = (metadata.clone(), path.clone(), source.filename.clone());
                let claim = Claim { origin: wish.origin, filename, path, metadata };
                target.store.claim_document(target.base, same.id, claim, target.work(&added))
            };
            target.patience.persistently(claim).await?
        } else {
            let describe = || {
                let (metadata, path) = (metadata.clone(), path.clone());
                target.store.describe_document(target.base, same.id, metadata, path, target.work(&added))
            };
            target.patience.persistently(describe).await?
        };
        target.show().await;
        Ok(described.map(|document| Added { filename: document.filename, ..added }))
    }
}

impl Wish {
    /// Whether this request extracts more than the stored document has.
    fn wants_more(&self, there: &Document, model: &str) -> bool {
        // The watcher does not replace documents that a user added.
        if self.origin == Origin::Watched && there.origin != Origin::Watched {
            return false;
        }
        let is_looked_at = self.force_ocr && !is_plain(&there.format) && there.method == "text_extraction";
        there.model != model || is_looked_at || there.status == Status::Partial
    }

    /// Whether a user adds a file that so far only the watcher has added.
    fn claims(&self, there: &Document) -> bool {
        self.origin != Origin::Watched && there.origin == Origin::Watched
    }

    /// Uploads are temporary files, so their path is not stored.
    fn kept_path(&self, source: &Source) -> Option<String> {
        (self.origin != Origin::Uploaded).then(|| source.path.to_string_lossy().into_owned())
    }
}

/// Whether a format is plain text, which has no images for OCR.
fn is_plain(format: &str) -> bool {
    matches!(Format::of_extension(format), Some(Format::Text | Format::Markdown | Format::Csv))
}

impl Target<'_> {
    /// Makes the stored document searchable. On failure the document stays stored, and every search tries to catch up
    /// again.
    async fn show(&self) {
        if let Err(error) = self.finder.catch_up().await {
            tracing::warn!(%error, "the index could not follow the store; the next search tries again");
        }
    }

    fn work(&self, added: &Added) -> Work {
        match self.ends {
            true => Work::Ends(TaskEnd::completed(self.task, added.result())),
            false => Work::PartOf(self.task),
        }
    }
}

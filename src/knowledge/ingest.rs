//! From a file to a document that can be found: read, cut, embed, store.
//!
//! Nothing is written before the end, and then everything in one transaction, so a document is whole or not there.
//! Dropping the future at any moment leaves nothing behind.

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

/// What it takes to read documents.
#[derive(Debug, Clone)]
pub struct Reader {
    pub pool: Pool,
    pub inference: Inference,
    pub describer: Option<Describer>,
    pub chunks: chunk::Settings,
    /// Whether pictures are looked at where there is no text.
    pub looks: bool,
    pub rules: Rules,
    /// What may be listed: uploads are for those who know where theirs is.
    pub folders: Rules,
}

/// A file that somebody wants to have in a base. It is kept with its task, so that it can be read again after a restart.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Wish {
    pub file_path: PathBuf,
    /// The folder it was found in, links followed: it must still be in it when it is opened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<PathBuf>,
    #[serde(default)]
    pub metadata: Map<String, Value>,
    #[serde(default)]
    pub force_ocr: bool,
    pub origin: Origin,
}

/// Where a document goes.
#[derive(Debug, Clone, Copy)]
pub struct Target<'t> {
    pub store: &'t Store,
    pub finder: &'t Finder,
    pub base: &'t BaseName,
    /// Who wants it there.
    pub caller: &'t str,
    /// The id it gets if it is new.
    pub id: DocumentId,
    pub task: TaskId,
    /// Whether the task is done with it.
    pub ends: bool,
    /// Writes wait for a store that others keep busy.
    pub patience: Patience<'t>,
}

/// How many windows are embedded before the next progress is told.
const TOGETHER: usize = 16;
/// A file may be changed by others while it is added; after so many tries we give up.
const TRIES: usize = 4;

impl Reader {
    /// Adds a file. `tell` hears how far it is.
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

    /// Reads, cuts and embeds a file.
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
            // Why nothing was read is the better reason.
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

    /// Writes what was made. Another call may have written the same file meanwhile.
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
                    // Looked at more closely than the one that is there, which it replaces.
                    Some(same) if wish.wants_more(&same, &new.model) => new.replaces = Some(id),
                    Some(same) => {
                        if let Some(added) = self.describe(&same, wish, source, target, began).await? {
                            return Ok(added);
                        }
                    }
                    None => {}
                },
                // Somebody else has added the file meanwhile, which the next look finds.
                Ok(Put::PathTaken(_)) => new.replaces = None,
                // What it was to replace is gone.
                Err(super::store::Error::DocumentGone) => new.replaces = None,
                Err(error) => return Err(error.into()),
            }
        }
        Err(Error::Internal("a document was changed by others again and again".into()))
    }

    /// The content is there already: only what is said about it changes. None if it is gone by then.
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
                // What a user said of the file stays: his document says the same as another from now on.
                return Ok(None);
            }
            if !self.hand_on(&before, path, target).await? {
                // What the file said before is said nowhere any more (K-43).
                target.patience.persistently(|| target.store.remove_document(target.base, before.id)).await?;
            }
        }
        let claims = wish.claims(same);
        // A file that was moved takes its document along. An upload stands nowhere, and is nobody's next version.
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
    /// Whether what is there was read with less care than is wanted now.
    fn wants_more(&self, there: &Document, model: &str) -> bool {
        // A watched folder takes nothing from a user.
        if self.origin == Origin::Watched && there.origin != Origin::Watched {
            return false;
        }
        let is_looked_at = self.force_ocr && !is_plain(&there.format) && there.method == "text_extraction";
        there.model != model || is_looked_at || there.status == Status::Partial
    }

    /// Whether a user wants what only a watched folder has brought so far.
    fn claims(&self, there: &Document) -> bool {
        self.origin != Origin::Watched && there.origin == Origin::Watched
    }

    /// Uploads are temporary, so their place means nothing.
    fn kept_path(&self, source: &Source) -> Option<String> {
        (self.origin != Origin::Uploaded).then(|| source.path.to_string_lossy().into_owned())
    }
}

/// Whether files of a format are nothing but text, in which there is nothing to look at.
fn is_plain(format: &str) -> bool {
    matches!(Format::of_extension(format), Some(Format::Text | Format::Markdown | Format::Csv))
}

impl Target<'_> {
    /// Lets what was stored be found. If that fails it is stored all the same, and every search tries again.
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

//! Deduplication: files with identical content share one document. When one of them changes, the document passes to
//! another file with that content.

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::{Reader, Target};
use crate::knowledge::document::{Claim, Document, Origin};
use crate::knowledge::task::Work;
use crate::knowledge::{Error, blocking};

impl Reader {
    /// The document that a file's new content replaces. `None` if another file keeps that document.
    pub(super) async fn giving_way(
        &self,
        path: &str,
        sha256: [u8; 32],
        target: Target<'_>,
    ) -> Result<Option<Document>, Error> {
        let Some(before) = target.store.document_by_path(target.base, path).await? else { return Ok(None) };
        let handed_on = before.sha256 != sha256 && self.hand_on(&before, path, target).await?;
        Ok((!handed_on).then_some(before))
    }

    /// Reassigns a document to another file with the same content, or makes it an upload if the content was also
    /// uploaded: each of these additions was acknowledged. Returns whether such a file exists.
    pub(super) async fn hand_on(&self, before: &Document, path: &str, target: Target<'_>) -> Result<bool, Error> {
        let copies = target.store.copies(before.id).await?;
        for copy in copies.into_iter().filter(|copy| copy.as_deref() != Some(path)) {
            if let Some(copy) = &copy
                && !self.says(copy, before.sha256).await?
            {
                continue;
            }
            let named = copy.as_deref().and_then(|copy| Path::new(copy).file_name());
            let filename = named.map_or_else(|| before.filename.clone(), |name| name.to_string_lossy().into_owned());
            let origin = if copy.is_some() { before.origin } else { Origin::Uploaded };
            let claim = || {
                let (filename, path, metadata) = (filename.clone(), copy.clone(), before.metadata.clone());
                let claim = Claim { origin, filename, path, metadata };
                target.store.claim_document(target.base, before.id, claim, Work::PartOf(target.task))
            };
            return Ok(target.patience.persistently(claim).await?.is_some());
        }
        Ok(false)
    }

    /// Whether a file has exactly this content. False for an unreadable file.
    async fn says(&self, path: &str, sha256: [u8; 32]) -> Result<bool, Error> {
        let (rules, path) = (self.rules.clone(), PathBuf::from(path));
        blocking(move || {
            let digest = rules.read(&path).map(|source| <[u8; 32]>::from(Sha256::digest(&source.bytes)));
            digest.is_ok_and(|digest| digest == sha256)
        })
        .await
    }
}

//! Deduplication: files with identical content share one document. When one of them changes, the document passes to
//! another file with that content.

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::{IngestTarget, Ingester};
use crate::document::{Claim, DocumentRecord, Origin};
use crate::task::TaskLink;
use crate::{Error, run_blocking};

impl Ingester {
    /// The document that a file's new content replaces. `None` if another file keeps that document.
    pub(super) async fn document_to_replace(
        &self,
        path: &str,
        sha256: [u8; 32],
        target: IngestTarget<'_>,
    ) -> Result<Option<DocumentRecord>, Error> {
        let Some(before) = target.store.document_by_path(target.base, path).await? else { return Ok(None) };
        let handed_on = before.sha256 != sha256 && self.reassign(&before, path, target).await?;
        Ok((!handed_on).then_some(before))
    }

    /// Reassigns a document to another file with the same content, or makes it an upload if the content was also
    /// uploaded: each of these additions was acknowledged. Returns whether such a file exists.
    pub(super) async fn reassign(
        &self,
        before: &DocumentRecord,
        path: &str,
        target: IngestTarget<'_>,
    ) -> Result<bool, Error> {
        let copies = target.store.duplicates(before.id).await?;
        for copy in copies.into_iter().filter(|copy| copy.as_deref() != Some(path)) {
            if let Some(copy) = &copy
                && !self.has_content(copy, before.sha256).await?
            {
                continue;
            }
            let named = copy.as_deref().and_then(|copy| Path::new(copy).file_name());
            let filename = named.map_or_else(|| before.filename.clone(), |name| name.to_string_lossy().into_owned());
            let origin = if copy.is_some() { before.origin } else { Origin::Uploaded };
            let claim = || {
                let (filename, path, metadata) = (filename.clone(), copy.clone(), before.metadata.clone());
                let claim = Claim { origin, filename, path, metadata };
                target.store.claim_document(target.base, before.id, claim, TaskLink::PartOf(target.task))
            };
            return Ok(target.retry_policy.retry(claim).await?.is_some());
        }
        Ok(false)
    }

    /// Whether a file has exactly this content. False for an unreadable file.
    async fn has_content(&self, path: &str, sha256: [u8; 32]) -> Result<bool, Error> {
        let (rules, path) = (self.path_policy.clone(), PathBuf::from(path));
        run_blocking(move || {
            let digest = rules.read(&path).map(|source| <[u8; 32]>::from(Sha256::digest(&source.bytes)));
            digest.is_ok_and(|digest| digest == sha256)
        })
        .await
    }
}

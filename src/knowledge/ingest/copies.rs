//! Files that say the same have one document. When one of them says something else, the others keep it.

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::{Reader, Target};
use crate::knowledge::document::{Claim, Document, Origin};
use crate::knowledge::task::Work;
use crate::knowledge::{Error, blocking};

impl Reader {
    /// The document of a file, which is to give way to what the file says now.
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

    /// Hands a document on to another file that still says the same, or to nobody where it was uploaded too: all of them
    /// were acknowledged. Whether there is such a one.
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

    /// Whether a file says this, byte for byte. One that cannot be read says nothing.
    async fn says(&self, path: &str, sha256: [u8; 32]) -> Result<bool, Error> {
        let (rules, path) = (self.rules.clone(), PathBuf::from(path));
        blocking(move || {
            let digest = rules.read(&path).map(|source| <[u8; 32]>::from(Sha256::digest(&source.bytes)));
            digest.is_ok_and(|digest| digest == sha256)
        })
        .await
    }
}

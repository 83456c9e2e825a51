//! Edit lock of the taxonomy: a change is either published to all instances or not made.

use futures_util::future::BoxFuture;

use super::local_copy::SharedFileKind;
use super::sync::{LocalEdits, SyncContext, SyncError, SyncOutcome};
use super::sync_state::SyncLock;
use super::{FileSync, acquire_lock};
use crate::classify::{EditLockError, TaxonomyEditLock, TaxonomyPublisher};
use crate::knowledge::store::postgres::FileVersion;

/// While this is held, the local copy equals the shared version (unless that is invalid), and no other local process
/// changes it.
#[derive(Debug)]
struct EditLock {
    context: SyncContext,
    /// The newest shared version.
    newest: Option<FileVersion>,
    /// The version published through this lock.
    published: Option<FileVersion>,
    _held: SyncLock,
}

impl TaxonomyPublisher for FileSync {
    fn lock(&self) -> BoxFuture<'_, Result<Box<dyn TaxonomyEditLock>, EditLockError>> {
        Box::pin(async { Ok(Box::new(self.lock_taxonomy().await?) as Box<dyn TaxonomyEditLock>) })
    }
}

impl FileSync {
    async fn lock_taxonomy(&self) -> Result<EditLock, EditLockError> {
        let shared = &*self.0;
        let copy = shared.copies.iter().find(|copy| copy.kind == SharedFileKind::Taxonomy);
        let copy = copy.ok_or_else(|| EditLockError::Unwritable("this file is not configured".to_owned()))?;
        let Some(store) = shared.knowledge.shared_store() else {
            return Err(EditLockError::Unavailable(match shared.knowledge.open_error() {
                Some(error) => error.to_string(),
                None => "the database is not open yet; try again in a few seconds".to_owned(),
            }));
        };
        let held = acquire_lock(&shared.state).await.map_err(EditLockError::Unavailable)?;
        let exchange = SyncContext { files: store.synced_files(), state: shared.state.clone(), copy: copy.clone() };
        // The version that the local copy was compared with, not a newer one: the editor is based on that version.
        let newest = match exchange.run(LocalEdits::Publish).await {
            Ok(exchanged) if exchanged.outcome == SyncOutcome::Deferred => {
                return Err(EditLockError::Unavailable(
                    "too many concurrent changes; try again in a few seconds".to_owned(),
                ));
            }
            Ok(exchanged) => exchanged.newest,
            // A new text can correct it.
            Err(SyncError::Invalid { newest, .. }) => newest,
            Err(trouble @ SyncError::Unwritable(_)) => return Err(EditLockError::Unwritable(trouble.to_string())),
            Err(trouble) => return Err(EditLockError::Unavailable(trouble.to_string())),
        };
        Ok(EditLock { context: exchange, newest, published: None, _held: held })
    }
}

impl TaxonomyEditLock for EditLock {
    fn publish<'a>(&'a mut self, text: &'a str) -> BoxFuture<'a, Result<Option<Vec<String>>, String>> {
        Box::pin(async move {
            let sent = self.context.push(self.newest.as_ref(), None, text.to_owned()).await;
            self.published = sent.map_err(|error| error.to_string())?;
            Ok(self.published.as_ref().map(|version| version.places.clone()))
        })
    }

    fn finish(self: Box<Self>) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            let Some(version) = &self.published else { return };
            // If this fails, the next sync detects it.
            if let Err(error) = self.context.record_agreement(version).await {
                tracing::debug!(%error, "cannot record the published version as the local one");
            }
        })
    }
}

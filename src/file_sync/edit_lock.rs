//! Edit lock of a shared file: a change is either published to all instances or not made.

use super::local_copy::SharedFileKind;
use super::sync::{LocalEdits, SyncContext, SyncError, SyncOutcome};
use super::sync_state::SyncLock;
use super::{FileSync, acquire_lock};
use crate::knowledge::store::postgres::FileVersion;

/// While this is held, the local copy equals the shared version (unless that is invalid), and no other local process
/// changes it.
#[derive(Debug)]
pub struct EditLock {
    context: SyncContext,
    /// The newest shared version.
    newest: Option<FileVersion>,
    _held: SyncLock,
}

/// Why the lock was not acquired.
#[derive(Debug, thiserror::Error)]
pub enum EditLockError {
    /// Usually the database is unavailable.
    #[error("{0}")]
    Unavailable(String),
    #[error("{0}")]
    Unwritable(String),
}

impl FileSync {
    /// Acquires the edit lock and syncs the local copy.
    pub async fn lock_for_edit(&self, kind: SharedFileKind) -> Result<EditLock, EditLockError> {
        let shared = &*self.0;
        let copy = shared.copies.iter().find(|copy| copy.kind == kind);
        let copy = copy.ok_or_else(|| EditLockError::Unwritable("the settings name no such file".to_owned()))?;
        let Some(store) = shared.knowledge.shared_store() else {
            return Err(EditLockError::Unavailable(match shared.knowledge.open_error() {
                Some(error) => error.to_string(),
                None => "the database is not open yet; try again in a moment".to_owned(),
            }));
        };
        let held = acquire_lock(&shared.state).await.map_err(EditLockError::Unavailable)?;
        let exchange = SyncContext { files: store.synced_files(), state: shared.state.clone(), copy: copy.clone() };
        // The version that the local copy was compared with, not a newer one: the editor is based on that version.
        let newest = match exchange.run(LocalEdits::Publish).await {
            Ok(exchanged) if exchanged.outcome == SyncOutcome::Deferred => {
                return Err(EditLockError::Unavailable(
                    "others change it all the time; try again in a moment".to_owned(),
                ));
            }
            Ok(exchanged) => exchanged.newest,
            // A new text can correct it.
            Err(SyncError::Invalid { newest, .. }) => newest,
            Err(trouble @ SyncError::Unwritable(_)) => return Err(EditLockError::Unwritable(trouble.to_string())),
            Err(trouble) => return Err(EditLockError::Unavailable(trouble.to_string())),
        };
        Ok(EditLock { context: exchange, newest, _held: held })
    }
}

impl EditLock {
    /// Publishes a text to all instances. Returns `None` if another instance published first. On an error the outcome
    /// is in doubt.
    pub async fn publish(&self, text: &str) -> Result<Option<FileVersion>, String> {
        let sent = self.context.push(self.newest.as_ref(), None, text.to_owned()).await;
        sent.map_err(|trouble| trouble.to_string())
    }

    /// Records that the local copy has this version.
    pub async fn finish(self, version: &FileVersion) {
        // If this fails, the next sync detects it.
        if let Err(error) = self.context.record_agreement(version).await {
            tracing::debug!(%error, "what was agreed on cannot be noted");
        }
    }
}

//! What takes documents and tasks away.

use super::document::{BaseName, DocumentId};
use super::store::Cleared;
use super::task::TaskId;
use super::{Error, Knowledge};

/// A document that is there, or waits to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removal {
    pub filename: String,
    pub chunks: u64,
}

impl Knowledge {
    /// What removing a document would take away; none where there is no such document.
    pub async fn removal(&self, base: &BaseName, id: DocumentId) -> Result<Option<Removal>, Error> {
        let open = self.open().await?;
        if let Some(document) = open.store.document(base, id).await? {
            return Ok(Some(Removal { filename: document.filename, chunks: u64::from(document.chunk_count) }));
        }
        let task = open.store.task_of_document(base, id).await?;
        Ok(task.map(|task| Removal { filename: task.filename.unwrap_or_default(), chunks: 0 }))
    }

    /// Removes a document, or cancels the task that would have brought it.
    pub async fn remove(&self, base: &BaseName, id: DocumentId) -> Result<Option<Removal>, Error> {
        let open = self.open().await?;
        let removed = open.store.remove_document(base, id).await?;
        let task = open.store.task_of_document(base, id).await?;
        if let Some(task) = &task {
            open.store.dismiss_task(task.id).await?;
            open.work.drop_task(task.id);
        }
        // It may have come between the two; after the task nothing more comes.
        let removed = match removed {
            None if task.is_some() => open.store.remove_document(base, id).await?,
            removed => removed,
        };
        let removal = match removed {
            Some(removed) => Some(Removal { filename: removed.filename, chunks: removed.chunks }),
            None => task.map(|task| Removal { filename: task.filename.unwrap_or_default(), chunks: 0 }),
        };
        open.finder.catch_up().await?;
        if removal.is_some() {
            self.documents_changed();
        }
        Ok(removal)
    }

    /// Removes the document of a watched file that is gone, unless it was found elsewhere or is a user's by now.
    pub async fn remove_at(&self, base: &BaseName, id: DocumentId, path: &str) -> Result<(), Error> {
        let open = self.open().await?;
        if open.store.remove_watched_document(base, id, path).await?.is_some() {
            open.finder.catch_up().await?;
            self.documents_changed();
        }
        Ok(())
    }

    /// Removes everything; what is being added is cancelled and does not come back (K-93).
    pub async fn clear(&self, base: &BaseName) -> Result<Cleared, Error> {
        let open = self.open().await?;
        let cleared = open.store.clear(base).await?;
        for task in &cleared.cancelled_tasks {
            open.work.drop_task(*task);
        }
        open.finder.catch_up().await?;
        self.documents_changed();
        Ok(cleared)
    }

    /// Cancels a task; whether there was anything to cancel (K-117).
    pub async fn cancel(&self, id: TaskId) -> Result<bool, Error> {
        let open = self.open().await?;
        let cancelled = open.store.cancel_task(id).await?;
        if cancelled {
            open.work.drop_task(id);
        }
        Ok(cancelled)
    }
}

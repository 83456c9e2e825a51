//! Deletion of documents, and cancellation of tasks.

use super::document::{BaseName, DocumentId};
use super::store::ClearSummary;
use super::task::TaskId;
use super::{Error, Knowledge};

/// A document that exists or is being added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removal {
    pub filename: String,
    pub chunks: u64,
}

impl Knowledge {
    /// The document that [`Knowledge::remove`] would remove. `None` if it does not exist.
    pub async fn preview_removal(&self, base: &BaseName, id: DocumentId) -> Result<Option<Removal>, Error> {
        let open = self.open().await?;
        if let Some(document) = open.store.document(base, id).await? {
            return Ok(Some(Removal { filename: document.filename, chunks: u64::from(document.chunk_count) }));
        }
        let task = open.store.task_of_document(base, id).await?;
        Ok(task.map(|task| Removal { filename: task.filename.unwrap_or_default(), chunks: 0 }))
    }

    /// Removes a document, or cancels the task that adds it.
    pub async fn remove(&self, base: &BaseName, id: DocumentId) -> Result<Option<Removal>, Error> {
        let open = self.open().await?;
        let removed = open.store.remove_document(base, id).await?;
        let task = open.store.task_of_document(base, id).await?;
        if let Some(task) = &task {
            open.store.dismiss_task(task.id).await?;
            open.scheduler.drop_task(task.id);
        }
        // The task may have stored the document between the two steps. After its cancellation it cannot.
        let removed = match removed {
            None if task.is_some() => open.store.remove_document(base, id).await?,
            removed => removed,
        };
        let removal = match removed {
            Some(removed) => Some(Removal { filename: removed.filename, chunks: removed.chunks }),
            None => task.map(|task| Removal { filename: task.filename.unwrap_or_default(), chunks: 0 }),
        };
        open.retriever.catch_up().await?;
        if removal.is_some() {
            self.notify_documents_changed([id]);
        }
        Ok(removal)
    }

    /// Removes the document of a deleted watched file, unless the file was found elsewhere or a user has added it.
    pub async fn remove_watched(&self, base: &BaseName, id: DocumentId, path: &str) -> Result<(), Error> {
        let open = self.open().await?;
        if open.store.remove_watched_document(base, id, path).await?.is_some() {
            open.retriever.catch_up().await?;
            self.notify_documents_changed([id]);
        }
        Ok(())
    }

    /// Removes all documents and cancels the tasks that add more (K-93).
    pub async fn clear(&self, base: &BaseName) -> Result<ClearSummary, Error> {
        let open = self.open().await?;
        let cleared = open.store.clear(base).await?;
        for task in &cleared.cancelled_tasks {
            open.scheduler.drop_task(*task);
        }
        open.retriever.catch_up().await?;
        self.notify_documents_changed([]);
        Ok(cleared)
    }

    /// Cancels a task. Returns whether it was still active (K-117).
    pub async fn cancel(&self, id: TaskId) -> Result<bool, Error> {
        let open = self.open().await?;
        let cancelled = open.store.cancel_task(id).await?;
        if cancelled {
            open.scheduler.drop_task(id);
        }
        Ok(cancelled)
    }
}

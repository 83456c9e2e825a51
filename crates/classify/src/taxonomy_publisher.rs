//! Publishes an edited taxonomy to the other instances. The classifier does not know how: the implementation is in
//! `file_sync`.

use std::fmt;

use futures_util::future::BoxFuture;

/// Publishes the taxonomy file to all instances.
pub trait TaxonomyPublisher: fmt::Debug + Send + Sync {
    /// Locks the file against edits by other local processes, and syncs it with the published version.
    fn lock(&self) -> BoxFuture<'_, Result<Box<dyn TaxonomyEditLock>, EditLockError>>;
}

/// While this is held, the local file equals the published version, and no other local process changes it.
pub trait TaxonomyEditLock: Send {
    /// Publishes a text, and returns the category names by index. Returns `None` if another instance published first.
    /// On an error the outcome is in doubt.
    fn publish<'a>(&'a mut self, text: &'a str) -> BoxFuture<'a, Result<Option<Vec<String>>, String>>;

    /// Records that the local file has the published text.
    fn finish(self: Box<Self>) -> BoxFuture<'static, ()>;
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

//! What keeps the processor busy, on threads of its own. Whoever waits for the database, or has to say in time that this
//! instance lives, does not wait for it.

use crate::knowledge::store::Error;

pub(super) async fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Error> {
    tokio::task::spawn_blocking(work).await.map_err(|error| Error::Internal(error.to_string()))
}

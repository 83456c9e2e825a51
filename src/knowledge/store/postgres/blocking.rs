//! Runs CPU-bound work on blocking threads, so that database I/O and heartbeats are not delayed.

use crate::knowledge::store::Error;

pub(super) async fn run_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Error> {
    tokio::task::spawn_blocking(work).await.map_err(|error| Error::Internal(error.to_string()))
}

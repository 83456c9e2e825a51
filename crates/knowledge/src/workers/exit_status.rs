//! Maps the wait status of a worker to an error: CPU limit, out of memory, or crash.

use std::time::Duration;

use rustix::process::Signal;

use super::Error;
use super::process::Worker;

/// Why a worker exited during a document.
pub(super) async fn exit_error(worker: &mut Worker, seconds: u64) -> Error {
    use std::os::unix::process::ExitStatusExt;
    // Read before waiting for the process, because its statistics disappear afterwards.
    let is_out_of_time = worker.is_out_of_time();
    let ended = tokio::time::timeout(Duration::from_secs(1), worker.wait()).await;
    let signal = ended.ok().and_then(|status| Signal::from_named_raw(status.ok()?.signal()?));
    match signal {
        Some(Signal::XCPU) => Error::CpuLimit { seconds },
        // Killed by the kernel at the hard limit.
        Some(Signal::KILL) if is_out_of_time => Error::CpuLimit { seconds },
        // The allocator aborts when it gets no memory, and the kernel kills a process when the system is out of memory.
        Some(Signal::ABORT | Signal::KILL) => Error::MemoryLimit,
        _ => Error::Crashed,
    }
}

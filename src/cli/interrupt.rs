//! SIGINT and SIGTERM handling for commands without shutdown logic.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, mpsc};

use super::demo::workdir;
use super::exit::{INTERRUPTED, TERMINATED};
use super::progress;
use crate::util::lock::lock;

/// Guard for a file being written, or for a temporary folder. It is removed when the command is interrupted.
pub(super) struct CleanupOnInterrupt;

static CLEANUP_PATH: Mutex<Option<PathBuf>> = Mutex::new(None);

impl CleanupOnInterrupt {
    /// Registers a file, unless it already exists: existing files are never removed.
    pub(super) fn file(path: &Path) -> CleanupOnInterrupt {
        if path.symlink_metadata().is_err() {
            *lock(&CLEANUP_PATH) = Some(path.to_owned());
        }
        CleanupOnInterrupt
    }

    /// Registers a folder of ours, which is removed with its contents.
    pub(super) fn folder(path: &Path) -> CleanupOnInterrupt {
        *lock(&CLEANUP_PATH) = Some(path.to_owned());
        CleanupOnInterrupt
    }
}

impl Drop for CleanupOnInterrupt {
    fn drop(&mut self) {
        *lock(&CLEANUP_PATH) = None;
    }
}

/// Exits the program immediately on SIGINT or SIGTERM. Commands write files atomically or register them as
/// [`CleanupOnInterrupt`], so that no partial file is left.
///
/// If the thread cannot be started, the default signal action applies.
pub(super) fn exit_on_signal() {
    let (ready, is_ready) = mpsc::channel();
    let watch = move || {
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
        if let Ok(code) = runtime.block_on(wait_for_signal(ready)) {
            clear_line();
            // The lock is held until exit: a thread that fails because its files are removed must not set the exit
            // code.
            let mut unfinished = lock(&CLEANUP_PATH);
            if let Some(path) = unfinished.take() {
                // The file may not exist yet.
                let _ = match path.is_dir() {
                    true => workdir::remove(&path),
                    false => std::fs::remove_file(path),
                };
            }
            std::process::exit(code.into());
        }
    };
    if std::thread::Builder::new().name("interrupt".into()).spawn(watch).is_ok() {
        // Wait until the handlers are installed, so that the default action cannot run in between.
        let _ = is_ready.recv();
    }
}

/// Drops `ready` once the handlers are installed; returns the exit code when a signal arrives.
async fn wait_for_signal(ready: mpsc::Sender<()>) -> std::io::Result<u8> {
    let mut asked = std::pin::pin!(async {
        tokio::select! {
            interrupted = tokio::signal::ctrl_c() => interrupted.map(|()| INTERRUPTED),
            terminated = wait_for_sigterm() => terminated.map(|()| TERMINATED),
        }
    });
    // The first poll installs the handlers.
    tokio::select! {
        biased;
        code = &mut asked => return code,
        () = std::future::ready(()) => {}
    }
    drop(ready);
    asked.await
}

#[cfg(unix)]
async fn wait_for_sigterm() -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    signal(SignalKind::terminate())?.recv().await;
    Ok(())
}

#[cfg(not(unix))]
async fn wait_for_sigterm() -> std::io::Result<()> {
    std::future::pending().await
}

/// Clears the progress line and the `^C` echoed by the terminal.
fn clear_line() {
    let mut stderr = std::io::stderr();
    // A failed write to stderr cannot be reported.
    let _ = match (progress::is_supported(), stderr.is_terminal()) {
        (true, _) => write!(stderr, "\r\u{1b}[K"),
        (false, true) => writeln!(stderr),
        (false, false) => Ok(()),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_file_that_is_being_made_is_taken_away() {
        let folder = tempfile::tempdir().unwrap();
        let (there, new) = (folder.path().join("there"), folder.path().join("new"));
        std::fs::write(&there, "").unwrap();
        let of_another = CleanupOnInterrupt::file(&there);
        assert_eq!(*lock(&CLEANUP_PATH), None, "it was there before");
        drop(of_another);
        let unfinished = CleanupOnInterrupt::file(&new);
        assert_eq!(*lock(&CLEANUP_PATH), Some(new));
        drop(unfinished);
        assert_eq!(*lock(&CLEANUP_PATH), None, "it is finished");
    }
}

//! Ctrl-C and SIGTERM, for commands that have nothing to undo.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, mpsc};

use super::demo::place;
use super::ending::{INTERRUPTED, TERMINATED};
use super::progress;
use crate::locked::locked;

/// A file that is being made, or a folder that is there for a while. It does not outlive an interruption.
pub(super) struct Unfinished;

static UNFINISHED: Mutex<Option<PathBuf>> = Mutex::new(None);

impl Unfinished {
    /// Nothing is ever taken away that was there before.
    pub(super) fn file(path: &Path) -> Unfinished {
        if path.symlink_metadata().is_err() {
            *locked(&UNFINISHED) = Some(path.to_owned());
        }
        Unfinished
    }

    /// A folder of our own, with all that is in it.
    pub(super) fn folder(path: &Path) -> Unfinished {
        *locked(&UNFINISHED) = Some(path.to_owned());
        Unfinished
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        *locked(&UNFINISHED) = None;
    }
}

/// Ends the program when a person or the system asks for it, whatever it is doing. Files that commands make appear as a whole, or are
/// taken away again, so that none is left half written.
///
/// Where no thread can be had, the system ends the program.
pub(super) fn end_at_once() {
    let (ready, is_ready) = mpsc::channel();
    let watch = move || {
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
        if let Ok(code) = runtime.block_on(asked(ready)) {
            leave_the_line();
            // Held to the end: whoever loses what it works on must not be the one to say how the program ended.
            let mut unfinished = locked(&UNFINISHED);
            if let Some(path) = unfinished.take() {
                // It may not have been begun.
                let _ = match path.is_dir() {
                    true => place::remove(&path),
                    false => std::fs::remove_file(path),
                };
            }
            std::process::exit(code.into());
        }
    };
    if std::thread::Builder::new().name("interrupt".into()).spawn(watch).is_ok() {
        // So that no moment is left in which the system would end the program.
        let _ = is_ready.recv();
    }
}

/// Says when it watches, and gives back what to end with when it is asked to.
async fn asked(ready: mpsc::Sender<()>) -> std::io::Result<u8> {
    let mut asked = std::pin::pin!(async {
        tokio::select! {
            interrupted = tokio::signal::ctrl_c() => interrupted.map(|()| INTERRUPTED),
            terminated = terminated() => terminated.map(|()| TERMINATED),
        }
    });
    // The system is asked to tell us with the first look.
    tokio::select! {
        biased;
        code = &mut asked => return code,
        () = std::future::ready(()) => {}
    }
    drop(ready);
    asked.await
}

#[cfg(unix)]
async fn terminated() -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    signal(SignalKind::terminate())?.recv().await;
    Ok(())
}

#[cfg(not(unix))]
async fn terminated() -> std::io::Result<()> {
    std::future::pending().await
}

/// Takes a progress away, and the `^C` that the terminal has written.
fn leave_the_line() {
    let mut stderr = std::io::stderr();
    // Nobody can be told that stderr cannot be written to.
    let _ = match (progress::can_be_shown(), stderr.is_terminal()) {
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
        let of_another = Unfinished::file(&there);
        assert_eq!(*locked(&UNFINISHED), None, "it was there before");
        drop(of_another);
        let unfinished = Unfinished::file(&new);
        assert_eq!(*locked(&UNFINISHED), Some(new));
        drop(unfinished);
        assert_eq!(*locked(&UNFINISHED), None, "it is finished");
    }
}

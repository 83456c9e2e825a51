//! Noticing that a file has changed, and the signal that asks for files to be read again.

use std::path::Path;
use std::time::{Duration, SystemTime};

/// How often files are looked at. Looking is one system call, sees files that are swapped by links (as in containers),
/// and works on every file system; notices of the operating system do neither.
pub(crate) const EVERY: Duration = Duration::from_secs(1);

/// Waits for files to change, and for the signal.
pub(crate) struct Changes<T> {
    hangups: Hangups,
    looks: tokio::time::Interval,
    /// How the files looked the last time.
    before: Option<T>,
}

impl<T: PartialEq> Changes<T> {
    /// Listens for the signal from this call on.
    pub(crate) fn follow() -> Changes<T> {
        let mut looks = tokio::time::interval(EVERY);
        looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        Changes { hangups: Hangups::listen(), looks, before: None }
    }

    /// Ends when the files look other than they did when they were read, or the signal has come.
    pub(crate) async fn next(&mut self, look: impl Fn() -> T, read: &T) {
        loop {
            tokio::select! {
                () = self.hangups.next() => return,
                _ = self.looks.tick() => {
                    let now = look();
                    // Files that have just changed may be half written; they are read when they have not changed since.
                    let still = self.before.as_ref() == Some(&now);
                    let changed = now != *read;
                    self.before = Some(now);
                    if still && changed {
                        return;
                    }
                }
            }
        }
    }
}

/// What tells one version of a file from another without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    modified: Option<SystemTime>,
    bytes: u64,
    inode: u64,
}

impl Stamp {
    /// None where there is no file to look at, for the moment or at all.
    pub(crate) fn of(path: Option<&Path>) -> Option<Stamp> {
        let facts = std::fs::metadata(path?).ok()?;
        Some(Stamp { modified: facts.modified().ok(), bytes: facts.len(), inode: inode(&facts) })
    }
}

#[cfg(unix)]
fn inode(facts: &std::fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(facts)
}

#[cfg(not(unix))]
fn inode(_: &std::fs::Metadata) -> u64 {
    0
}

/// The signal that asks daemons to read their files again. From a terminal it means that the terminal is gone, and is
/// left to end the program.
pub(crate) struct Hangups {
    #[cfg(unix)]
    signal: Option<tokio::signal::unix::Signal>,
}

#[cfg(unix)]
impl Hangups {
    pub(crate) fn listen() -> Hangups {
        use std::io::IsTerminal;
        use tokio::signal::unix::{SignalKind, signal};
        let attended = std::io::stdin().is_terminal();
        Hangups { signal: (!attended).then(|| signal(SignalKind::hangup()).ok()).flatten() }
    }

    pub(crate) async fn next(&mut self) {
        match &mut self.signal {
            Some(signal) => drop(signal.recv().await),
            None => std::future::pending().await,
        }
    }
}

#[cfg(not(unix))]
impl Hangups {
    pub(crate) fn listen() -> Hangups {
        Hangups {}
    }

    pub(crate) async fn next(&mut self) {
        std::future::pending().await
    }
}

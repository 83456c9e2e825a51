//! File change polling and SIGHUP.

use std::path::Path;
use std::time::{Duration, SystemTime};

/// Poll interval. Polling is one system call, detects files swapped through symbolic links (as in containers), and
/// works on every file system; OS notifications do neither.
pub const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Waits for a change of files, or for SIGHUP.
#[derive(Debug)]
pub struct FileWatcher<T> {
    hangup_signal: HangupSignal,
    interval: tokio::time::Interval,
    /// State of the files at the last poll.
    previous: Option<T>,
}

impl<T: PartialEq> FileWatcher<T> {
    /// Registers for the signal immediately.
    pub fn register() -> FileWatcher<T> {
        let mut looks = tokio::time::interval(POLL_INTERVAL);
        looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        FileWatcher { hangup_signal: HangupSignal::listen(), interval: looks, previous: None }
    }

    /// Returns when the files differ from the state in `read`, or on SIGHUP.
    pub async fn changed(&mut self, look: impl Fn() -> T, read: &T) {
        loop {
            tokio::select! {
                () = self.hangup_signal.recv() => return,
                _ = self.interval.tick() => {
                    let now = look();
                    // A recently changed file may be half written. It is reported once it is unchanged between two
                    // polls.
                    let still = self.previous.as_ref() == Some(&now);
                    let changed = now != *read;
                    self.previous = Some(now);
                    if still && changed {
                        return;
                    }
                }
            }
        }
    }
}

/// Identifies a version of a file without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileFingerprint {
    modified: Option<SystemTime>,
    bytes: u64,
    inode: u64,
}

impl FileFingerprint {
    /// `None` if the file cannot be accessed.
    pub fn of(path: Option<&Path>) -> Option<FileFingerprint> {
        let facts = std::fs::metadata(path?).ok()?;
        Some(FileFingerprint { modified: facts.modified().ok(), bytes: facts.len(), inode: inode(&facts) })
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

/// SIGHUP, on which daemons reload their files. In a terminal it means that the terminal was closed, and keeps its
/// default action.
#[derive(Debug)]
pub struct HangupSignal {
    #[cfg(unix)]
    signal: Option<tokio::signal::unix::Signal>,
}

#[cfg(unix)]
impl HangupSignal {
    pub fn listen() -> HangupSignal {
        use std::io::IsTerminal;
        use tokio::signal::unix::{SignalKind, signal};
        let attended = std::io::stdin().is_terminal();
        HangupSignal { signal: (!attended).then(|| signal(SignalKind::hangup()).ok()).flatten() }
    }

    pub async fn recv(&mut self) {
        match &mut self.signal {
            Some(signal) => drop(signal.recv().await),
            None => std::future::pending().await,
        }
    }
}

#[cfg(not(unix))]
impl HangupSignal {
    pub fn listen() -> HangupSignal {
        HangupSignal {}
    }

    pub async fn recv(&mut self) {
        std::future::pending().await
    }
}

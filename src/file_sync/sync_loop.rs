//! Sync loop: keeps the local copies and the database in sync while the server runs.

use tokio::time::{MissedTickBehavior, interval};

use super::local_copy::LocalCopy;
use super::sync::{LocalEdits, SyncContext, SyncError, SyncOutcome, SyncResult};
use super::{FileSync, SharedFileKind};
use crate::knowledge::store::postgres::SyncedFiles;
use crate::util::file_watch::{FileFingerprint, POLL_INTERVAL};
use crate::util::lock::lock;

/// A full comparison every this many polls, regardless of notifications and file stamps.
const POLLS_PER_FULL_SYNC: u64 = 60;

/// The result of a sync for one file.
#[derive(Debug)]
pub struct FileChange {
    pub kind: SharedFileKind,
    /// The local file has new content.
    pub is_pulled: bool,
    /// For a taxonomy, the category names by index; empty if there are none.
    pub category_ids: Vec<String>,
}

/// State of one local copy.
#[derive(Debug, Default)]
struct CopyState {
    /// Stamp of the file at the last poll.
    last: Option<FileFingerprint>,
    /// Stamp of the file at the last sync.
    last_synced: Option<FileFingerprint>,
    /// Whether another instance may have changed it since.
    is_due: bool,
    /// The last logged problem, so that it is logged once.
    last_reported: Option<String>,
}

impl FileSync {
    /// Runs until the process stops. `changed` is called for each file that was updated from the database, and after
    /// every sync with the current category indices.
    pub async fn run_sync_loop(self, changed: impl Fn(FileChange)) {
        let shared = &*self.0;
        if shared.knowledge.wait_until_open().await.is_none() {
            return;
        }
        let Some(store) = shared.knowledge.shared_store() else { return };
        let (files, mut heard) = (store.synced_files(), store.subscribe_changes());
        let mut known = heard.borrow_and_update().files;
        let mut seen: Vec<CopyState> =
            shared.copies.iter().map(|_| CopyState { is_due: true, ..CopyState::default() }).collect();
        let mut looks = interval(POLL_INTERVAL);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        for look in 1_u64.. {
            let is_look = tokio::select! {
                _ = looks.tick() => true,
                changed = heard.changed() => match changed {
                    Ok(()) => false,
                    Err(_) => return,
                },
                () = shared.knowledge.stopped() => return,
            };
            let now = heard.borrow_and_update().files;
            let was_heard = std::mem::replace(&mut known, now) != now;
            for (copy, seen) in shared.copies.iter().zip(&mut seen) {
                seen.is_due |= was_heard || look.is_multiple_of(POLLS_PER_FULL_SYNC);
                let stamp = FileFingerprint::of(Some(&copy.path));
                // A recently changed file may be half written. It is synced once it is unchanged between two polls.
                let edits = match is_look && stamp == seen.last && copy.is_watched {
                    true => LocalEdits::Publish,
                    false => LocalEdits::Defer,
                };
                if is_look {
                    seen.last = stamp;
                }
                if seen.is_due || stamp != seen.last_synced {
                    self.sync_copy(&files, copy, seen, stamp, edits, &changed).await;
                }
            }
            let troubles = shared.copies.iter().zip(&seen);
            let troubles =
                troubles.filter_map(|(copy, seen)| Some((copy.path.display(), seen.last_reported.as_ref()?)));
            let troubles: Vec<_> = troubles.map(|(path, told)| format!("`{path}`: {told}")).collect();
            *lock(&shared.problem) = (!troubles.is_empty()).then(|| troubles.join("; "));
        }
    }

    async fn sync_copy(
        &self,
        files: &SyncedFiles,
        copy: &LocalCopy,
        seen: &mut CopyState,
        stamp: Option<FileFingerprint>,
        edits: LocalEdits,
        changed: &impl Fn(FileChange),
    ) {
        let notes = self.0.state.clone();
        let outcome = match notes.try_lock() {
            Ok(Some(_held)) => {
                let exchange = SyncContext { files: files.clone(), state: notes, copy: copy.clone() };
                exchange.run(edits).await.map(|SyncResult { outcome, newest }| {
                    let places = newest.map(|newest| newest.places).unwrap_or_default();
                    changed(FileChange {
                        kind: copy.kind,
                        is_pulled: outcome == SyncOutcome::Pulled,
                        category_ids: places,
                    });
                    outcome
                })
            }
            // Another local process holds the lock; the next poll is soon.
            Ok(None) => return,
            Err(why) => Err(SyncError::File(why)),
        };
        let path = copy.path.display();
        match &outcome {
            Ok(SyncOutcome::Pulled) => {
                tracing::info!(%path, "pulled a change from another instance")
            }
            Ok(SyncOutcome::Pushed) => tracing::info!(%path, "published a local change to other instances"),
            Ok(SyncOutcome::Unchanged | SyncOutcome::Deferred) => {}
            // An unavailable database is reported elsewhere.
            Err(SyncError::Store(error)) if error.is_transient() => {
                tracing::debug!(%path, %error, "cannot sync the file");
            }
            Err(trouble) => {
                let why = trouble.to_string();
                if seen.last_reported.as_ref() != Some(&why) {
                    tracing::warn!(%path, "file is not synced: {why}");
                    seen.last_reported = Some(why);
                }
            }
        }
        match outcome {
            Ok(SyncOutcome::Deferred) if copy.is_watched => {}
            Err(SyncError::Store(error)) if error.is_transient() => {}
            done => {
                (seen.is_due, seen.last_synced) = (false, stamp);
                if done.is_ok() {
                    seen.last_reported = None;
                }
            }
        }
    }
}

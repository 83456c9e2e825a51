//! One sync of a file between the local copy and the database.

use std::sync::Arc;

use super::category_ids;
use super::local_copy::{LocalCopy, ReplacedContent, SharedFileKind};
use super::sync_state::{SyncState, SyncStateDir};
use super::three_way::{self, SyncAction};
use crate::access::{self, FileRevision, FirstVersions};
use crate::knowledge::store;
use crate::knowledge::store::postgres::{FileVersion, SyncedFiles};

/// The parties of a sync. The caller must hold the lock of the sync state.
#[derive(Debug, Clone)]
pub(super) struct SyncContext {
    pub(super) files: SyncedFiles,
    pub(super) state: Arc<SyncStateDir>,
    pub(super) copy: LocalCopy,
}

/// How to treat a local change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LocalEdits {
    Publish,
    /// The change is recent and may be incomplete.
    Defer,
}

/// The outcome of a sync and the newest shared version; `None` if there is no shared version.
#[derive(Debug)]
pub(super) struct SyncResult {
    pub(super) outcome: SyncOutcome,
    pub(super) newest: Option<FileVersion>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SyncOutcome {
    /// Both sides were equal.
    Unchanged,
    /// The remote version was written locally.
    Pulled,
    /// The local version was published.
    Pushed,
    /// Postponed to the next sync.
    Deferred,
}

/// Why a sync failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum SyncError {
    #[error(transparent)]
    Store(#[from] store::Error),
    /// The local file is invalid; the shared version is unchanged.
    #[error("the file has errors and is not shared until they are fixed: {why}")]
    Invalid { why: String, newest: Option<FileVersion> },
    #[error("{0}; the file is not shared with other instances")]
    Unwritable(String),
    #[error("{0}")]
    File(String),
}

/// Maximum number of lost races before the sync is postponed.
const MAX_ROUNDS: usize = 8;

impl SyncContext {
    /// Brings both sides to the same version.
    pub(super) async fn run(&self, edits: LocalEdits) -> Result<SyncResult, SyncError> {
        let name = self.copy.kind.name();
        let mut newest = None;
        for _ in 0..MAX_ROUNDS {
            newest = self.files.latest(name).await?;
            let (ours, base) = self.read_local().await?;
            let theirs = newest.as_ref().map(|newest| newest.content.clone());
            let step = three_way::next_action(
                base.as_ref().map(to_revision),
                ours.as_deref(),
                newest.as_ref().map(to_revision),
            );
            match (step, ours, theirs) {
                (SyncAction::RecordAgreement, ..) => {
                    if let Some(newest) = &newest {
                        self.record_agreement(newest).await?;
                    }
                    return Ok(SyncResult { outcome: SyncOutcome::Unchanged, newest });
                }
                (SyncAction::Push | SyncAction::Merge, Some(_), _) if edits == LocalEdits::Defer => break,
                (SyncAction::Push, Some(ours), theirs) => {
                    self.check_ours(&ours, newest.as_ref()).await?;
                    if base.as_ref().map(|base| base.number) > newest.as_ref().map(|newest| newest.number) {
                        let path = self.copy.path.display();
                        tracing::warn!(%path, "local file is newer than the restored database; publishing it again");
                        // The database may have advanced since the restore, and tokens revoked then stay revoked.
                        if let (SharedFileKind::Tokens, Some(_)) = (self.copy.kind, theirs) {
                            match self.merge(base.as_ref(), ours, newest.as_ref()).await? {
                                Some(exchanged) => return Ok(exchanged),
                                None => continue,
                            }
                        }
                    }
                    if let Some(sent) = self.push(newest.as_ref(), base.as_ref(), ours).await? {
                        self.record_agreement(&sent).await?;
                        return Ok(SyncResult { outcome: SyncOutcome::Pushed, newest: Some(sent) });
                    }
                }
                (SyncAction::Merge, Some(ours), _) => {
                    if let Some(exchanged) = self.merge(base.as_ref(), ours, newest.as_ref()).await? {
                        return Ok(exchanged);
                    }
                }
                (SyncAction::Pull, ours, _) => {
                    if let Some(coming) = &newest
                        && self.pull(ours, coming, ReplacedContent::Discard).await?
                    {
                        return Ok(SyncResult { outcome: SyncOutcome::Pulled, newest });
                    }
                }
                _ => return Ok(SyncResult { outcome: SyncOutcome::Unchanged, newest }),
            }
        }
        Ok(SyncResult { outcome: SyncOutcome::Deferred, newest })
    }

    /// Merges both changes if possible; otherwise the remote one wins.
    async fn merge(
        &self,
        base: Option<&FileVersion>,
        ours: String,
        newest: Option<&FileVersion>,
    ) -> Result<Option<SyncResult>, SyncError> {
        let Some(newest) = newest else { return Ok(None) };
        let merged = match self.copy.kind {
            // Taxonomies cannot be merged.
            SharedFileKind::Taxonomy => None,
            SharedFileKind::Tokens => self.merge_tokens(base, &ours, newest).await?,
        };
        let (coming, former) = match merged {
            Some(merged) if merged == newest.content => (newest.clone(), ReplacedContent::Discard),
            Some(merged) => {
                self.check_writable().await?;
                match self.push(Some(newest), base, merged).await? {
                    Some(sent) => (sent, ReplacedContent::Discard),
                    None => return Ok(None),
                }
            }
            None => {
                let path = self.copy.path.display();
                tracing::warn!(%path, "conflict with a change by another instance; using its version and keeping a \
                    backup of the local file");
                (newest.clone(), ReplacedContent::Backup)
            }
        };
        let brought = self.pull(Some(ours), &coming, former).await?;
        Ok(brought.then_some(SyncResult { outcome: SyncOutcome::Pulled, newest: Some(coming) }))
    }

    /// Three-way merge of the tokens, without revoked ones. Reads the history one version at a time.
    async fn merge_tokens(
        &self,
        base: Option<&FileVersion>,
        ours: &str,
        newest: &FileVersion,
    ) -> Result<Option<String>, SyncError> {
        let (mut seen, mut before) = (FirstVersions::default(), newest.number);
        while let Some(version) = self.files.previous(self.copy.kind.name(), before).await? {
            before = version.number;
            seen = run_blocking(move || {
                seen.record(to_revision(&version));
                Ok(seen)
            })
            .await?;
        }
        let (base, ours, newest) = (base.cloned(), ours.to_owned(), newest.clone());
        run_blocking(move || {
            Ok(access::merge_tokens(base.as_ref().map(to_revision), &ours, to_revision(&newest), &seen))
        })
        .await
    }

    /// Publishes a text as the successor of the newest known version. Returns the published version, or `None` if
    /// another instance published first.
    pub(super) async fn push(
        &self,
        newest: Option<&FileVersion>,
        base: Option<&FileVersion>,
        content: String,
    ) -> Result<Option<FileVersion>, SyncError> {
        let (copy, text) = (self.copy.clone(), content.clone());
        let names = run_blocking(move || Ok(copy.category_names(&text))).await?;
        let number = |version: Option<&FileVersion>| version.map_or(0, |version| version.number);
        // A restored database may have lost category indices, too.
        let before = if number(base) > number(newest) { base } else { newest };
        let places = category_ids::updated_ids(before.map_or(&[][..], |version| &version.places), &names);
        let version = FileVersion { number: number(newest).max(number(base)) + 1, content, places };
        let sent = self.files.write(self.copy.kind.name(), number(newest), &version).await?;
        Ok(sent.then_some(version))
    }

    /// The local content and the last agreed version.
    async fn read_local(&self) -> Result<(Option<String>, Option<FileVersion>), SyncError> {
        let SyncContext { files, state: notes, copy } = self.clone();
        run_blocking(move || {
            let note = notes.read(&copy.state_name())?;
            let ours = copy.read()?;
            let base = note.base(files.history(), ours.as_deref()).cloned();
            Ok((ours, base))
        })
        .await
    }

    async fn check_writable(&self) -> Result<(), SyncError> {
        let copy = self.copy.clone();
        let checked = tokio::task::spawn_blocking(move || copy.check_writable()).await;
        checked.unwrap_or_else(|error| Err(error.to_string())).map_err(SyncError::Unwritable)
    }

    /// Only valid content is published, and only a writable file is shared.
    async fn check_ours(&self, text: &str, newest: Option<&FileVersion>) -> Result<(), SyncError> {
        self.check_writable().await?;
        let (copy, text) = (self.copy.clone(), text.to_owned());
        match run_blocking(move || Ok(copy.check(&text))).await? {
            Ok(()) => Ok(()),
            Err(why) => Err(SyncError::Invalid { why, newest: newest.cloned() }),
        }
    }

    /// Writes the shared version locally. Returns false if the file was changed concurrently.
    async fn pull(
        &self,
        ours: Option<String>,
        coming: &FileVersion,
        former: ReplacedContent,
    ) -> Result<bool, SyncError> {
        self.check_writable().await?;
        let SyncContext { files, state: notes, copy } = self.clone();
        let text = coming.content.clone();
        let noted = coming.clone();
        let done = run_blocking(move || {
            let of_no_use = |why| format!("ignoring the shared version, because it is invalid on this instance: {why}");
            copy.check(&text).map_err(of_no_use)?;
            let name = copy.state_name();
            let note = notes.read(&name)?;
            let agreed = note.base(files.history(), ours.as_deref()).cloned();
            notes.write(&name, &SyncState { history: files.history().to_owned(), agreed, coming: Some(noted) })?;
            copy.write(ours.as_deref(), &text, former)
        });
        let done = done.await?;
        if done {
            self.record_agreement(coming).await?;
        }
        Ok(done)
    }

    /// Records that both sides have this version.
    pub(super) async fn record_agreement(&self, version: &FileVersion) -> Result<(), SyncError> {
        let SyncContext { files, state: notes, copy } = self.clone();
        let note = SyncState { history: files.history().to_owned(), agreed: Some(version.clone()), coming: None };
        run_blocking(move || notes.write(&copy.state_name(), &note)).await
    }
}

fn to_revision(version: &FileVersion) -> FileRevision<'_> {
    FileRevision { number: version.number, text: &version.content }
}

/// Runs blocking work: disk I/O, or parsing a large taxonomy.
async fn run_blocking<T: Send + 'static>(
    run: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, SyncError> {
    let done = tokio::task::spawn_blocking(run).await;
    done.unwrap_or_else(|error| Err(error.to_string())).map_err(SyncError::File)
}

//! One sync of a file between the local copy and the database.

use std::sync::Arc;

use super::notes::{Note, Notes};
use super::own_copy::{Former, Kind, OwnCopy};
use super::places;
use super::step::{self, Step};
use crate::access::{self, FirstSeen, Stated};
use crate::knowledge::store;
use crate::knowledge::store::postgres::{Files, Version};

/// The parties of a sync. The caller must hold the lock of the sync state.
#[derive(Debug, Clone)]
pub(super) struct Exchange {
    pub(super) files: Files,
    pub(super) notes: Arc<Notes>,
    pub(super) copy: OwnCopy,
}

/// How to treat a local change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Edits {
    Count,
    /// The change is recent and may be incomplete.
    Wait,
}

/// The outcome of a sync and the newest shared version; `None` if there is no shared version.
#[derive(Debug)]
pub(super) struct Exchanged {
    pub(super) outcome: Outcome,
    pub(super) newest: Option<Version>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Both sides were equal.
    Same,
    /// The remote version was written locally.
    Brought,
    /// The local version was published.
    Sent,
    /// Postponed to the next sync.
    Waits,
}

/// Why a sync failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum Trouble {
    #[error(transparent)]
    Store(#[from] store::Error),
    /// The local file is invalid; the shared version is unchanged.
    #[error("what it says stays on this machine until it is mended: {why}")]
    Mistaken { why: String, newest: Option<Version> },
    #[error("{0}; so it is not shared with other instances")]
    Unwritable(String),
    #[error("{0}")]
    File(String),
}

/// Maximum number of lost races before the sync is postponed.
const MOST_ROUNDS: usize = 8;

impl Exchange {
    /// Brings both sides to the same version.
    pub(super) async fn run(&self, edits: Edits) -> Result<Exchanged, Trouble> {
        let name = self.copy.kind.name();
        let mut newest = None;
        for _ in 0..MOST_ROUNDS {
            newest = self.files.newest(name).await?;
            let (ours, base) = self.look().await?;
            let theirs = newest.as_ref().map(|newest| newest.content.clone());
            let step = step::next(base.as_ref().map(stated), ours.as_deref(), newest.as_ref().map(stated));
            match (step, ours, theirs) {
                (Step::Agree, ..) => {
                    if let Some(newest) = &newest {
                        self.agree(newest).await?;
                    }
                    return Ok(Exchanged { outcome: Outcome::Same, newest });
                }
                (Step::Send | Step::Meet, Some(_), _) if edits == Edits::Wait => break,
                (Step::Send, Some(ours), theirs) => {
                    self.check_ours(&ours, newest.as_ref()).await?;
                    if base.as_ref().map(|base| base.number) > newest.as_ref().map(|newest| newest.number) {
                        let path = self.copy.path.display();
                        tracing::warn!(%path, "is newer than what the database has, which went back; it is sent again");
                        // The database may have advanced since the restore, and tokens revoked then stay revoked.
                        if let (Kind::Tokens, Some(_)) = (self.copy.kind, theirs) {
                            match self.meet(base.as_ref(), ours, newest.as_ref()).await? {
                                Some(exchanged) => return Ok(exchanged),
                                None => continue,
                            }
                        }
                    }
                    if let Some(sent) = self.send(newest.as_ref(), base.as_ref(), ours).await? {
                        self.agree(&sent).await?;
                        return Ok(Exchanged { outcome: Outcome::Sent, newest: Some(sent) });
                    }
                }
                (Step::Meet, Some(ours), _) => {
                    if let Some(exchanged) = self.meet(base.as_ref(), ours, newest.as_ref()).await? {
                        return Ok(exchanged);
                    }
                }
                (Step::Bring, ours, _) => {
                    if let Some(coming) = &newest
                        && self.bring(ours, coming, Former::Dropped).await?
                    {
                        return Ok(Exchanged { outcome: Outcome::Brought, newest });
                    }
                }
                _ => return Ok(Exchanged { outcome: Outcome::Same, newest }),
            }
        }
        Ok(Exchanged { outcome: Outcome::Waits, newest })
    }

    /// Merges both changes if possible; otherwise the remote one wins.
    async fn meet(
        &self,
        base: Option<&Version>,
        ours: String,
        newest: Option<&Version>,
    ) -> Result<Option<Exchanged>, Trouble> {
        let Some(newest) = newest else { return Ok(None) };
        let merged = match self.copy.kind {
            // Taxonomies cannot be merged.
            Kind::Taxonomy => None,
            Kind::Tokens => self.merged_tokens(base, &ours, newest).await?,
        };
        let (coming, former) = match merged {
            Some(merged) if merged == newest.content => (newest.clone(), Former::Dropped),
            Some(merged) => {
                self.check_writable().await?;
                match self.send(Some(newest), base, merged).await? {
                    Some(sent) => (sent, Former::Dropped),
                    None => return Ok(None),
                }
            }
            None => {
                let path = self.copy.path.display();
                tracing::warn!(%path, "says something else than other instances do; theirs counts, and this is kept beside it");
                (newest.clone(), Former::Kept)
            }
        };
        let brought = self.bring(Some(ours), &coming, former).await?;
        Ok(brought.then_some(Exchanged { outcome: Outcome::Brought, newest: Some(coming) }))
    }

    /// Three-way merge of the tokens, without revoked ones. Reads the history one version at a time.
    async fn merged_tokens(
        &self,
        base: Option<&Version>,
        ours: &str,
        newest: &Version,
    ) -> Result<Option<String>, Trouble> {
        let (mut seen, mut before) = (FirstSeen::default(), newest.number);
        while let Some(version) = self.files.before(self.copy.kind.name(), before).await? {
            before = version.number;
            seen = blocking(move || {
                seen.note(stated(&version));
                Ok(seen)
            })
            .await?;
        }
        let (base, ours, newest) = (base.cloned(), ours.to_owned(), newest.clone());
        blocking(move || Ok(access::merged(base.as_ref().map(stated), &ours, stated(&newest), &seen))).await
    }

    /// Publishes a text as the successor of the newest known version. Returns the published version, or `None` if
    /// another instance published first.
    pub(super) async fn send(
        &self,
        newest: Option<&Version>,
        base: Option<&Version>,
        content: String,
    ) -> Result<Option<Version>, Trouble> {
        let (copy, text) = (self.copy.clone(), content.clone());
        let names = blocking(move || Ok(copy.names(&text))).await?;
        let number = |version: Option<&Version>| version.map_or(0, |version| version.number);
        // A restored database may have lost category indices, too.
        let before = if number(base) > number(newest) { base } else { newest };
        let places = places::after(before.map_or(&[][..], |version| &version.places), &names);
        let version = Version { number: number(newest).max(number(base)) + 1, content, places };
        let sent = self.files.write(self.copy.kind.name(), number(newest), &version).await?;
        Ok(sent.then_some(version))
    }

    /// The local content and the last agreed version.
    async fn look(&self) -> Result<(Option<String>, Option<Version>), Trouble> {
        let Exchange { files, notes, copy } = self.clone();
        blocking(move || {
            let note = notes.read(&copy.note_name())?;
            let ours = copy.read()?;
            let base = note.base(files.history(), ours.as_deref()).cloned();
            Ok((ours, base))
        })
        .await
    }

    async fn check_writable(&self) -> Result<(), Trouble> {
        let copy = self.copy.clone();
        let checked = tokio::task::spawn_blocking(move || copy.check_writable()).await;
        checked.unwrap_or_else(|error| Err(error.to_string())).map_err(Trouble::Unwritable)
    }

    /// Only valid content is published, and only a writable file is shared.
    async fn check_ours(&self, text: &str, newest: Option<&Version>) -> Result<(), Trouble> {
        self.check_writable().await?;
        let (copy, text) = (self.copy.clone(), text.to_owned());
        match blocking(move || Ok(copy.check(&text))).await? {
            Ok(()) => Ok(()),
            Err(why) => Err(Trouble::Mistaken { why, newest: newest.cloned() }),
        }
    }

    /// Writes the shared version locally. Returns false if the file was changed concurrently.
    async fn bring(&self, ours: Option<String>, coming: &Version, former: Former) -> Result<bool, Trouble> {
        self.check_writable().await?;
        let Exchange { files, notes, copy } = self.clone();
        let text = coming.content.clone();
        let noted = coming.clone();
        let done = blocking(move || {
            let of_no_use = |why| format!("what other instances share cannot be used here, and is left alone: {why}");
            copy.check(&text).map_err(of_no_use)?;
            let name = copy.note_name();
            let note = notes.read(&name)?;
            let agreed = note.base(files.history(), ours.as_deref()).cloned();
            notes.write(&name, &Note { history: files.history().to_owned(), agreed, coming: Some(noted) })?;
            copy.write(ours.as_deref(), &text, former)
        });
        let done = done.await?;
        if done {
            self.agree(coming).await?;
        }
        Ok(done)
    }

    /// Records that both sides have this version.
    pub(super) async fn agree(&self, version: &Version) -> Result<(), Trouble> {
        let Exchange { files, notes, copy } = self.clone();
        let note = Note { history: files.history().to_owned(), agreed: Some(version.clone()), coming: None };
        blocking(move || notes.write(&copy.note_name(), &note)).await
    }
}

fn stated(version: &Version) -> Stated<'_> {
    Stated { number: version.number, text: &version.content }
}

/// Runs blocking work: disk I/O, or parsing a large taxonomy.
async fn blocking<T: Send + 'static>(run: impl FnOnce() -> Result<T, String> + Send + 'static) -> Result<T, Trouble> {
    let done = tokio::task::spawn_blocking(run).await;
    done.unwrap_or_else(|error| Err(error.to_string())).map_err(Trouble::File)
}

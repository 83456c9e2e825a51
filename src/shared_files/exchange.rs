//! One exchange of a file between this machine and the database.

use std::io;
use std::sync::Arc;

use super::agreed::{Agreed, Place};
use super::copy::Copy;
use super::places;
use super::step::{self, Step};
use crate::knowledge::store;
use crate::knowledge::store::postgres::{Files, Version};

/// What an exchange came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Both said the same.
    Same,
    /// Others' is here now.
    Brought,
    /// Ours is for all now.
    Sent,
    /// It was changed a moment ago, perhaps not to its end.
    Waits,
}

/// Why a file was not exchanged.
#[derive(Debug, thiserror::Error)]
pub(super) enum Trouble {
    #[error(transparent)]
    Store(#[from] store::Error),
    #[error("{0}")]
    File(String),
}

/// How often others may be quicker before it is left to the next time.
const MOST_ROUNDS: usize = 8;

/// What an exchange came to, and what all say now; nothing where nobody has said anything.
#[derive(Debug)]
pub(super) struct Exchanged {
    pub(super) outcome: Outcome,
    pub(super) newest: Option<Version>,
}

/// Brings both sides to say the same. Whoever calls holds the place.
///
/// What was changed here is sent only if it is `steady`: an editor may not be done with it.
pub(super) async fn exchange(
    files: &Files,
    place: &Arc<Place>,
    copy: &Copy,
    steady: bool,
) -> Result<Exchanged, Trouble> {
    let mut newest = None;
    for _ in 0..MOST_ROUNDS {
        newest = files.newest(copy.kind.name()).await?;
        let (ours, base) = look(files, place, copy).await?;
        let base = base.map(|agreed| agreed.content);
        let theirs = newest.as_ref().map(|newest| newest.content.clone());
        let step = step::next(base.as_deref(), ours.as_deref(), theirs.as_deref());
        match (step, ours, theirs) {
            (Step::Agree, Some(ours), _) => {
                agree(files, place, copy, ours).await?;
                return Ok(Exchanged { outcome: Outcome::Same, newest });
            }
            (Step::Send, Some(_), _) if !steady => break,
            (Step::Send, Some(ours), _) => {
                check(copy, ours.clone()).await?;
                if let Some(sent) = send(files, copy, newest.as_ref(), &ours).await? {
                    agree(files, place, copy, ours).await?;
                    return Ok(Exchanged { outcome: Outcome::Sent, newest: Some(sent) });
                }
            }
            (Step::Meet, Some(ours), Some(theirs)) => match copy.merged(base.as_deref(), &ours, &theirs) {
                Some(merged) => {
                    if let Some(sent) = send(files, copy, newest.as_ref(), &merged).await?
                        && bring(files, place, copy, Some(ours), merged, false).await?
                    {
                        return Ok(Exchanged { outcome: Outcome::Brought, newest: Some(sent) });
                    }
                }
                None => {
                    let path = copy.path.display();
                    tracing::warn!(%path, "says something else than other instances do; theirs counts, and this is kept beside it");
                    if bring(files, place, copy, Some(ours), theirs, true).await? {
                        return Ok(Exchanged { outcome: Outcome::Brought, newest });
                    }
                }
            },
            (Step::Bring, ours, Some(theirs)) => {
                if bring(files, place, copy, ours, theirs, false).await? {
                    return Ok(Exchanged { outcome: Outcome::Brought, newest });
                }
            }
            _ => return Ok(Exchanged { outcome: Outcome::Same, newest }),
        }
    }
    Ok(Exchanged { outcome: Outcome::Waits, newest })
}

/// Has all others get a text after the newest that is known. Gives what all say then; none where somebody was quicker.
pub(super) async fn send(
    files: &Files,
    copy: &Copy,
    newest: Option<&Version>,
    text: &str,
) -> Result<Option<Version>, Trouble> {
    let (reading, content) = (copy.clone(), text.to_owned());
    let names = aside(move || Ok(reading.names(&content))).await?;
    let before = newest.map_or(&[][..], |newest| &newest.places);
    let number = newest.map_or(0, |newest| newest.number) + 1;
    let version = Version { number, content: text.to_owned(), places: places::after(before, &names) };
    let sent = files.write(copy.kind.name(), &version).await?;
    Ok(sent.then_some(version))
}

/// What is here, and what was agreed on.
async fn look(files: &Files, place: &Arc<Place>, copy: &Copy) -> Result<(Option<String>, Option<Agreed>), Trouble> {
    let (place, copy, history) = (place.clone(), copy.clone(), files.history().to_owned());
    aside(move || {
        let agreed = place.read(copy.kind.name(), &history).map_err(|error| error.to_string())?;
        Ok((copy.read()?, agreed))
    })
    .await
}

/// Only what can be used is for others, and only a file that they could change is shared.
async fn check(copy: &Copy, text: String) -> Result<(), Trouble> {
    let copy = copy.clone();
    aside(move || {
        copy.check_writable().map_err(|why| format!("{why}; so it is not shared with other instances"))?;
        copy.check(&text).map_err(|why| format!("what it says stays on this machine until it is mended: {why}"))
    })
    .await
}

/// Writes a text here that was checked elsewhere; says whether nobody had changed the file meanwhile.
async fn bring(
    files: &Files,
    place: &Arc<Place>,
    copy: &Copy,
    ours: Option<String>,
    text: String,
    keeps: bool,
) -> Result<bool, Trouble> {
    let (written, brought) = (copy.clone(), text.clone());
    let done = aside(move || {
        written.check_writable().map_err(|why| format!("{why}; so what other instances share is not used here"))?;
        let of_no_use = |why| format!("what other instances share cannot be used here, and is left alone: {why}");
        written.check(&brought).map_err(of_no_use)?;
        written.write(ours.as_deref(), &brought, keeps)
    });
    let done = done.await?;
    if done {
        agree(files, place, copy, text).await?;
    }
    Ok(done)
}

/// Notes that both say this.
pub(super) async fn agree(files: &Files, place: &Arc<Place>, copy: &Copy, content: String) -> Result<(), Trouble> {
    let (place, name) = (place.clone(), copy.kind.name());
    let agreed = Agreed { history: files.history().to_owned(), content };
    aside(move || place.write(name, &agreed).map_err(|error: io::Error| error.to_string())).await
}

/// Disks take their time, and so does reading a large taxonomy.
async fn aside<T: Send + 'static>(run: impl FnOnce() -> Result<T, String> + Send + 'static) -> Result<T, Trouble> {
    let done = tokio::task::spawn_blocking(run).await;
    done.unwrap_or_else(|error| Err(error.to_string())).map_err(Trouble::File)
}

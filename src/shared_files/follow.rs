//! Sync loop: keeps the local copies and the database in sync while the server runs.

use tokio::time::{MissedTickBehavior, interval};

use super::exchange::{Edits, Exchange, Exchanged, Outcome, Trouble};
use super::own_copy::OwnCopy;
use super::{Kind, SharedFiles};
use crate::changes::{EVERY, Stamp};
use crate::knowledge::store::postgres::Files;
use crate::locked::locked;

/// A full comparison every this many polls, regardless of notifications and file stamps.
const COMPARE: u64 = 60;

/// The result of a sync for one file.
#[derive(Debug)]
pub struct Change {
    pub kind: Kind,
    /// The local file has new content.
    pub brought: bool,
    /// For a taxonomy, the category names by index; empty if there are none.
    pub places: Vec<String>,
}

/// State of one local copy.
#[derive(Debug, Default)]
struct Seen {
    /// Stamp of the file at the last poll.
    last: Option<Stamp>,
    /// Stamp of the file at the last sync.
    exchanged: Option<Stamp>,
    /// Whether another instance may have changed it since.
    due: bool,
    /// The last logged problem, so that it is logged once.
    told: Option<String>,
}

impl SharedFiles {
    /// Runs until the process stops. `changed` is called for each file that was updated from the database, and after
    /// every sync with the current category indices.
    pub async fn follow(self, changed: impl Fn(Change)) {
        let shared = &*self.0;
        if shared.knowledge.when_open().await.is_none() {
            return;
        }
        let Some(store) = shared.knowledge.shared_store() else { return };
        let (files, mut heard) = (store.files(), store.heard());
        let mut known = heard.borrow_and_update().files;
        let mut seen: Vec<Seen> = shared.copies.iter().map(|_| Seen { due: true, ..Seen::default() }).collect();
        let mut looks = interval(EVERY);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        for look in 1_u64.. {
            let is_look = tokio::select! {
                _ = looks.tick() => true,
                changed = heard.changed() => match changed {
                    Ok(()) => false,
                    Err(_) => return,
                },
                () = shared.knowledge.stopping() => return,
            };
            let now = heard.borrow_and_update().files;
            let was_heard = std::mem::replace(&mut known, now) != now;
            for (copy, seen) in shared.copies.iter().zip(&mut seen) {
                seen.due |= was_heard || look.is_multiple_of(COMPARE);
                let stamp = Stamp::of(Some(&copy.path));
                // A recently changed file may be half written. It is synced once it is unchanged between two polls.
                let edits = match is_look && stamp == seen.last && copy.is_watched {
                    true => Edits::Count,
                    false => Edits::Wait,
                };
                if is_look {
                    seen.last = stamp;
                }
                if seen.due || stamp != seen.exchanged {
                    self.look(&files, copy, seen, stamp, edits, &changed).await;
                }
            }
            let troubles = shared.copies.iter().zip(&seen);
            let troubles = troubles.filter_map(|(copy, seen)| Some((copy.path.display(), seen.told.as_ref()?)));
            let troubles: Vec<_> = troubles.map(|(path, told)| format!("`{path}`: {told}")).collect();
            *locked(&shared.trouble) = (!troubles.is_empty()).then(|| troubles.join("; "));
        }
    }

    async fn look(
        &self,
        files: &Files,
        copy: &OwnCopy,
        seen: &mut Seen,
        stamp: Option<Stamp>,
        edits: Edits,
        changed: &impl Fn(Change),
    ) {
        let notes = self.0.notes.clone();
        let outcome = match notes.hold() {
            Ok(Some(_held)) => {
                let exchange = Exchange { files: files.clone(), notes, copy: copy.clone() };
                exchange.run(edits).await.map(|Exchanged { outcome, newest }| {
                    let places = newest.map(|newest| newest.places).unwrap_or_default();
                    changed(Change { kind: copy.kind, brought: outcome == Outcome::Brought, places });
                    outcome
                })
            }
            // Another local process holds the lock; the next poll is soon.
            Ok(None) => return,
            Err(why) => Err(Trouble::File(why)),
        };
        let path = copy.path.display();
        match &outcome {
            Ok(Outcome::Brought) => tracing::info!(%path, "was changed on another instance, and is the same here now"),
            Ok(Outcome::Sent) => tracing::info!(%path, "was changed here, and other instances follow"),
            Ok(Outcome::Same | Outcome::Waits) => {}
            // An unavailable database is reported elsewhere.
            Err(Trouble::Store(error)) if error.passes() => {
                tracing::debug!(%path, %error, "cannot be compared with others");
            }
            Err(trouble) => {
                let why = trouble.to_string();
                if seen.told.as_ref() != Some(&why) {
                    tracing::warn!(%path, "is not shared: {why}");
                    seen.told = Some(why);
                }
            }
        }
        match outcome {
            Ok(Outcome::Waits) if copy.is_watched => {}
            Err(Trouble::Store(error)) if error.passes() => {}
            done => {
                (seen.due, seen.exchanged) = (false, stamp);
                if done.is_ok() {
                    seen.told = None;
                }
            }
        }
    }
}

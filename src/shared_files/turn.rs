//! The turn of somebody who changes a shared file: others see the change, or it is not made.

use std::sync::Arc;

use super::agreed::{Held, Place};
use super::copy::{Copy, Kind};
use super::exchange::{Outcome, agree, exchange, send};
use super::{SharedFiles, hold};
use crate::knowledge::store::postgres::{Files, Version};

/// The copy here says what all say, and nobody else on this machine changes it meanwhile.
#[derive(Debug)]
pub struct Turn {
    files: Files,
    place: Arc<Place>,
    copy: Copy,
    /// What all say.
    newest: Option<Version>,
    _held: Held,
}

impl SharedFiles {
    /// Waits for the turn to change a file, and brings what others have made of it. Says why there is none: most often the
    /// database is away.
    pub async fn turn(&self, kind: Kind) -> Result<Turn, String> {
        let shared = &*self.0;
        let copy = shared.copies.iter().find(|copy| copy.kind == kind).ok_or("the settings name no such file")?;
        let Some(store) = shared.knowledge.shared_store() else {
            return Err(match shared.knowledge.failure() {
                Some(error) => error.to_string(),
                None => "the database is not open yet; try again in a moment".to_owned(),
            });
        };
        let files = store.files();
        let held = hold(&shared.place).await?;
        // What the copy was compared with, and nothing newer: whoever changes it has seen no more than that.
        let exchanged = exchange(&files, &shared.place, copy, true).await.map_err(|trouble| trouble.to_string())?;
        let newest = match exchanged.outcome {
            Outcome::Waits => return Err("others change it all the time; try again in a moment".to_owned()),
            Outcome::Same | Outcome::Brought | Outcome::Sent => exchanged.newest,
        };
        Ok(Turn { files, place: shared.place.clone(), copy: copy.clone(), newest, _held: held })
    }
}

impl Turn {
    /// Has all others get this text. Gives the places of its categories; none where somebody was quicker.
    pub async fn send(&self, text: &str) -> Result<Option<Vec<String>>, String> {
        let sent = send(&self.files, &self.copy, self.newest.as_ref(), text).await;
        sent.map(|sent| sent.map(|version| version.places)).map_err(|trouble| trouble.to_string())
    }

    /// Notes that the copy here says the same by now.
    pub async fn end(self, text: String) {
        // What is not noted is found out with the next look.
        if let Err(error) = agree(&self.files, &self.place, &self.copy, text).await {
            tracing::debug!(%error, "what was agreed on cannot be noted");
        }
    }
}

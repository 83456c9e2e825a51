//! Edit lock of a shared file: a change is either published to all instances or not made.

use super::exchange::{Edits, Exchange, Outcome, Trouble};
use super::notes::Held;
use super::own_copy::Kind;
use super::{SharedFiles, hold};
use crate::knowledge::store::postgres::Version;

/// While this is held, the local copy equals the shared version (unless that is invalid), and no other local process
/// changes it.
#[derive(Debug)]
pub struct Turn {
    exchange: Exchange,
    /// The newest shared version.
    newest: Option<Version>,
    _held: Held,
}

/// Why the lock was not acquired.
#[derive(Debug, thiserror::Error)]
pub enum NoTurn {
    /// Usually the database is unavailable.
    #[error("{0}")]
    Away(String),
    #[error("{0}")]
    Unwritable(String),
}

impl SharedFiles {
    /// Acquires the edit lock and syncs the local copy.
    pub async fn turn(&self, kind: Kind) -> Result<Turn, NoTurn> {
        let shared = &*self.0;
        let copy = shared.copies.iter().find(|copy| copy.kind == kind);
        let copy = copy.ok_or_else(|| NoTurn::Unwritable("the settings name no such file".to_owned()))?;
        let Some(store) = shared.knowledge.shared_store() else {
            return Err(NoTurn::Away(match shared.knowledge.failure() {
                Some(error) => error.to_string(),
                None => "the database is not open yet; try again in a moment".to_owned(),
            }));
        };
        let held = hold(&shared.notes).await.map_err(NoTurn::Away)?;
        let exchange = Exchange { files: store.files(), notes: shared.notes.clone(), copy: copy.clone() };
        // The version that the local copy was compared with, not a newer one: the editor is based on that version.
        let newest = match exchange.run(Edits::Count).await {
            Ok(exchanged) if exchanged.outcome == Outcome::Waits => {
                return Err(NoTurn::Away("others change it all the time; try again in a moment".to_owned()));
            }
            Ok(exchanged) => exchanged.newest,
            // A new text can correct it.
            Err(Trouble::Mistaken { newest, .. }) => newest,
            Err(trouble @ Trouble::Unwritable(_)) => return Err(NoTurn::Unwritable(trouble.to_string())),
            Err(trouble) => return Err(NoTurn::Away(trouble.to_string())),
        };
        Ok(Turn { exchange, newest, _held: held })
    }
}

impl Turn {
    /// Publishes a text to all instances. Returns `None` if another instance published first. On an error the outcome
    /// is in doubt.
    pub async fn send(&self, text: &str) -> Result<Option<Version>, String> {
        let sent = self.exchange.send(self.newest.as_ref(), None, text.to_owned()).await;
        sent.map_err(|trouble| trouble.to_string())
    }

    /// Records that the local copy has this version.
    pub async fn end(self, version: &Version) {
        // If this fails, the next sync detects it.
        if let Err(error) = self.exchange.agree(version).await {
            tracing::debug!(%error, "what was agreed on cannot be noted");
        }
    }
}

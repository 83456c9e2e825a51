//! The turn of somebody who changes a shared file: others see the change, or it is not made.

use super::exchange::{Edits, Exchange, Outcome, Trouble};
use super::notes::Held;
use super::own_copy::Kind;
use super::{SharedFiles, hold};
use crate::knowledge::store::postgres::Version;

/// The copy here says what all say, as far as it can be used, and nobody else on this machine changes it meanwhile.
#[derive(Debug)]
pub struct Turn {
    exchange: Exchange,
    /// What all say.
    newest: Option<Version>,
    _held: Held,
}

/// Why nobody can change a file now.
#[derive(Debug, thiserror::Error)]
pub enum NoTurn {
    /// Most often the database is away.
    #[error("{0}")]
    Away(String),
    #[error("{0}")]
    Unwritable(String),
}

impl SharedFiles {
    /// Waits for the turn to change a file, and brings what others have made of it.
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
        // What the copy was compared with, and nothing newer: whoever changes it has seen no more than that.
        let newest = match exchange.run(Edits::Count).await {
            Ok(exchanged) if exchanged.outcome == Outcome::Waits => {
                return Err(NoTurn::Away("others change it all the time; try again in a moment".to_owned()));
            }
            Ok(exchanged) => exchanged.newest,
            // It can be mended by another text.
            Err(Trouble::Mistaken { newest, .. }) => newest,
            Err(trouble @ Trouble::Unwritable(_)) => return Err(NoTurn::Unwritable(trouble.to_string())),
            Err(trouble) => return Err(NoTurn::Away(trouble.to_string())),
        };
        Ok(Turn { exchange, newest, _held: held })
    }
}

impl Turn {
    /// Has all others get this text; none where somebody was quicker. Where that fails it may have been done.
    pub async fn send(&self, text: &str) -> Result<Option<Version>, String> {
        let sent = self.exchange.send(self.newest.as_ref(), None, text.to_owned()).await;
        sent.map_err(|trouble| trouble.to_string())
    }

    /// Notes that the copy here says the same by now.
    pub async fn end(self, version: &Version) {
        // What is not noted is found out with the next look.
        if let Err(error) = self.exchange.agree(version).await {
            tracing::debug!(%error, "what was agreed on cannot be noted");
        }
    }
}

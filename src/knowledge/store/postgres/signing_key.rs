//! Signing key that all instances share, so that each instance accepts the signatures of every other.

use corbie_mcp::StateKey;

use super::session::Session;
use super::{Store, rows};
use crate::knowledge::store::Error;

impl Store {
    /// The key for state that clients hold between two calls, which different instances may serve.
    pub fn state_key(&self) -> StateKey {
        self.0.state_key.clone()
    }
}

/// Reads the key; the first instance to start creates it.
pub(super) async fn state_key(session: &Session) -> Result<StateKey, Error> {
    let mut new = [0_u8; 32];
    getrandom::fill(&mut new).map_err(|error| Error::Internal(error.to_string()))?;
    let make = "INSERT INTO meta (name, value) VALUES ('state_key', encode($1, 'hex')) ON CONFLICT (name) DO NOTHING";
    session.execute(make, &[&new.as_slice()]).await?;
    let row = session.row("SELECT decode(value, 'hex') FROM meta WHERE name = 'state_key'", &[]).await?;
    Ok(StateKey::from_secret(rows::get(&row, 0)?))
}

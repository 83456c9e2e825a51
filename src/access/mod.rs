//! Authentication: the trust level per listener, API tokens, and OAuth access tokens.
//!
//! [`TokenFile`] stores the digests of API tokens, [`oauth`] verifies tokens of an authorization server, [`Callers`]
//! maps a token to its caller, and [`crate::reload`] reloads settings and tokens while the server runs.

mod callers;
mod merged_tokens;
pub mod oauth;
mod token;
mod token_file;

use std::sync::{Arc, Mutex};

use corbie_mcp::transport::{Auth, Authority};
use corbie_mcp::{Standing, TrustLevel};

pub use callers::{Callers, Changed, Known};
pub use merged_tokens::{FirstSeen, Stated, merged};
pub use token::{NewToken, TokenName, TokenRecord};
pub use token_file::{TokenFile, TokenFileError};

use oauth::OAuth;

use crate::config::Config;
use crate::config::server::Authentication;
use crate::config::trust::Via;
use crate::locked::locked;
use crate::providers::client::Client;

/// Trust state of all callers. Updated in place when the settings change, so that open connections see it.
#[derive(Debug, Clone)]
pub struct Access {
    pub stdio: Standing,
    pub loopback: Standing,
    pub remote: Standing,
    pub callers: Arc<Callers>,
    /// The tokens that were last loaded. They stay active if a new file is invalid.
    records: Arc<Mutex<Vec<TokenRecord>>>,
}

impl Access {
    /// `client` fetches the JWKS of the authorization server, if one is configured.
    pub fn new(config: &Config, client: &Client) -> Result<Access, TokenFileError> {
        let records = records(config)?;
        let others = config.server.oauth.as_ref().map(|settings| -> Arc<dyn Authority> {
            let overriding = config.trust.all.map(TrustLevel::from);
            Arc::new(OAuth::new(settings, &config.server.name, overriding, client.clone()))
        });
        let standing = |via| Standing::new(Some(level(config, via)));
        Ok(Access {
            stdio: standing(Via::Stdio),
            loopback: standing(Via::Loopback),
            remote: standing(Via::Remote),
            callers: Arc::new(Callers::new(known(config, &records), others)),
            records: Arc::new(Mutex::new(records)),
        })
    }

    /// Applies the current settings and token file. An invalid token file does not prevent the other changes.
    pub fn apply(&self, config: &Config) -> Result<Changed, TokenFileError> {
        for (standing, via) in [(&self.stdio, Via::Stdio), (&self.loopback, Via::Loopback), (&self.remote, Via::Remote)]
        {
            standing.set(Some(level(config, via)));
        }
        let mut kept = locked(&self.records);
        let read = records(config).map(|records| *kept = records);
        let changed = self.callers.replace(known(config, &kept));
        read.map(|()| changed)
    }

    /// The authentication that a listener requires.
    pub fn auth(&self, authentication: Authentication) -> Auth {
        match authentication {
            Authentication::None => Auth::None,
            Authentication::Bearer => Auth::Ask(self.callers.clone()),
        }
    }
}

fn level(config: &Config, via: Via) -> TrustLevel {
    config.trust.level(via).into()
}

fn records(config: &Config) -> Result<Vec<TokenRecord>, TokenFileError> {
    config.tokens_file().map_or(Ok(Vec::new()), |path| TokenFile::at(path).read())
}

fn known<'a>(config: &'a Config, records: &'a [TokenRecord]) -> Known<'a> {
    Known {
        operator: config.server.token.as_ref(),
        operator_trust: config.trust.token.map(Into::into),
        records,
        all: config.trust.all.map(Into::into),
    }
}

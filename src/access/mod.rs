//! Who may call: how everybody stands by the way they come, and the tokens that the operator hands out.
//!
//! [`TokenFile`] keeps the digests of tokens, [`oauth`] knows those of an authorization server, [`Callers`] tells who holds one, and [`crate::reload`] reads both again
//! while the server runs.

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

/// How everybody stands. Changed in place when the settings are, so that connections that are open notice.
#[derive(Debug, Clone)]
pub struct Access {
    pub stdio: Standing,
    pub loopback: Standing,
    pub remote: Standing,
    pub callers: Arc<Callers>,
    /// The tokens as they were last read: they stay where a new file cannot be.
    records: Arc<Mutex<Vec<TokenRecord>>>,
}

impl Access {
    /// `client` fetches the keys of an authorization server, where the settings name one.
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

    /// Takes over what the settings and the file of tokens say now. A file that cannot be read keeps nothing else back.
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

    /// What a listener asks of its callers.
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

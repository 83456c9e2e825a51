//! Who may call: how everybody stands by the way they come, and the tokens that the operator hands out.
//!
//! [`TokenFile`] keeps the digests of tokens, [`oauth`] knows those of an authorization server, [`Callers`] tells who holds one, and [`crate::reload`] reads both again
//! while the server runs.

mod callers;
pub mod oauth;
mod token;
mod token_file;

use std::sync::Arc;

use corbie_mcp::transport::{Auth, Authority};
use corbie_mcp::{Standing, TrustLevel};

pub use callers::{Callers, Changed, Known};
pub use token::{NewToken, TokenName, TokenRecord};
pub use token_file::{TokenFile, TokenFileError};

use oauth::OAuth;

use crate::config::Config;
use crate::config::server::Authentication;
use crate::config::trust::Via;
use crate::providers::client::Client;

/// How everybody stands. Changed in place when the settings are, so that connections that are open notice.
#[derive(Debug, Clone)]
pub struct Access {
    pub stdio: Standing,
    pub loopback: Standing,
    pub remote: Standing,
    pub callers: Arc<Callers>,
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
        })
    }

    /// Takes over what the settings and the file of tokens say now.
    pub fn apply(&self, config: &Config) -> Result<Changed, TokenFileError> {
        let records = records(config)?;
        for (standing, via) in [(&self.stdio, Via::Stdio), (&self.loopback, Via::Loopback), (&self.remote, Via::Remote)]
        {
            standing.set(Some(level(config, via)));
        }
        Ok(self.callers.replace(known(config, &records)))
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

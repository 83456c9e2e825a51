//! Authentication: the trust level per listener, API tokens, and OAuth access tokens.
//!
//! [`TokenFile`] stores the digests of API tokens, [`oauth`] verifies tokens of an authorization server, [`Authenticator`]
//! maps a token to its caller, and `reload` reloads settings and tokens while the server runs.

mod authenticator;
pub mod oauth;
mod token;
mod token_file;
mod token_merge;

use std::sync::{Arc, Mutex};

use corbie_mcp::transport::{Auth, TokenVerifier};
use corbie_mcp::{TrustLevel, TrustState};

pub use authenticator::{Authenticator, TokenChanges, TokenSources};
pub use token::{NewToken, TokenName, TokenRecord};
pub use token_file::{TokenFile, TokenFileError};
pub use token_merge::{FileRevision, FirstVersions, merge_tokens};

use oauth::OAuth;

use crate::config::Config;
use crate::config::server::Authentication;
use crate::config::trust::Via;
use crate::providers::http_client::HttpClient;
use crate::util::lock::lock;

/// Trust state of all callers. Updated in place when the settings change, so that open connections see it.
#[derive(Debug, Clone)]
pub struct Access {
    pub stdio: TrustState,
    pub loopback: TrustState,
    pub remote: TrustState,
    pub callers: Arc<Authenticator>,
    /// The tokens that were last loaded. They stay active if a new file is invalid.
    records: Arc<Mutex<Vec<TokenRecord>>>,
}

impl Access {
    /// `client` fetches the JWKS of the authorization server, if one is configured.
    pub fn new(config: &Config, client: &HttpClient) -> Result<Access, TokenFileError> {
        let records = records(config)?;
        let others = config.server.oauth.as_ref().map(|settings| -> Arc<dyn TokenVerifier> {
            let overriding = config.trust.all.map(TrustLevel::from);
            Arc::new(OAuth::new(settings, &config.server.name, overriding, client.clone()))
        });
        let standing = |via| TrustState::new(Some(level(config, via)));
        Ok(Access {
            stdio: standing(Via::Stdio),
            loopback: standing(Via::Loopback),
            remote: standing(Via::Remote),
            callers: Arc::new(Authenticator::new(token_sources(config, &records), others)),
            records: Arc::new(Mutex::new(records)),
        })
    }

    /// Applies the current settings and token file. An invalid token file does not prevent the other changes.
    pub fn apply(&self, config: &Config) -> Result<TokenChanges, TokenFileError> {
        for (standing, via) in [(&self.stdio, Via::Stdio), (&self.loopback, Via::Loopback), (&self.remote, Via::Remote)]
        {
            standing.set(Some(level(config, via)));
        }
        let mut kept = lock(&self.records);
        let read = records(config).map(|records| *kept = records);
        let changed = self.callers.replace(token_sources(config, &kept));
        read.map(|()| changed)
    }

    /// The authentication that a listener requires.
    pub fn auth(&self, authentication: Authentication) -> Auth {
        match authentication {
            Authentication::None => Auth::None,
            Authentication::Bearer => Auth::Required(self.callers.clone()),
        }
    }
}

fn level(config: &Config, via: Via) -> TrustLevel {
    config.trust.level(via).into()
}

fn records(config: &Config) -> Result<Vec<TokenRecord>, TokenFileError> {
    config.tokens_file().map_or(Ok(Vec::new()), |path| TokenFile::new(path).read())
}

fn token_sources<'a>(config: &'a Config, records: &'a [TokenRecord]) -> TokenSources<'a> {
    TokenSources {
        operator: config.server.token.as_ref(),
        operator_trust: config.trust.token.map(Into::into),
        records,
        trust_override: config.trust.all.map(Into::into),
    }
}

//! OAuth 2.1 resource server: verifies access tokens of an authorization server (RFC 6750, RFC 9068) and publishes
//! where to obtain them (RFC 9728).
//!
//! Tokens are JWTs, verified with the keys of the issuer's JWKS. Both the keys and the verified tokens are cached.

mod identity;
mod keeper;
mod keys;
mod metadata;
mod remembered;
mod source;
mod token;
mod verifier;

use std::sync::Arc;

use corbie_mcp::transport::{Authority, Holder, Verdict};
use corbie_mcp::{Standing, TrustLevel};
use futures_util::future::BoxFuture;
use sha2::{Digest, Sha256};

use crate::config;
use crate::providers::client::Client;
use keeper::{Keeper, Known};
use keys::Found;
use remembered::Remembered;
use source::Source;
use token::Rules;

/// Verifies the tokens of one authorization server.
#[derive(Debug)]
pub struct OAuth {
    settings: config::oauth::OAuth,
    scopes: Vec<(String, TrustLevel)>,
    /// Trust level of all callers, regardless of their scopes.
    overriding: Option<TrustLevel>,
    rules: Rules,
    keeper: Keeper,
    remembered: Arc<Remembered>,
    challenge: String,
    document: Arc<str>,
}

/// Result of verifying a token with the cached keys.
enum Judged {
    Known(Holder),
    Refused(&'static str),
    /// A refresh of the keys may help. If not, this is the reason for the rejection.
    NeedsKeys(&'static str),
}

const NO_KEYS: &str = "the token cannot be checked now, as the keys of its issuer cannot be fetched; try again later";

impl OAuth {
    /// `name` is the server name in the metadata; `overriding` is the trust level of all callers, if the operator set
    /// one. Keys are not fetched before the first token arrives.
    pub fn new(settings: &config::oauth::OAuth, name: &str, overriding: Option<TrustLevel>, client: Client) -> OAuth {
        verifier::use_ring();
        let scopes: Vec<_> = settings.scopes.iter().map(|(scope, level)| (scope.clone(), (*level).into())).collect();
        let remembered = Arc::new(Remembered::new());
        let source = Arc::new(Source::new(settings, client));
        let fetch = move || -> BoxFuture<'static, _> {
            let source = source.clone();
            Box::pin(async move { source.fetch().await })
        };
        let follower = remembered.clone();
        OAuth {
            rules: Rules::new(settings, scopes.clone()),
            keeper: Keeper::new(fetch, move |keys| follower.follow(keys)),
            remembered,
            challenge: metadata::challenge(settings, settings.scopes.keys().map(String::as_str)),
            document: metadata::document(settings, name).into(),
            settings: settings.clone(),
            scopes,
            overriding,
        }
    }

    fn judge(&self, token: &str, known: &Known) -> Judged {
        if token.len() > token::LONGEST {
            return Judged::Refused(token::TOO_LONG);
        }
        let digest: [u8; 32] = Sha256::digest(token).into();
        let keys = known.keys();
        if let Some(holder) = keys.and_then(|keys| self.remembered.holder(&digest, keys)) {
            return Judged::Known(holder);
        }
        let claimed = match self.rules.claimed(token) {
            Ok(claimed) => claimed,
            Err(why) => return Judged::Refused(why),
        };
        let Some(keys) = keys else { return Judged::NeedsKeys(NO_KEYS) };
        let key = match keys.find(claimed.key.as_deref(), claimed.algorithm) {
            Found::Key(key) => key,
            Found::Unfit => return Judged::Refused(token::UNFIT_KEY),
            Found::Unknown => return Judged::NeedsKeys(token::UNKNOWN_KEY),
        };
        match self.rules.accept(token, &claimed, key) {
            Err(why) => Judged::Refused(why),
            Ok(accepted) => {
                let trust = self.overriding.unwrap_or(accepted.trust);
                let standing = Standing::until(Some(trust), Some(accepted.until));
                let holder = Holder { identity: accepted.identity.into(), standing, grant: None, rate_limit: None };
                Judged::Known(self.remembered.keep(digest, holder, key.print))
            }
        }
    }
}

/// A token that cannot be verified now is not rejected as invalid, because its client would discard it.
fn without_keys(why: &'static str) -> Verdict {
    if why == NO_KEYS { Verdict::Later(why) } else { Verdict::Refused(why) }
}

impl Authority for OAuth {
    fn look(&self, token: &str) -> Verdict {
        let known = self.keeper.known();
        match self.judge(token, &known) {
            Judged::Known(holder) => Verdict::Known(holder),
            Judged::Refused(why) => Verdict::Refused(why),
            Judged::NeedsKeys(_) if known.may_wish() => Verdict::Unsure,
            Judged::NeedsKeys(why) => without_keys(why),
        }
    }

    fn find_out<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Verdict> {
        Box::pin(async move {
            let mut known = self.keeper.known();
            let mut judged = self.judge(token, &known);
            if let Judged::NeedsKeys(_) = judged {
                self.keeper.others(&known).await;
                known = self.keeper.known();
                judged = self.judge(token, &known);
            }
            match judged {
                Judged::Known(holder) => Verdict::Known(holder),
                Judged::Refused(why) => Verdict::Refused(why),
                Judged::NeedsKeys(why) => without_keys(why),
            }
        })
    }

    fn challenge(&self) -> Option<String> {
        Some(self.challenge.clone())
    }

    fn insufficient(&self, holder: &Holder) -> Option<String> {
        let has = holder.standing.now(TrustLevel::Untrusted)?;
        let wanted = metadata::above(&self.scopes, has);
        let is_ours = holder.identity.starts_with("oauth:");
        (is_ours && !wanted.is_empty()).then(|| metadata::challenge(&self.settings, wanted.into_iter()))
    }

    fn resource_metadata(&self) -> Option<Arc<str>> {
        Some(self.document.clone())
    }
}

//! OAuth 2.1 resource server: verifies access tokens of an authorization server (RFC 6750, RFC 9068) and publishes
//! where to obtain them (RFC 9728).
//!
//! Tokens are JWTs, verified with the keys of the issuer's JWKS. Both the keys and the verified tokens are cached.

mod identity;
mod jwks;
mod jwks_cache;
mod jwks_fetch;
mod jwt;
mod resource_metadata;
mod ring_crypto;
mod token_cache;

use std::sync::Arc;

use corbie_mcp::transport::{TokenHolder, TokenVerdict, TokenVerifier};
use corbie_mcp::{TrustLevel, TrustState};
use futures_util::future::BoxFuture;
use sha2::{Digest, Sha256};

use crate::config;
use crate::providers::http_client::HttpClient;
use jwks::KeyLookup;
use jwks_cache::{JwksCache, JwksState};
use jwks_fetch::JwksFetcher;
use jwt::JwtValidator;
use token_cache::TokenCache;

/// Verifies the tokens of one authorization server.
#[derive(Debug)]
pub struct OAuth {
    settings: config::oauth::OAuth,
    scopes: Vec<(String, TrustLevel)>,
    /// Trust level of all callers, regardless of their scopes.
    trust_override: Option<TrustLevel>,
    validator: JwtValidator,
    jwks: JwksCache,
    token_cache: Arc<TokenCache>,
    challenge: String,
    document: Arc<str>,
}

/// Result of verifying a token with the cached keys.
enum TokenCheck {
    Valid(TokenHolder),
    Invalid(&'static str),
    /// A refresh of the keys may help. If not, this is the reason for the rejection.
    NeedsKeys(&'static str),
}

const KEYS_UNAVAILABLE: &str =
    "the token cannot be checked now, as the keys of its issuer cannot be fetched; try again later";

impl OAuth {
    /// `name` is the server name in the metadata; `overriding` is the trust level of all callers, if the operator set
    /// one. Keys are not fetched before the first token arrives.
    pub fn new(
        settings: &config::oauth::OAuth,
        name: &str,
        overriding: Option<TrustLevel>,
        client: HttpClient,
    ) -> OAuth {
        ring_crypto::install_ring_provider();
        let scopes: Vec<_> = settings.scopes.iter().map(|(scope, level)| (scope.clone(), (*level).into())).collect();
        let remembered = Arc::new(TokenCache::new());
        let source = Arc::new(JwksFetcher::new(settings, client));
        let fetch = move || -> BoxFuture<'static, _> {
            let source = source.clone();
            Box::pin(async move { source.fetch().await })
        };
        let follower = remembered.clone();
        OAuth {
            validator: JwtValidator::new(settings, scopes.clone()),
            jwks: JwksCache::new(fetch, move |keys| follower.revoke_removed_keys(keys)),
            token_cache: remembered,
            challenge: resource_metadata::challenge(settings, settings.scopes.keys().map(String::as_str)),
            document: resource_metadata::document(settings, name).into(),
            settings: settings.clone(),
            scopes,
            trust_override: overriding,
        }
    }

    fn check_token(&self, token: &str, known: &JwksState) -> TokenCheck {
        if token.len() > jwt::MAX_TOKEN_BYTES {
            return TokenCheck::Invalid(jwt::TOO_LONG);
        }
        let digest: [u8; 32] = Sha256::digest(token).into();
        let keys = known.keys();
        if let Some(holder) = keys.and_then(|keys| self.token_cache.holder(&digest, keys)) {
            return TokenCheck::Valid(holder);
        }
        let claimed = match self.validator.parse_header(token) {
            Ok(claimed) => claimed,
            Err(why) => return TokenCheck::Invalid(why),
        };
        let Some(keys) = keys else { return TokenCheck::NeedsKeys(KEYS_UNAVAILABLE) };
        let key = match keys.find(claimed.key.as_deref(), claimed.algorithm) {
            KeyLookup::Key(key) => key,
            KeyLookup::WrongUse => return TokenCheck::Invalid(jwt::WRONG_KEY_USE),
            KeyLookup::Unknown => return TokenCheck::NeedsKeys(jwt::UNKNOWN_KEY),
        };
        match self.validator.verify(token, &claimed, key) {
            Err(why) => TokenCheck::Invalid(why),
            Ok(accepted) => {
                let trust = self.trust_override.unwrap_or(accepted.trust);
                let standing = TrustState::with_expiry(Some(trust), Some(accepted.until));
                let holder = TokenHolder {
                    identity: accepted.identity.into(),
                    trust: standing,
                    permissions: None,
                    rate_limit: None,
                };
                TokenCheck::Valid(self.token_cache.insert(digest, holder, key.fingerprint))
            }
        }
    }
}

/// A token that cannot be verified now is not rejected as invalid, because its client would discard it.
fn refusal_without_keys(why: &'static str) -> TokenVerdict {
    if why == KEYS_UNAVAILABLE { TokenVerdict::Unavailable(why) } else { TokenVerdict::Invalid(why) }
}

impl TokenVerifier for OAuth {
    fn verify_now(&self, token: &str) -> TokenVerdict {
        let known = self.jwks.state();
        match self.check_token(token, &known) {
            TokenCheck::Valid(holder) => TokenVerdict::Valid(holder),
            TokenCheck::Invalid(why) => TokenVerdict::Invalid(why),
            TokenCheck::NeedsKeys(_) if known.may_refresh() => TokenVerdict::Pending,
            TokenCheck::NeedsKeys(why) => refusal_without_keys(why),
        }
    }

    fn verify<'a>(&'a self, token: &'a str) -> BoxFuture<'a, TokenVerdict> {
        Box::pin(async move {
            let mut known = self.jwks.state();
            let mut judged = self.check_token(token, &known);
            if let TokenCheck::NeedsKeys(_) = judged {
                self.jwks.refreshed(&known).await;
                known = self.jwks.state();
                judged = self.check_token(token, &known);
            }
            match judged {
                TokenCheck::Valid(holder) => TokenVerdict::Valid(holder),
                TokenCheck::Invalid(why) => TokenVerdict::Invalid(why),
                TokenCheck::NeedsKeys(why) => refusal_without_keys(why),
            }
        })
    }

    fn challenge(&self) -> Option<String> {
        Some(self.challenge.clone())
    }

    fn insufficient_scope(&self, holder: &TokenHolder) -> Option<String> {
        let has = holder.trust.current(TrustLevel::Untrusted)?;
        let wanted = resource_metadata::next_level_scopes(&self.scopes, has);
        let is_ours = holder.identity.starts_with("oauth:");
        (is_ours && !wanted.is_empty()).then(|| resource_metadata::challenge(&self.settings, wanted.into_iter()))
    }

    fn resource_metadata(&self) -> Option<Arc<str>> {
        Some(self.document.clone())
    }
}

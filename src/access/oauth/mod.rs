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
use jwks::{KeyLookup, VerificationKey};
use jwks_cache::{JwksCache, JwksState};
use jwks_fetch::JwksFetcher;
use jwt::{JwtValidator, UnverifiedHeader};
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

/// Result of looking up a token and its key, without a signature check.
enum TokenLookup<'k> {
    /// The signature was checked before.
    Cached(TokenHolder),
    Invalid(&'static str),
    /// A refresh of the keys may help. If not, this is the reason for the rejection.
    NeedsKeys(&'static str),
    Unverified(UnverifiedToken<'k>),
}

/// A token whose signature is to be checked.
struct UnverifiedToken<'k> {
    digest: [u8; 32],
    header: UnverifiedHeader,
    key: &'k VerificationKey,
}

const KEYS_UNAVAILABLE: &str = "cannot verify the token, because the issuer's keys are unavailable; try again later";

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

    fn lookup<'k>(&self, token: &str, known: &'k JwksState) -> TokenLookup<'k> {
        if token.len() > jwt::MAX_TOKEN_BYTES {
            return TokenLookup::Invalid(jwt::TOO_LONG);
        }
        let digest: [u8; 32] = Sha256::digest(token).into();
        let keys = known.keys();
        if let Some(holder) = keys.and_then(|keys| self.token_cache.holder(&digest, keys)) {
            return TokenLookup::Cached(holder);
        }
        let header = match self.validator.parse_header(token) {
            Ok(header) => header,
            Err(why) => return TokenLookup::Invalid(why),
        };
        let Some(keys) = keys else { return TokenLookup::NeedsKeys(KEYS_UNAVAILABLE) };
        match keys.find(header.key.as_deref(), header.algorithm) {
            KeyLookup::Key(key) => TokenLookup::Unverified(UnverifiedToken { digest, header, key }),
            KeyLookup::WrongUse => TokenLookup::Invalid(jwt::WRONG_KEY_USE),
            KeyLookup::Unknown => TokenLookup::NeedsKeys(jwt::UNKNOWN_KEY),
        }
    }

    fn verdict(&self, token: &str, found: TokenLookup<'_>) -> TokenVerdict {
        match found {
            TokenLookup::Cached(holder) => TokenVerdict::Valid(holder),
            TokenLookup::Invalid(why) => TokenVerdict::Invalid(why),
            TokenLookup::NeedsKeys(why) => refusal_without_keys(why),
            TokenLookup::Unverified(unverified) => self.check_signature(token, unverified),
        }
    }

    /// Checks the signature and the claims of a token, and caches it if it is valid.
    fn check_signature(&self, token: &str, unverified: UnverifiedToken<'_>) -> TokenVerdict {
        let UnverifiedToken { digest, header, key } = unverified;
        match self.validator.verify(token, &header, key) {
            Err(why) => TokenVerdict::Invalid(why),
            Ok(accepted) => {
                let trust = self.trust_override.unwrap_or(accepted.trust);
                let standing = TrustState::with_expiry(Some(trust), Some(accepted.until));
                let holder = TokenHolder {
                    identity: accepted.identity.into(),
                    trust: standing,
                    permissions: None,
                    rate_limit: None,
                    is_operator: false,
                };
                TokenVerdict::Valid(self.token_cache.insert(digest, holder, key.fingerprint))
            }
        }
    }
}

/// A token that cannot be verified now is not rejected as invalid, because its client would discard it.
fn refusal_without_keys(why: &'static str) -> TokenVerdict {
    if why == KEYS_UNAVAILABLE { TokenVerdict::Unavailable(why) } else { TokenVerdict::Invalid(why) }
}

impl TokenVerifier for OAuth {
    /// A token that is not cached is pending: the caller limits the number of signature checks.
    fn verify_now(&self, token: &str) -> TokenVerdict {
        let known = self.jwks.state();
        match self.lookup(token, &known) {
            TokenLookup::Unverified(_) => TokenVerdict::Pending,
            TokenLookup::NeedsKeys(_) if known.may_refresh() => TokenVerdict::Pending,
            found => self.verdict(token, found),
        }
    }

    fn verify<'a>(&'a self, token: &'a str) -> BoxFuture<'a, TokenVerdict> {
        Box::pin(async move {
            let before = self.jwks.state();
            match self.lookup(token, &before) {
                TokenLookup::NeedsKeys(_) => {}
                found => return self.verdict(token, found),
            }
            self.jwks.refreshed(&before).await;
            let known = self.jwks.state();
            self.verdict(token, self.lookup(token, &known))
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use base64::Engine;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use jwks_fetch::FetchedKeys;
    use ring::signature::{Ed25519KeyPair, KeyPair};
    use serde_json::json;

    use super::jwks::JwkSet;
    use super::*;

    const ISSUER: &str = "https://issuer.example";
    const RESOURCE: &str = "https://mcp.example/mcp";

    fn encode(bytes: &[u8]) -> String {
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// A signed token of a subject.
    fn token(key: &Ed25519KeyPair, subject: &str) -> String {
        let head = json!({ "alg": "EdDSA", "typ": "at+jwt", "kid": "one" }).to_string();
        let claims =
            json!({ "iss": ISSUER, "aud": RESOURCE, "sub": subject, "client_id": "app", "exp": 4_102_444_800_u64 });
        let message = format!("{}.{}", encode(head.as_bytes()), encode(claims.to_string().as_bytes()));
        format!("{message}.{}", encode(key.sign(message.as_bytes()).as_ref()))
    }

    /// A verifier whose issuer publishes this key.
    fn oauth(key: &Ed25519KeyPair) -> OAuth {
        let settings = serde_json::from_value(json!({ "issuer": ISSUER, "resource": RESOURCE })).unwrap();
        let published = json!({ "keys": [{
            "kty": "OKP", "crv": "Ed25519", "kid": "one", "x": encode(key.public_key().as_ref()),
        }] });
        let fetch = move || -> BoxFuture<'static, _> {
            let keys = JwkSet::parse(published.to_string().as_bytes()).unwrap();
            Box::pin(async move { Ok(FetchedKeys { keys, lifetime: Duration::from_secs(3600) }) })
        };
        OAuth { jwks: JwksCache::new(fetch, |_| {}), ..OAuth::new(&settings, "corbie", None, HttpClient::default()) }
    }

    /// The caller of `verify_now` does not limit it.
    #[tokio::test]
    async fn s05_s09_a_signature_is_never_checked_without_waiting_for_a_turn() {
        let [key, stranger] = [[7; 32], [8; 32]].map(|seed| Ed25519KeyPair::from_seed_unchecked(&seed).unwrap());
        let oauth = oauth(&key);
        let (valid, forged) = (token(&key, "alice"), token(&stranger, "alice"));
        assert!(matches!(oauth.verify(&valid).await, TokenVerdict::Valid(_)), "its keys are fetched");
        assert!(matches!(oauth.verify_now(&valid), TokenVerdict::Valid(_)), "it is cached");
        for other in [&forged, &token(&key, "bob")] {
            assert!(matches!(oauth.verify_now(other), TokenVerdict::Pending), "known key, not cached");
        }
        assert!(matches!(oauth.verify(&forged).await, TokenVerdict::Invalid(_)));
        assert!(matches!(oauth.verify_now(&forged), TokenVerdict::Pending), "a wrong token is not cached");
        assert!(matches!(oauth.verify_now("no.jwt.at-all"), TokenVerdict::Invalid(_)), "without a signature check");
    }
}

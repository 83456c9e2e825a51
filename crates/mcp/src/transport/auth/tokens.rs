//! Named tokens, stored as digests.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::SystemTime;

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::{INVALID_TOKEN, TokenHolder, TokenVerdict, TokenVerifier};
use crate::permissions::Permissions;
use crate::transport::RateLimit;
use crate::trust::TrustLevel;
use crate::trust_state::TrustState;

/// A named token. Only the digest of the secret is stored: secrets are long and random, so a single round of a fast
/// hash is irreversible, and cheap enough for every request.
#[derive(Clone)]
pub struct Token {
    digest: [u8; 32],
    holder: TokenHolder,
}

/// A fixed set of tokens.
pub struct TokenSet {
    by_digest: HashMap<[u8; 32], TokenHolder, foldhash::quality::RandomState>,
}

impl Token {
    /// `name` is the caller in logs and the audit log. `trust` applies on all listeners; with `None`, the level depends
    /// on the listener.
    pub fn new(name: &str, secret: &str, trust: Option<TrustLevel>) -> Token {
        Token::with_trust_state(name, secret, TrustState::new(trust))
    }

    /// A token whose standing is shared with further tokens.
    pub fn with_trust_state(name: &str, secret: &str, standing: TrustState) -> Token {
        Token::from_digest(name, Sha256::digest(secret).into(), standing)
    }

    /// A token with a stored digest; only its caller has the secret.
    pub fn from_digest(name: &str, digest: [u8; 32], standing: TrustState) -> Token {
        let identity = format!("token:{name}").into();
        let holder = TokenHolder { identity, trust: standing, permissions: None, rate_limit: None, is_operator: false };
        Token { digest, holder }
    }

    pub fn expiring(mut self, trust: Option<TrustLevel>, until: SystemTime) -> Token {
        self.holder.trust = TrustState::with_expiry(trust, Some(until));
        self
    }

    /// The operator's own token.
    pub fn operator(mut self) -> Token {
        self.holder.is_operator = true;
        self
    }

    pub fn permissions(mut self, grant: Permissions) -> Token {
        self.holder.permissions = Some(Arc::new(grant));
        self
    }

    pub fn rate_limit(mut self, limit: RateLimit) -> Token {
        self.holder.rate_limit = Some(limit);
        self
    }
}

impl TokenSet {
    pub fn new(tokens: impl IntoIterator<Item = Token>) -> TokenSet {
        TokenSet { by_digest: tokens.into_iter().map(|token| (token.digest, token.holder)).collect() }
    }

    pub fn is_empty(&self) -> bool {
        self.by_digest.is_empty()
    }
}

impl TokenVerifier for TokenSet {
    /// Response times reveal nothing about a secret: they depend on digests only, and an attacker cannot construct a
    /// secret with a similar digest.
    fn verify_now(&self, token: &str) -> TokenVerdict {
        let presented: [u8; 32] = Sha256::digest(token).into();
        match self.by_digest.get_key_value(&presented) {
            Some((digest, holder)) if bool::from(digest.ct_eq(&presented)) => TokenVerdict::Valid(holder.clone()),
            _ => TokenVerdict::Invalid(INVALID_TOKEN),
        }
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Token").field(&self.holder.identity).finish()
    }
}

impl std::fmt::Debug for TokenSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tokens({})", self.by_digest.len())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn s01_tokens_cannot_be_printed() {
        let token = Token::new("laptop", "secret", None);
        assert_eq!(format!("{token:?}"), r#"Token("token:laptop")"#);
        assert_eq!(format!("{:?}", TokenSet::new([token])), "Tokens(1)");
    }

    #[test]
    fn a_token_that_is_over_is_not_known() {
        let over = Token::new("old", "secret", None).expiring(None, SystemTime::now() - Duration::from_secs(1));
        let TokenVerdict::Valid(holder) = TokenSet::new([over]).verify_now("secret") else { panic!("looked up") };
        assert!(holder.trust.is_revoked());
    }
}

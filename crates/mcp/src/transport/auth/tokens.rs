//! Named tokens, stored as digests.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::SystemTime;

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::{Authority, Holder, NOT_VALID, Verdict};
use crate::grant::Grant;
use crate::standing::Standing;
use crate::transport::RateLimit;
use crate::trust::TrustLevel;

/// A named token. Only the digest of the secret is stored: secrets are long and random, so a single round of a fast
/// hash is irreversible, and cheap enough for every request.
#[derive(Clone)]
pub struct Token {
    digest: [u8; 32],
    holder: Holder,
}

/// A fixed set of tokens.
pub struct Tokens {
    by_digest: HashMap<[u8; 32], Holder, foldhash::quality::RandomState>,
}

impl Token {
    /// `name` is the caller in logs and the audit log. `trust` applies on all listeners; with `None`, the level depends
    /// on the listener.
    pub fn new(name: &str, secret: &str, trust: Option<TrustLevel>) -> Token {
        Token::secret(name, secret, Standing::new(trust))
    }

    /// A token whose standing is shared with further tokens.
    pub fn secret(name: &str, secret: &str, standing: Standing) -> Token {
        Token::of_digest(name, Sha256::digest(secret).into(), standing)
    }

    /// A token with a stored digest; only its caller has the secret.
    pub fn of_digest(name: &str, digest: [u8; 32], standing: Standing) -> Token {
        let identity = format!("token:{name}").into();
        Token { digest, holder: Holder { identity, standing, grant: None, rate_limit: None } }
    }

    pub fn expiring(mut self, trust: Option<TrustLevel>, until: SystemTime) -> Token {
        self.holder.standing = Standing::until(trust, Some(until));
        self
    }

    pub fn grant(mut self, grant: Grant) -> Token {
        self.holder.grant = Some(Arc::new(grant));
        self
    }

    pub fn rate_limit(mut self, limit: RateLimit) -> Token {
        self.holder.rate_limit = Some(limit);
        self
    }
}

impl Tokens {
    pub fn new(tokens: impl IntoIterator<Item = Token>) -> Tokens {
        Tokens { by_digest: tokens.into_iter().map(|token| (token.digest, token.holder)).collect() }
    }

    pub fn is_empty(&self) -> bool {
        self.by_digest.is_empty()
    }
}

impl Authority for Tokens {
    /// Response times reveal nothing about a secret: they depend on digests only, and an attacker cannot construct a
    /// secret with a similar digest.
    fn look(&self, token: &str) -> Verdict {
        let presented: [u8; 32] = Sha256::digest(token).into();
        match self.by_digest.get_key_value(&presented) {
            Some((digest, holder)) if bool::from(digest.ct_eq(&presented)) => Verdict::Known(holder.clone()),
            _ => Verdict::Refused(NOT_VALID),
        }
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Token").field(&self.holder.identity).finish()
    }
}

impl std::fmt::Debug for Tokens {
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
        assert_eq!(format!("{:?}", Tokens::new([token])), "Tokens(1)");
    }

    #[test]
    fn a_token_that_is_over_is_not_known() {
        let over = Token::new("old", "secret", None).expiring(None, SystemTime::now() - Duration::from_secs(1));
        let Verdict::Known(holder) = Tokens::new([over]).look("secret") else { panic!("looked up") };
        assert!(holder.standing.is_revoked());
    }
}

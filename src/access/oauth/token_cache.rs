//! Cache of verified tokens: a repeated request costs a digest instead of a signature check.

use corbie_mcp::transport::TokenHolder;
use quick_cache::sync::Cache;

use super::jwks::{JwkSet, KeyFingerprint};

/// Keyed by the digests of tokens; the tokens are not stored.
#[derive(Debug)]
pub(super) struct TokenCache(Cache<[u8; 32], CachedToken>);

#[derive(Debug, Clone)]
struct CachedToken {
    holder: TokenHolder,
    /// The key that signed it.
    key: KeyFingerprint,
}

/// About half a kilobyte per entry.
const MAX_TOKENS: usize = 10_000;

impl TokenCache {
    pub(super) fn new() -> TokenCache {
        TokenCache(Cache::new(MAX_TOKENS))
    }

    /// The holder of a cached token that has not expired and whose key is still published.
    pub(super) fn holder(&self, digest: &[u8; 32], keys: &JwkSet) -> Option<TokenHolder> {
        let entry = self.0.get(digest)?;
        (keys.contains(&entry.key) && !entry.holder.trust.is_revoked()).then_some(entry.holder)
    }

    /// If two requests with the same token race, the first entry is kept, so that there is one trust state to revoke.
    pub(super) fn insert(&self, digest: [u8; 32], holder: TokenHolder, key: KeyFingerprint) -> TokenHolder {
        match self.0.get(&digest).filter(|entry| entry.key == key && !entry.holder.trust.is_revoked()) {
            Some(entry) => entry.holder,
            None => {
                self.0.insert(digest, CachedToken { holder: holder.clone(), key });
                holder
            }
        }
    }

    /// Removes tokens of keys that are no longer published and revokes them on open connections.
    pub(super) fn revoke_removed_keys(&self, keys: &JwkSet) {
        self.0.retain(|_, entry| {
            let stays = keys.contains(&entry.key);
            if !stays {
                entry.holder.trust.revoke();
            }
            stays
        });
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use corbie_mcp::{TrustLevel, TrustState};
    use serde_json::json;

    use super::*;

    fn keys(coordinates: &[&str]) -> JwkSet {
        let key = |x: &&str| json!({"kty": "EC", "crv": "P-256", "x": x, "y": "AQ"});
        let document = json!({"keys": coordinates.iter().map(key).collect::<Vec<_>>()});
        JwkSet::parse(document.to_string().as_bytes()).expect("keys")
    }

    fn holder(until: SystemTime) -> TokenHolder {
        let standing = TrustState::with_expiry(Some(TrustLevel::Trusted), Some(until));
        TokenHolder {
            identity: "oauth:app:alice".into(),
            trust: standing,
            permissions: None,
            rate_limit: None,
            is_operator: false,
        }
    }

    #[test]
    fn s05_a_key_that_is_gone_takes_its_tokens_along_also_on_open_connections() {
        let (both, second) = (keys(&["AQ", "Ag"]), keys(&["Ag"]));
        let prints = both.fingerprints();
        let remembered = TokenCache::new();
        let later = SystemTime::now() + Duration::from_secs(60);
        let (gone, stays) = (holder(later), holder(later));
        remembered.insert([1; 32], gone.clone(), prints[0]);
        remembered.insert([2; 32], stays.clone(), prints[1]);
        assert!(remembered.holder(&[1; 32], &both).is_some());
        assert!(remembered.holder(&[1; 32], &second).is_none(), "before anybody was told, too");
        remembered.revoke_removed_keys(&second);
        assert!(gone.trust.is_revoked() && !stays.trust.is_revoked());
        assert!(remembered.holder(&[1; 32], &both).is_none(), "it is forgotten");
        assert!(remembered.holder(&[2; 32], &second).is_some());
    }

    #[test]
    fn s05_a_token_is_remembered_until_it_expires_and_only_so_many_are() {
        let keys = keys(&["AQ"]);
        let remembered = TokenCache::new();
        let expired = holder(SystemTime::now() - Duration::from_secs(1));
        remembered.insert([1; 32], expired.clone(), keys.fingerprints()[0]);
        assert!(remembered.holder(&[1; 32], &keys).is_none());
        let later = holder(SystemTime::now() + Duration::from_secs(60));
        for number in 0..2 * MAX_TOKENS {
            let mut digest = [0; 32];
            digest[..8].copy_from_slice(&number.to_le_bytes());
            remembered.insert(digest, later.clone(), keys.fingerprints()[0]);
        }
        assert!(remembered.0.len() <= MAX_TOKENS, "{}", remembered.0.len());
    }
}

//! Cache of verified tokens: a repeated request costs a digest instead of a signature check.

use corbie_mcp::transport::Holder;
use quick_cache::sync::Cache;

use super::keys::{KeySet, Print};

/// Keyed by the digests of tokens; the tokens are not stored.
#[derive(Debug)]
pub(super) struct Remembered(Cache<[u8; 32], Entry>);

#[derive(Debug, Clone)]
struct Entry {
    holder: Holder,
    /// The key that signed it.
    key: Print,
}

/// About half a kilobyte per entry.
const MOST: usize = 10_000;

impl Remembered {
    pub(super) fn new() -> Remembered {
        Remembered(Cache::new(MOST))
    }

    /// The holder of a cached token that has not expired and whose key is still published.
    pub(super) fn holder(&self, digest: &[u8; 32], keys: &KeySet) -> Option<Holder> {
        let entry = self.0.get(digest)?;
        (keys.has(&entry.key) && !entry.holder.standing.is_revoked()).then_some(entry.holder)
    }

    /// If two requests with the same token race, the first entry is kept, so that there is one trust state to revoke.
    pub(super) fn keep(&self, digest: [u8; 32], holder: Holder, key: Print) -> Holder {
        match self.0.get(&digest).filter(|entry| entry.key == key && !entry.holder.standing.is_revoked()) {
            Some(entry) => entry.holder,
            None => {
                self.0.insert(digest, Entry { holder: holder.clone(), key });
                holder
            }
        }
    }

    /// Removes tokens of keys that are no longer published and revokes them on open connections.
    pub(super) fn follow(&self, keys: &KeySet) {
        self.0.retain(|_, entry| {
            let stays = keys.has(&entry.key);
            if !stays {
                entry.holder.standing.revoke();
            }
            stays
        });
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use corbie_mcp::{Standing, TrustLevel};
    use serde_json::json;

    use super::*;

    fn keys(coordinates: &[&str]) -> KeySet {
        let key = |x: &&str| json!({"kty": "EC", "crv": "P-256", "x": x, "y": "AQ"});
        let document = json!({"keys": coordinates.iter().map(key).collect::<Vec<_>>()});
        KeySet::read(document.to_string().as_bytes()).expect("keys")
    }

    fn holder(until: SystemTime) -> Holder {
        let standing = Standing::until(Some(TrustLevel::Trusted), Some(until));
        Holder { identity: "oauth:app:alice".into(), standing, grant: None, rate_limit: None }
    }

    #[test]
    fn s05_a_key_that_is_gone_takes_its_tokens_along_also_on_open_connections() {
        let (both, second) = (keys(&["AQ", "Ag"]), keys(&["Ag"]));
        let prints = both.prints();
        let remembered = Remembered::new();
        let later = SystemTime::now() + Duration::from_secs(60);
        let (gone, stays) = (holder(later), holder(later));
        remembered.keep([1; 32], gone.clone(), prints[0]);
        remembered.keep([2; 32], stays.clone(), prints[1]);
        assert!(remembered.holder(&[1; 32], &both).is_some());
        assert!(remembered.holder(&[1; 32], &second).is_none(), "before anybody was told, too");
        remembered.follow(&second);
        assert!(gone.standing.is_revoked() && !stays.standing.is_revoked());
        assert!(remembered.holder(&[1; 32], &both).is_none(), "it is forgotten");
        assert!(remembered.holder(&[2; 32], &second).is_some());
    }

    #[test]
    fn s05_a_token_is_remembered_until_it_expires_and_only_so_many_are() {
        let keys = keys(&["AQ"]);
        let remembered = Remembered::new();
        let expired = holder(SystemTime::now() - Duration::from_secs(1));
        remembered.keep([1; 32], expired.clone(), keys.prints()[0]);
        assert!(remembered.holder(&[1; 32], &keys).is_none());
        let later = holder(SystemTime::now() + Duration::from_secs(60));
        for number in 0..2 * MOST {
            let mut digest = [0; 32];
            digest[..8].copy_from_slice(&number.to_le_bytes());
            remembered.keep(digest, later.clone(), keys.prints()[0]);
        }
        assert!(remembered.0.len() <= MOST, "{}", remembered.0.len());
    }
}

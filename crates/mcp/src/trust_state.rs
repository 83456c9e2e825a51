//! Revocable trust state of a caller, which the operator may change while the caller is connected.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::SystemTime;

use crate::trust::TrustLevel;

/// Shared by all connections of one caller, or of one kind of caller; a change applies from the next request.
#[derive(Debug, Clone)]
pub struct TrustState(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// One of the constants below.
    level: AtomicU8,
    /// Expiry; treated as revoked from then on.
    expires: Option<SystemTime>,
}

const REVOKED: u8 = 0;
/// The trust level of the listener.
const LISTENER_DEFAULT: u8 = 1;
const UNTRUSTED: u8 = 2;
const VERIFIED: u8 = 3;
const TRUSTED: u8 = 4;

impl TrustState {
    /// `None` uses the trust level of the listener.
    pub fn new(trust: Option<TrustLevel>) -> TrustState {
        TrustState::with_expiry(trust, None)
    }

    pub fn with_expiry(trust: Option<TrustLevel>, until: Option<SystemTime>) -> TrustState {
        TrustState(Arc::new(Inner { level: AtomicU8::new(encode_level(trust)), expires: until }))
    }

    /// Changes the level for all holders of this state.
    pub fn set(&self, trust: Option<TrustLevel>) {
        self.0.level.store(encode_level(trust), Ordering::Relaxed);
    }

    /// Revokes it, also on open connections.
    pub fn revoke(&self) {
        self.0.level.store(REVOKED, Ordering::Relaxed);
    }

    pub fn is_revoked(&self) -> bool {
        self.current(TrustLevel::Untrusted).is_none()
    }

    /// The current level, where `others` is the listener's; `None` once revoked or expired.
    pub fn current(&self, others: TrustLevel) -> Option<TrustLevel> {
        if self.0.expires.is_some_and(|until| SystemTime::now() >= until) {
            return None;
        }
        match self.0.level.load(Ordering::Relaxed) {
            REVOKED => None,
            UNTRUSTED => Some(TrustLevel::Untrusted),
            VERIFIED => Some(TrustLevel::Verified),
            TRUSTED => Some(TrustLevel::Trusted),
            _ => Some(others),
        }
    }
}

fn encode_level(trust: Option<TrustLevel>) -> u8 {
    match trust {
        None => LISTENER_DEFAULT,
        Some(TrustLevel::Untrusted) => UNTRUSTED,
        Some(TrustLevel::Verified) => VERIFIED,
        Some(TrustLevel::Trusted) => TRUSTED,
    }
}

impl From<TrustLevel> for TrustState {
    fn from(trust: TrustLevel) -> TrustState {
        TrustState::new(Some(trust))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn m96_a_change_counts_for_everybody_who_shares_it() {
        let standing = TrustState::new(None);
        let shared = standing.clone();
        assert_eq!(shared.current(TrustLevel::Verified), Some(TrustLevel::Verified));
        standing.set(Some(TrustLevel::Untrusted));
        assert_eq!(shared.current(TrustLevel::Trusted), Some(TrustLevel::Untrusted));
        standing.revoke();
        assert!(shared.is_revoked());
    }

    #[test]
    fn one_that_is_over_is_none() {
        let over = TrustState::with_expiry(Some(TrustLevel::Trusted), Some(SystemTime::now() - Duration::from_secs(1)));
        assert_eq!(over.current(TrustLevel::Trusted), None);
        let later =
            TrustState::with_expiry(Some(TrustLevel::Trusted), Some(SystemTime::now() + Duration::from_secs(60)));
        assert_eq!(later.current(TrustLevel::Untrusted), Some(TrustLevel::Trusted));
    }
}

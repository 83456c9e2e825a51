//! `trust`: trust level by listener kind.

use corbie_mcp::TrustLevel;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Trust level of callers by listener kind. Set only by the operator; no tool can change it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Trust {
    /// Callers on stdin and stdout: the program that started corbie.
    pub stdio: TrustLevelSetting,
    /// Callers on HTTP and WebSocket from this machine.
    pub loopback: TrustLevelSetting,
    /// Callers on HTTP and WebSocket from other machines.
    pub remote: TrustLevelSetting,
    /// Callers with the token, from any address. Defaults to the level of other callers from that address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<TrustLevelSetting>,
    /// Allow destructive calls of verified callers after the user confirms them in the client. Requires a client that
    /// supports elicitation; otherwise the call is refused.
    pub confirm_destructive: bool,
    /// Trust level of all callers; overrides all other levels. The flag `--trust` sets it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub all: Option<TrustLevelSetting>,
}

/// Trust level; each level includes the previous ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TrustLevelSetting {
    /// Read only.
    Untrusted,
    /// Also change data and spend money, such as adding documents and calling models.
    Verified,
    /// Also delete data, such as removing documents.
    Trusted,
}

/// Listener kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Via {
    Stdio,
    Loopback,
    Remote,
}

impl Trust {
    /// The trust level of callers on this kind of listener.
    pub fn level(&self, via: Via) -> TrustLevelSetting {
        self.all.unwrap_or(match via {
            Via::Stdio => self.stdio,
            Via::Loopback => self.loopback,
            Via::Remote => self.remote,
        })
    }

    /// The lower of both levels for all callers: settings that no longer apply must not raise the trust of anyone.
    #[must_use]
    pub fn restricted_by(&self, other: &Trust) -> Trust {
        let level = |via| self.level(via).min(other.level(via));
        let (loopback, remote) = (level(Via::Loopback), level(Via::Remote));
        let token = match (self.all.or(self.token), other.all.or(other.token)) {
            (Some(level), Some(other)) => Some(level.min(other)),
            // The other level depends on the address, so the lowest one counts.
            (Some(level), None) | (None, Some(level)) => Some(level.min(loopback).min(remote)),
            (None, None) => None,
        };
        let confirm_destructive = self.confirm_destructive && other.confirm_destructive;
        Trust { stdio: level(Via::Stdio), loopback, remote, token, confirm_destructive, all: None }
    }
}

impl TrustLevelSetting {
    pub fn as_str(self) -> &'static str {
        TrustLevel::from(self).as_str()
    }
}

impl From<TrustLevelSetting> for TrustLevel {
    fn from(level: TrustLevelSetting) -> TrustLevel {
        match level {
            TrustLevelSetting::Untrusted => TrustLevel::Untrusted,
            TrustLevelSetting::Verified => TrustLevel::Verified,
            TrustLevelSetting::Trusted => TrustLevel::Trusted,
        }
    }
}

impl From<TrustLevel> for TrustLevelSetting {
    fn from(level: TrustLevel) -> TrustLevelSetting {
        match level {
            TrustLevel::Untrusted => TrustLevelSetting::Untrusted,
            TrustLevel::Verified => TrustLevelSetting::Verified,
            TrustLevel::Trusted => TrustLevelSetting::Trusted,
        }
    }
}

impl Default for Trust {
    fn default() -> Self {
        Self {
            stdio: TrustLevelSetting::Trusted,
            loopback: TrustLevelSetting::Trusted,
            remote: TrustLevelSetting::Verified,
            token: None,
            confirm_destructive: false,
            all: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::TrustLevelSetting::{Trusted, Untrusted, Verified};
    use super::*;

    #[test]
    fn x46_restricted_trust_has_the_lower_level_of_each_kind_of_caller() {
        let strict = Trust { loopback: Untrusted, token: Some(Verified), ..Trust::default() };
        let restricted = Trust::default().restricted_by(&strict);
        assert_eq!((restricted.loopback, restricted.remote, restricted.token), (Untrusted, Verified, Some(Untrusted)));
        let all = Trust { all: Some(Untrusted), confirm_destructive: true, ..Trust::default() };
        let restricted = all.restricted_by(&Trust::default());
        let levels = [Via::Stdio, Via::Loopback, Via::Remote].map(|via| restricted.level(via));
        assert_eq!(
            (levels, restricted.token, restricted.confirm_destructive),
            ([Untrusted; 3], Some(Untrusted), false)
        );
        assert_eq!(Trust::default().restricted_by(&Trust::default()).stdio, Trusted);
    }
}

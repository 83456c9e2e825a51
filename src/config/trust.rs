//! `trust`: trust level by listener kind.

use corbie_mcp::TrustLevel;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Trust level of callers by listener kind. Set only by the operator; no tool can change it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Trust {
    /// Callers on stdin and stdout: the program that started corbie.
    pub stdio: Level,
    /// Callers on HTTP and WebSocket from this machine.
    pub loopback: Level,
    /// Callers on HTTP and WebSocket from other machines.
    pub remote: Level,
    /// Callers with the token, from any address. Defaults to the level of other callers from that address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<Level>,
    /// Allow destructive calls of verified callers after the user confirms them in the client. Requires a client that
    /// supports elicitation; otherwise the call is refused.
    pub confirm_destructive: bool,
    /// Trust level of all callers; overrides all other levels. The flag `--trust` sets it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub all: Option<Level>,
}

/// Trust level; each level includes the previous ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Level {
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
    pub fn level(&self, via: Via) -> Level {
        self.all.unwrap_or(match via {
            Via::Stdio => self.stdio,
            Via::Loopback => self.loopback,
            Via::Remote => self.remote,
        })
    }
}

impl Level {
    pub fn as_str(self) -> &'static str {
        TrustLevel::from(self).as_str()
    }
}

impl From<Level> for TrustLevel {
    fn from(level: Level) -> TrustLevel {
        match level {
            Level::Untrusted => TrustLevel::Untrusted,
            Level::Verified => TrustLevel::Verified,
            Level::Trusted => TrustLevel::Trusted,
        }
    }
}

impl From<TrustLevel> for Level {
    fn from(level: TrustLevel) -> Level {
        match level {
            TrustLevel::Untrusted => Level::Untrusted,
            TrustLevel::Verified => Level::Verified,
            TrustLevel::Trusted => Level::Trusted,
        }
    }
}

impl Default for Trust {
    fn default() -> Self {
        Self {
            stdio: Level::Trusted,
            loopback: Level::Trusted,
            remote: Level::Verified,
            token: None,
            confirm_destructive: false,
            all: None,
        }
    }
}

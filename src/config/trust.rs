//! `trust`: trust level by listener kind.

use corbie_mcp::TrustLevel;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a caller may do, by the way it came. Only the operator sets it; no tool can.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Trust {
    /// Callers on stdin and stdout: the program that started this one.
    pub stdio: Level,
    /// Callers on HTTP and WebSocket from this machine.
    pub loopback: Level,
    /// Callers on HTTP and WebSocket from other machines.
    pub remote: Level,
    /// Callers who send the token, wherever they come from. Left out, it is as for any caller from there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<Level>,
    /// Whether a caller who is verified and asks for something to be destroyed gets it if the person at the client
    /// agrees. The client must be able to ask (elicitation); where it is not, the call is refused as it is without this.
    pub ask_person: bool,
    /// Overrides all of the levels above for every caller. The flag `--trust` sets it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub all: Option<Level>,
}

/// How far a caller is trusted; each level may do what the ones before it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// May read.
    Untrusted,
    /// May also change things and spend money, such as adding documents and asking models.
    Verified,
    /// May also destroy, such as removing documents.
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
            ask_person: false,
            all: None,
        }
    }
}

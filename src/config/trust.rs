//! `trust`: what a caller may do, by the way it came.

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
    /// Overrides all of the above for every caller. The flag `--trust` sets it.
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

/// The ways a caller can come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Via {
    Stdio,
    Loopback,
    Remote,
}

impl Trust {
    /// How far a caller that came this way is trusted.
    pub fn level(&self, via: Via) -> Level {
        self.all.unwrap_or(match via {
            Via::Stdio => self.stdio,
            Via::Loopback => self.loopback,
            Via::Remote => self.remote,
        })
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

impl Default for Trust {
    fn default() -> Self {
        Self { stdio: Level::Trusted, loopback: Level::Trusted, remote: Level::Verified, token: None, all: None }
    }
}

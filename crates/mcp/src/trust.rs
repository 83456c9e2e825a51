//! Trust levels, effects of tools, and callers.
//!
//! Trust belongs to the caller's connection; only the operator sets it. Tools declare an effect and never check trust:
//! the check runs before every handler, in `dispatch`.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::permissions::Permissions;

/// The operator's trust in a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum TrustLevel {
    /// May run read-only tools.
    Untrusted,
    /// May also run tools that change state or incur cost.
    Verified,
    /// May also run tools that destroy data.
    Trusted,
}

/// The side effect of a tool. Only loss of data counts as destruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Effect {
    Reads,
    Changes,
    Destroys,
}

/// The transport of a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Transport {
    Stdio,
    Http,
    Rest,
    WebSocket,
    /// A Unix socket on this machine.
    Unix,
    /// An in-process call, such as from the command line.
    Internal,
}

/// One caller, as identified by the transport.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    pub transport: Transport,
    /// Identity for logs, limits and sealed state: the token's name, or the kind of connection.
    pub identity: Arc<str>,
    pub trust: TrustLevel,
    /// Its permissions; unrestricted if `None`.
    pub permissions: Option<Arc<Permissions>>,
}

impl Caller {
    /// A caller restricted only by its trust.
    pub fn new(via: Transport, identity: impl Into<Arc<str>>, trust: TrustLevel) -> Caller {
        Caller { transport: via, identity: identity.into(), trust, permissions: None }
    }

    /// Whether it authenticated with a token; otherwise it is any client that can connect.
    pub fn has_token(&self) -> bool {
        self.identity.starts_with("token:") || self.identity.starts_with("oauth:")
    }

    /// Whether the caller's permissions include the tool, regardless of trust.
    pub fn may_use(&self, tool: &str) -> bool {
        self.permissions.as_ref().is_none_or(|grant| grant.tools.allows(tool))
    }

    /// Whether the caller's permissions include a collection of the program's data.
    pub fn may_access(&self, collection: &str) -> bool {
        self.permissions.as_ref().is_none_or(|grant| grant.collections.allows(collection))
    }
}

impl Transport {
    pub const ALL: [Transport; 6] = [
        Transport::Stdio,
        Transport::Http,
        Transport::Rest,
        Transport::WebSocket,
        Transport::Unix,
        Transport::Internal,
    ];

    /// The name in metrics, logs and the audit log.
    pub fn as_str(self) -> &'static str {
        match self {
            Transport::Stdio => "stdio",
            Transport::Http => "http",
            Transport::Rest => "rest",
            Transport::WebSocket => "web_socket",
            Transport::Unix => "unix",
            Transport::Internal => "internal",
        }
    }
}

impl Effect {
    pub fn required_trust(self) -> TrustLevel {
        match self {
            Effect::Reads => TrustLevel::Untrusted,
            Effect::Changes => TrustLevel::Verified,
            Effect::Destroys => TrustLevel::Trusted,
        }
    }

    pub(crate) fn verb(self) -> &'static str {
        match self {
            Effect::Reads => "is read-only",
            Effect::Changes => "changes state",
            Effect::Destroys => "destroys data",
        }
    }
}

impl TrustLevel {
    /// The name on the command line and in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            TrustLevel::Untrusted => "untrusted",
            TrustLevel::Verified => "verified",
            TrustLevel::Trusted => "trusted",
        }
    }
}

impl fmt::Display for TrustLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for TrustLevel {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        [TrustLevel::Untrusted, TrustLevel::Verified, TrustLevel::Trusted]
            .into_iter()
            .find(|level| level.as_str().eq_ignore_ascii_case(text))
            .ok_or_else(|| format!("invalid trust level `{text}`; use untrusted, verified or trusted"))
    }
}

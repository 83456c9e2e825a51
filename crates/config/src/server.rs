//! `server`: listeners, authentication and timeouts.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::address::{HostName, Listen, WebOrigin};
use super::diagnostic::KeyPath;
use super::duration::{ConfigDuration, Timeout, as_seconds};
use super::external_classifier::SettingDiagnostic;
use super::limits::Limits;
use super::network::AddressBlock;
use super::oauth::OAuth;
use super::secret::Secret;
use super::socket_mode::SocketMode;
use super::tls::Tls;
use super::token_strength::{Weakness, weakness};
use super::tool_selection::ToolSelection;

/// Listeners, authentication, timeouts and limits.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ServerConfig {
    /// Listeners for HTTP and WebSocket, as a list of `host:port` or `unix:/path` for Unix sockets. Defaults to ports
    /// 8090 and 3000 of loopback. Not used if corbie serves only stdin and stdout.
    pub listen: Vec<Listen>,
    /// Permissions of Unix sockets in octal digits. `0600` allows only this user, `0660` also its group.
    pub socket_mode: SocketMode,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<Tls>,
    /// Name of the server in responses to clients.
    #[schemars(length(min = 1, max = 128))]
    pub name: String,
    /// Authentication of callers on HTTP and WebSocket. Defaults to `none` on loopback addresses, otherwise `bearer`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth: Option<Auth>,
    /// Bearer token of callers with `auth: bearer`. The variable `MCP_API_KEY` also sets it. In a file, write
    /// `${MCP_API_KEY}` rather than the token itself. The token must be random with at least 128 bits, for example from
    /// `openssl rand -hex 32`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<Secret>,
    /// File of the tokens that `corbie tokens` manages. Defaults to `corbie/tokens.json` in the user's data folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_file: Option<PathBuf>,
    /// Access tokens of an authorization server, required on every address unless `auth` is `none`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oauth: Option<OAuth>,
    /// Reverse proxies in front of this server, as addresses or networks such as `127.0.0.1` and `10.0.0.0/8`.
    /// `Forwarded` and `X-Forwarded-For` are evaluated only in their requests. Forwarded callers have the trust level,
    /// rate limit and connection limit of callers from other machines. Unix sockets count as `127.0.0.1`.
    #[schemars(length(max = 64))]
    pub trusted_proxies: Vec<AddressBlock>,
    /// Allowed origins of web pages in addition to loopback, as a list such as `https://example.org`.
    pub allowed_origins: Vec<WebOrigin>,
    /// Host names that clients may use for this server in addition to loopback.
    pub allowed_hosts: Vec<HostName>,
    /// Tools in the list that clients get, as names of profiles and tools: `all`, `knowledge`, `classify` and `gateway`. A
    /// client puts the whole list into the context of its model. The other tools can be called, but are not listed.
    #[serde(skip_serializing_if = "ToolSelection::is_all")]
    pub tools: ToolSelection,
    pub limits: Limits,
    /// Timeout of a tool call in seconds.
    #[serde(serialize_with = "as_seconds")]
    pub tool_timeout_seconds: Timeout,
    /// Timeouts of single tools in seconds, by tool name.
    pub tool_timeouts: BTreeMap<String, Timeout>,
    /// Grace period for running requests at shutdown, in seconds.
    #[serde(serialize_with = "as_seconds")]
    pub shutdown_grace_seconds: ConfigDuration,
    /// Rate limit per caller. Defaults to no limit on loopback addresses, otherwise 500 per second with a burst of
    /// 1000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_limit: Option<RateLimit>,
    /// Rate limit over all callers on HTTP and WebSocket. Unlimited if unset. It should be well above the limit per
    /// caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub global_rate_limit: Option<RateLimit>,
    /// Serve the web console at `/`. The page contains no data; it requests data with the authentication of any client.
    pub console: bool,
}

/// Authentication of callers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Auth {
    /// No authentication. Refused on addresses that other machines can reach.
    None,
    /// Callers send the token in `Authorization: Bearer`.
    Bearer,
}

/// Rate limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RateLimit {
    /// Sustained number of requests per second; 0 disables the limit.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub per_second: u32,
    /// Maximum number of requests in a burst. Defaults to twice `per_second`.
    #[schemars(range(min = 1, max = 1_000_000))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub burst: Option<u32>,
}

/// Authentication that a listener requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Authentication {
    None,
    Bearer,
}

/// Why a listener must not be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AuthenticationError {
    #[error("must not be `none` on a non-loopback address; use `bearer`")]
    ExposedWithoutAuth,
    #[error(
        "requires a token; create one with `corbie tokens create`, or set `server.token`, the environment variable \
         `MCP_API_KEY` or `server.oauth`"
    )]
    NoToken,
}

impl ServerConfig {
    /// The authentication of a listener, or an error if it must not be opened. `anybody` is whether any valid token
    /// exists.
    pub fn authentication(&self, loopback: bool, anybody: bool) -> Result<Authentication, AuthenticationError> {
        // A proxy forwards callers from other machines to a loopback listener.
        let loopback = loopback && !self.is_behind_proxy();
        match self.auth {
            Some(Auth::None) if !loopback => Err(AuthenticationError::ExposedWithoutAuth),
            Some(Auth::None) => Ok(Authentication::None),
            None if loopback && self.oauth.is_none() => Ok(Authentication::None),
            _ if anybody => Ok(Authentication::Bearer),
            _ => Err(AuthenticationError::NoToken),
        }
    }

    /// A token under 128 plausible bits on a listener that requires a token. Servers refuse it; other commands warn.
    /// `is_required` is whether an open listener requires a token, independently of these settings.
    pub(super) fn weak_token(&self, is_required: bool) -> Option<SettingDiagnostic> {
        let is_loopback = |listen: &Listen| match listen {
            Listen::Port(address) => address.is_loopback(),
            Listen::Socket(_) => true,
        };
        // Without `listen`, the server listens on loopback only.
        let all_loopback = self.listen.iter().all(is_loopback);
        let guards = is_required || self.authentication(all_loopback, true) == Ok(Authentication::Bearer);
        let weakness = self.token.as_ref().filter(|_| guards).and_then(|token| weakness(token.expose()))?;
        let message = format!(
            "is too weak: {}; generate one with `openssl rand -hex 32`, set it here or as `MCP_API_KEY`, and \
             distribute it to the callers. To migrate without downtime, first create a separate token for each caller \
             with `corbie tokens create NAME`",
            match weakness {
                Weakness::TooShort => "it is too short for 128 bits of entropy",
                Weakness::Uuid => "a UUID has at most 122 bits of entropy, but 128 are required",
                Weakness::Guessable =>
                    "without words, dates, sequences and repetitions it has less than 128 bits of entropy",
            }
        );
        Some(SettingDiagnostic { path: KeyPath::dotted("server.token"), message })
    }

    /// Whether a proxy may forward callers from other machines to a loopback listener.
    pub fn is_behind_proxy(&self) -> bool {
        !self.trusted_proxies.is_empty()
    }

    /// The rate limit per caller of a listener, if there is one.
    pub fn rate_limit(&self, loopback: bool) -> Option<RateLimit> {
        let usual = (!loopback).then(RateLimit::default);
        self.rate_limit.or(usual).filter(|limit| limit.per_second > 0)
    }
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            listen: Vec::new(),
            socket_mode: SocketMode::default(),
            tls: None,
            name: "corbie".into(),
            auth: None,
            token: None,
            tokens_file: None,
            oauth: None,
            trusted_proxies: Vec::new(),
            allowed_origins: Vec::new(),
            allowed_hosts: Vec::new(),
            tools: ToolSelection::default(),
            limits: Limits::default(),
            tool_timeout_seconds: Timeout::seconds(30),
            tool_timeouts: BTreeMap::new(),
            shutdown_grace_seconds: ConfigDuration::seconds(30),
            rate_limit: None,
            global_rate_limit: None,
            console: true,
        }
    }
}

impl RateLimit {
    pub fn burst(self) -> u32 {
        self.burst.unwrap_or(self.per_second.saturating_mul(2))
    }
}

impl Default for RateLimit {
    fn default() -> Self {
        Self { per_second: 500, burst: None }
    }
}

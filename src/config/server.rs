//! `server`: listeners, authentication and timeouts.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::address::{HostName, Listen, WebOrigin};
use super::duration::{Period, Timeout, as_seconds};
use super::external::Mistake;
use super::limits::Limits;
use super::network::AddressBlock;
use super::oauth::OAuth;
use super::problem::KeyPath;
use super::secret::Secret;
use super::socket_mode::SocketMode;
use super::tls::Tls;
use super::token_strength::is_strong;

/// Where the server listens, who may call, and how long things may take.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Server {
    /// Where HTTP and WebSocket are served, as a list of `host:port`, or `unix:/path` for a socket in the file system.
    /// An empty list means the ports 8090 and 3000 of this machine only. Nothing is served before HTTP is asked for.
    pub listen: Vec<Listen>,
    /// Who may open the sockets of `listen`, in octal digits. `0600` lets in this user alone, `0660` its group too.
    pub socket_mode: SocketMode,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<Tls>,
    /// The name the server tells its clients.
    #[schemars(length(min = 1, max = 128))]
    pub name: String,
    /// How callers on HTTP and WebSocket prove who they are. Left out, it is `none` on loopback addresses
    /// and `bearer` on all others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth: Option<Auth>,
    /// What callers must send with `auth: bearer`. The variable `MCP_API_KEY` sets it too. In a file, write
    /// `${MCP_API_KEY}` rather than the token itself. It must be random, with 128 bits or more: make one with
    /// `openssl rand -hex 32`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<Secret>,
    /// The file that `corbie tokens` keeps, with what each token allows. `corbie/tokens.json` in the user's folder for
    /// data, if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_file: Option<PathBuf>,
    /// Tokens of an authorization server, which are asked for on every address unless `auth` is `none`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oauth: Option<OAuth>,
    /// Reverse proxies in front of this server, as addresses or networks such as `127.0.0.1` and `10.0.0.0/8`. `Forwarded`
    /// and `X-Forwarded-For` count in requests from them alone: the callers they name have the trust, the rate and the
    /// share of connections of callers from other machines. Socket files count as `127.0.0.1`.
    #[schemars(length(max = 64))]
    pub trusted_proxies: Vec<AddressBlock>,
    /// Web pages that may call, besides those of this machine, as a list such as `https://example.org`.
    pub allowed_origins: Vec<WebOrigin>,
    /// Host names callers may use for this server, besides those of this machine.
    pub allowed_hosts: Vec<HostName>,
    pub limits: Limits,
    /// How long a tool may run before it is stopped, in seconds.
    #[serde(serialize_with = "as_seconds")]
    pub tool_timeout_seconds: Timeout,
    /// How long single tools may run, in seconds, by their names.
    pub tool_timeouts: BTreeMap<String, Timeout>,
    /// How long running requests may take to finish when the server is stopped, in seconds.
    #[serde(serialize_with = "as_seconds")]
    pub shutdown_grace_seconds: Period,
    /// How many requests one caller may send. Left out, there is no limit on loopback addresses, and 500 per
    /// second with a burst of 1000 on all others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_limit: Option<RateLimit>,
    /// How many requests all callers on HTTP and WebSocket together may send. Left out, there is no such limit. It should
    /// be well above that of one caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub global_rate_limit: Option<RateLimit>,
    /// Whether the web console is shown at `/`. It holds nothing but the page itself; what it shows, it asks for as any
    /// other client does.
    pub console: bool,
}

/// How callers prove who they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Auth {
    /// Everybody who can connect may call. Refused on addresses that other machines can reach.
    None,
    /// Callers send `Authorization: Bearer` with the token.
    Bearer,
}

/// How many requests may be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RateLimit {
    /// Requests per second over time; 0 turns the limit off.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub per_second: u32,
    /// Requests that may come at once after a pause; twice as many as a second, if left out.
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
pub enum NoAuthentication {
    #[error("is `none`, which is refused on an address that other machines can reach; use `bearer`")]
    OpenToOthers,
    #[error(
        "needs a token; make one with `corbie tokens create`, or set `server.token`, the variable `MCP_API_KEY` or `server.oauth`"
    )]
    NoToken,
}

impl Server {
    /// The authentication of a listener, or an error if it must not be opened. `anybody` is whether any valid token
    /// exists.
    pub fn authentication(&self, loopback: bool, anybody: bool) -> Result<Authentication, NoAuthentication> {
        // A proxy forwards callers from other machines to a loopback listener.
        let loopback = loopback && !self.is_behind_proxy();
        match self.auth {
            Some(Auth::None) if !loopback => Err(NoAuthentication::OpenToOthers),
            Some(Auth::None) => Ok(Authentication::None),
            None if loopback && self.oauth.is_none() => Ok(Authentication::None),
            _ if anybody => Ok(Authentication::Bearer),
            _ => Err(NoAuthentication::NoToken),
        }
    }

    /// Rejects a guessable token on a listener that requires one.
    pub(super) fn mistakes(&self) -> Option<Mistake> {
        let is_loopback = |listen: &Listen| match listen {
            Listen::Port(address) => address.is_loopback(),
            Listen::Socket(_) => true,
        };
        // Without `listen`, the server listens on loopback only.
        let all_loopback = self.listen.iter().all(is_loopback);
        let guards = self.authentication(all_loopback, true) == Ok(Authentication::Bearer);
        let token = self.token.as_ref().filter(|token| guards && !is_strong(token.expose()))?;
        let message = format!(
            "can be guessed: {}; make one with `openssl rand -hex 32`, set it here or as `MCP_API_KEY`, and give it to \
             the callers; or remove it and make a token for each caller with `corbie tokens create NAME`",
            match token.expose().len() {
                ..22 => "it is too short for 128 random bits",
                _ => "it does not look like 128 random bits",
            }
        );
        Some(Mistake { path: KeyPath::dotted("server.token"), message })
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

impl Default for Server {
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
            limits: Limits::default(),
            tool_timeout_seconds: Timeout::seconds(30),
            tool_timeouts: BTreeMap::new(),
            shutdown_grace_seconds: Period::seconds(30),
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

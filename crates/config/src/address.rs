//! Network addresses: listeners, allowed origins and hosts, and URLs of servers.

use std::borrow::Cow;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::path::PathBuf;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use url::Url;

/// Address of a listener: a port, or a Unix socket such as `unix:/run/corbie/corbie.sock`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub enum Listen {
    Port(HostPort),
    /// Always absolute: a relative path would depend on the working directory.
    Socket(PathBuf),
}

/// Host and port: `127.0.0.1:8090`, `[::1]:8090`, `localhost:8090`. Port 0 selects a free one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPort {
    /// Without brackets; never empty.
    host: String,
    port: u16,
}

/// An allowed `Origin` header: scheme, host and optional port. Never a pattern.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct WebOrigin(String);

/// An allowed `Host` header: a name with an optional port. Never a pattern.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct HostName(String);

/// URL of a server that corbie connects to, such as `https://api.example/v1`. It may contain a user, a password and a
/// query such as `?key=…`, which are never shown.
#[derive(Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct HttpUrl(Url);

/// The text does not have the required form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("is not a {0}")]
pub struct ParseAddressError(pub(super) &'static str);

// === impl Listen ===

impl FromStr for Listen {
    type Err = ParseAddressError;

    fn from_str(text: &str) -> Result<Self, ParseAddressError> {
        match text.strip_prefix("unix:") {
            Some(path) if path.starts_with('/') && !path.ends_with('/') && !path.contains('\0') => {
                Ok(Self::Socket(path.into()))
            }
            Some(_) => Err(ParseAddressError("socket path")),
            None => text.parse().map(Self::Port),
        }
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Port(address) => address.fmt(out),
            Self::Socket(path) => write!(out, "unix:{}", path.display()),
        }
    }
}

// === impl HostPort ===

impl HostPort {
    /// `host` is a name or an IP address without brackets; it is not validated.
    pub fn new(host: impl Into<String>, port: u16) -> Self {
        Self { host: host.into(), port }
    }

    pub fn host(&self) -> &str {
        &self.host
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Only `localhost` and loopback addresses: any other name depends on the resolver.
    pub fn is_loopback(&self) -> bool {
        match self.host.parse::<IpAddr>() {
            Ok(address) => is_loopback(address),
            Err(_) => self.host.eq_ignore_ascii_case("localhost"),
        }
    }
}

impl FromStr for HostPort {
    type Err = ParseAddressError;

    fn from_str(text: &str) -> Result<Self, ParseAddressError> {
        let (host, port) = split(text).ok_or(ParseAddressError("host:port"))?;
        Ok(Self { host: host.into(), port: port.ok_or(ParseAddressError("host:port"))? })
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(out, "[{}]:{}", self.host, self.port),
            false => write!(out, "{}:{}", self.host, self.port),
        }
    }
}

// === impl WebOrigin, HostName ===

impl WebOrigin {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for WebOrigin {
    type Err = ParseAddressError;

    fn from_str(text: &str) -> Result<Self, ParseAddressError> {
        let (scheme, rest) = text.split_once("://").ok_or(ParseAddressError("web origin"))?;
        let scheme_fits = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
            && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
        match split(rest) {
            Some(_) if scheme_fits => Ok(Self(text.into())),
            _ => Err(ParseAddressError("web origin")),
        }
    }
}

impl HostName {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for HostName {
    type Err = ParseAddressError;

    fn from_str(text: &str) -> Result<Self, ParseAddressError> {
        split(text).map(|_| Self(text.into())).ok_or(ParseAddressError("host name"))
    }
}

// === impl HttpUrl ===

impl HttpUrl {
    /// The URL with user and password. Every call of this function is relevant for an audit of secrets.
    pub fn expose(&self) -> &Url {
        &self.0
    }
}

impl FromStr for HttpUrl {
    type Err = ParseAddressError;

    fn from_str(text: &str) -> Result<Self, ParseAddressError> {
        let url = Url::parse(text).map_err(|_| ParseAddressError("URL"))?;
        let fits = matches!(url.scheme(), "http" | "https") && url.has_host() && url.fragment().is_none();
        fits.then_some(Self(url)).ok_or(ParseAddressError("URL"))
    }
}

impl fmt::Display for HttpUrl {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut url = self.0.clone();
        if !url.username().is_empty() || url.password().is_some() {
            // Both can be set on a URL with a host.
            let _ = url.set_username("***").and_then(|()| url.set_password(None));
        }
        if url.query().is_some() {
            url.set_query(Some("***"));
        }
        out.write_str(url.as_str())
    }
}

impl fmt::Debug for HttpUrl {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

/// Whether only this machine can reach an address. Includes IPv4-mapped IPv6 addresses.
pub fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

/// The host, without the brackets of IPv6, and the port if there is one.
fn split(text: &str) -> Option<(&str, Option<u16>)> {
    if let Some(bracketed) = text.strip_prefix('[') {
        let (host, after) = bracketed.split_once(']')?;
        host.parse::<Ipv6Addr>().ok()?;
        return match after.strip_prefix(':') {
            Some(port) => Some((host, Some(number(port)?))),
            None => after.is_empty().then_some((host, None)),
        };
    }
    let (host, port) = match text.split_once(':') {
        Some((host, port)) => (host, Some(number(port)?)),
        None => (text, None),
    };
    let fits = !host.is_empty() && host.chars().all(|c| c.is_ascii_alphanumeric() || "-._".contains(c));
    fits.then_some((host, port))
}

/// Digits only: Rust also parses `+80`.
fn number(port: &str) -> Option<u16> {
    port.bytes().all(|byte| byte.is_ascii_digit()).then(|| port.parse().ok())?
}

// === shared impls ===

macro_rules! is_text {
    ($type:ident, $format:literal, $example:literal) => {
        impl TryFrom<String> for $type {
            type Error = ParseAddressError;

            fn try_from(text: String) -> Result<Self, ParseAddressError> {
                text.parse()
            }
        }

        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                stringify!($type).into()
            }

            fn inline_schema() -> bool {
                true
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({"type": "string", "format": $format, "examples": [$example]})
            }
        }
    };
}

is_text!(Listen, "listen", "127.0.0.1:8090");
is_text!(WebOrigin, "origin", "https://example.org");
is_text!(HostName, "host", "example.org");
is_text!(HttpUrl, "http-url", "https://api.example/v1");

impl From<Listen> for String {
    fn from(address: Listen) -> Self {
        address.to_string()
    }
}

impl From<HttpUrl> for String {
    fn from(url: HttpUrl) -> Self {
        url.to_string()
    }
}

impl From<WebOrigin> for String {
    fn from(origin: WebOrigin) -> Self {
        origin.0
    }
}

impl From<HostName> for String {
    fn from(host: HostName) -> Self {
        host.0
    }
}

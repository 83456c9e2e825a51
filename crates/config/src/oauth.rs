//! `server.oauth`: tokens of an authorization server.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use url::{Host, Url};

use super::address::HttpUrl;
use super::diagnostic::KeyPath;
use super::duration::ConfigDuration;
use super::external_classifier::SettingDiagnostic;
use super::trust::TrustLevelSetting;

/// Authorization server whose access tokens are accepted; corbie is an OAuth 2.1 resource server. Tokens are signed
/// JWTs according to RFC 9068.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OAuth {
    /// Issuer URL. Must match the token's `iss` claim exactly.
    pub issuer: ServerIdentifier,
    /// URL of this server as clients know it. Must be in the token's `aud` claim.
    pub resource: ServerIdentifier,
    /// Further accepted values of the `aud` claim.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub audiences: Vec<String>,
    /// URL of the issuer's key set (JWKS). Defaults to the URL in the issuer's metadata.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jwks_url: Option<HttpUrl>,
    /// Trust level by scope of the token; the highest applies. A token with none of these scopes is `untrusted`.
    #[serde(default)]
    pub scopes: BTreeMap<String, TrustLevelSetting>,
    /// Maximum clock skew, at most `10m`.
    #[serde(default = "usual_skew")]
    pub clock_skew: ConfigDuration,
    /// Accepted signature algorithms.
    #[serde(default = "all_algorithms")]
    #[schemars(length(min = 1))]
    pub algorithms: Vec<Algorithm>,
}

/// Asymmetric signature algorithm. Algorithms with a shared secret are not supported, because a verifier could also
/// sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum Algorithm {
    RS256,
    RS384,
    RS512,
    PS256,
    PS384,
    PS512,
    ES256,
    ES384,
    EdDSA,
}

/// A URL that is compared as a string and therefore stored as written. It has no user, query or fragment.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct ServerIdentifier {
    text: String,
    url: Url,
}

/// The text is not such a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("is not a URL without credentials, query and fragment")]
pub struct ParseIdentifierError;

/// A larger skew would accept tokens long after their expiry.
const MAX_CLOCK_SKEW: Duration = Duration::from_secs(600);

impl OAuth {
    /// Validation beyond the schema.
    pub(super) fn diagnostics(&self) -> Vec<SettingDiagnostic> {
        let mistake = |key: &str, message: String| SettingDiagnostic {
            path: KeyPath::default().key("server").key("oauth").key(key),
            message,
        };
        let mut mistakes = Vec::new();
        let asked = [("issuer", Some(self.issuer.url())), ("jwks_url", self.jwks_url.as_ref().map(HttpUrl::expose))];
        for (key, url) in asked {
            if url.is_some_and(|url| !is_secure(url)) {
                let message = "must begin with `https://`; `http://` is allowed only for loopback addresses";
                mistakes.push(mistake(key, message.into()));
            }
        }
        if self.jwks_url.as_ref().map(HttpUrl::expose).is_some_and(has_user_info) {
            mistakes.push(mistake("jwks_url", "must not contain credentials; keys are public".into()));
        }
        if self.clock_skew.get() > MAX_CLOCK_SKEW {
            mistakes.push(mistake("clock_skew", "must be at most `10m`".into()));
        }
        for scope in self.scopes.keys().filter(|scope| !is_scope(scope)) {
            let message =
                format!("has the invalid scope `{scope}`; a scope is visible ASCII without spaces, `\"` and `\\`");
            mistakes.push(mistake("scopes", message));
        }
        mistakes
    }
}

/// Whether responses from the URL are authentic: HTTPS, or loopback.
pub fn is_secure(url: &Url) -> bool {
    url.scheme() == "https" || url.scheme() == "http" && is_loopback(url)
}

pub fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => IpAddr::V4(address).is_loopback(),
        Some(Host::Ipv6(address)) => IpAddr::V6(address).is_loopback(),
        Some(Host::Domain(name)) => name.eq_ignore_ascii_case("localhost"),
        None => false,
    }
}

fn has_user_info(url: &Url) -> bool {
    !url.username().is_empty() || url.password().is_some()
}

/// Scope syntax of RFC 6749.
fn is_scope(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\')
}

fn usual_skew() -> ConfigDuration {
    ConfigDuration::seconds(60)
}

fn all_algorithms() -> Vec<Algorithm> {
    use Algorithm::*;
    vec![RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, EdDSA]
}

// === impl Identifier ===

impl ServerIdentifier {
    pub fn as_str(&self) -> &str {
        &self.text
    }

    pub fn url(&self) -> &Url {
        &self.url
    }
}

impl FromStr for ServerIdentifier {
    type Err = ParseIdentifierError;

    fn from_str(text: &str) -> Result<Self, ParseIdentifierError> {
        let url = Url::parse(text).map_err(|_| ParseIdentifierError)?;
        let is_bare = !has_user_info(&url);
        let is_short = url.query().is_none() && url.fragment().is_none();
        // The text appears in headers and is compared as a string. A text that a parser would normalize is therefore
        // rejected.
        let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"\\".contains(&byte));
        let fits = matches!(url.scheme(), "http" | "https") && url.has_host() && is_bare && is_short && is_plain;
        fits.then(|| Self { text: text.into(), url }).ok_or(ParseIdentifierError)
    }
}

impl fmt::Display for ServerIdentifier {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}

impl TryFrom<String> for ServerIdentifier {
    type Error = ParseIdentifierError;

    fn try_from(text: String) -> Result<Self, ParseIdentifierError> {
        text.parse()
    }
}

impl From<ServerIdentifier> for String {
    fn from(identifier: ServerIdentifier) -> Self {
        identifier.text
    }
}

impl JsonSchema for ServerIdentifier {
    fn schema_name() -> Cow<'static, str> {
        "Identifier".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "format": "server-identifier", "examples": ["https://login.example.org"]})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(more: serde_json::Value) -> Result<OAuth, serde_json::Error> {
        let mut settings = serde_json::json!({"issuer": "https://a.example", "resource": "https://b.example/mcp"});
        settings.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        serde_json::from_value(settings)
    }

    #[test]
    fn s05_an_issuer_stays_as_it_was_written() {
        for text in ["https://a.example", "https://a.example/", "https://a.example/tenant/"] {
            assert_eq!(text.parse::<ServerIdentifier>().expect("fits").as_str(), text);
        }
        for text in
            ["a.example", "ftp://a.example", "https://u@a.example", "https://a.example?x", "https://a.example#x"]
        {
            assert_eq!(text.parse::<ServerIdentifier>(), Err(ParseIdentifierError), "{text}");
        }
        assert_eq!("https://a.example/\"x".parse::<ServerIdentifier>(), Err(ParseIdentifierError));
    }

    #[test]
    fn s05_a_secret_never_checks_a_token() {
        for algorithm in ["HS256", "HS384", "HS512", "none", "None"] {
            assert!(settings(serde_json::json!({"algorithms": [algorithm]})).is_err(), "{algorithm}");
        }
    }

    #[test]
    fn s05_keys_come_over_https_or_from_this_machine() {
        let none: [&str; 0] = [];
        let mistakes = |more| {
            let found = settings(more).expect("readable").diagnostics();
            found.into_iter().map(|mistake| mistake.path.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(mistakes(serde_json::json!({})), none);
        assert_eq!(mistakes(serde_json::json!({"issuer": "http://127.0.0.1:1", "jwks_url": "http://[::1]/k"})), none);
        assert_eq!(mistakes(serde_json::json!({"issuer": "http://a.example"})), ["server.oauth.issuer"]);
        assert_eq!(mistakes(serde_json::json!({"jwks_url": "http://10.0.0.1/keys"})), ["server.oauth.jwks_url"]);
        assert_eq!(
            mistakes(serde_json::json!({"jwks_url": "https://me:secret@a.example/keys"})),
            ["server.oauth.jwks_url"]
        );
        assert_eq!(mistakes(serde_json::json!({"clock_skew": "11m"})), ["server.oauth.clock_skew"]);
        assert_eq!(
            mistakes(serde_json::json!({"scopes": {"a b": "trusted", "ok": "verified"}})),
            ["server.oauth.scopes"]
        );
    }
}

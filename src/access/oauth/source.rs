//! Discovery and fetch of an issuer's JWKS: from a configured URL, or from its metadata (RFC 8414, OpenID Connect).

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{ACCEPT, CACHE_CONTROL};
use http::{HeaderMap, Request, StatusCode};
use serde::Deserialize;
use tokio::time::Instant;
use url::Url;

use super::keys::KeySet;
use crate::config::oauth::{Identifier, OAuth, is_loopback};
use crate::providers::client::Client;
use crate::providers::{self, NetworkFault};

/// Fetches the documents of an issuer.
#[derive(Debug)]
pub(super) struct Source {
    client: Client,
    issuer: Identifier,
    /// `None`: discovered in the issuer's metadata.
    keys: Option<Url>,
}

/// A JWKS and how long it may be cached.
#[derive(Debug)]
pub(super) struct Fetched {
    pub(super) keys: KeySet,
    pub(super) lifetime: Duration,
}

/// Why the keys are unavailable. For the operator's log; callers receive less detail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Fault {
    #[error("the issuer's {0} cannot be reached: {1}")]
    Unreachable(Document, &'static str),
    #[error("the issuer's {0} was answered with status {1}")]
    Status(Document, StatusCode),
    #[error("the issuer's {0} is larger than 1 MiB")]
    TooLarge(Document),
    #[error("the issuer's {0} is not what it should be; check `server.oauth.issuer` and `server.oauth.jwks_url`")]
    Unreadable(Document),
    #[error(
        "the metadata found is of another issuer; write `server.oauth.issuer` letter by letter as the metadata does"
    )]
    OtherIssuer,
    #[error("the issuer's metadata names an address of keys that is not `https`; set `server.oauth.jwks_url`")]
    Unsafe,
}

/// The requested document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Document {
    Metadata,
    Keys,
}

/// Timeout for all documents together.
const PATIENCE: Duration = Duration::from_secs(10);
const MOST_BYTES: usize = 1 << 20;
/// Lifetime of keys without `Cache-Control`.
const USUAL_LIFETIME: Duration = Duration::from_secs(60 * 60);
/// Bounds of the lifetime: limits the request rate, and how long a withdrawn key is accepted.
const LIFETIMES: [Duration; 2] = [Duration::from_secs(5 * 60), Duration::from_secs(24 * 60 * 60)];

impl Source {
    pub(super) fn new(settings: &OAuth, client: Client) -> Source {
        let keys = settings.jwks_url.as_ref().map(|url| url.expose().clone());
        Source { client, issuer: settings.issuer.clone(), keys }
    }

    pub(super) async fn fetch(&self) -> Result<Fetched, Fault> {
        let deadline = Instant::now() + PATIENCE;
        let url = match &self.keys {
            Some(url) => url.clone(),
            None => self.discover(deadline).await?,
        };
        let (headers, body) = self.get(Document::Keys, &url, deadline).await?;
        let keys = KeySet::read(&body).ok_or(Fault::Unreadable(Document::Keys))?;
        Ok(Fetched { keys, lifetime: lifetime(&headers) })
    }

    /// Repeated for every fetch, because issuers move their keys.
    async fn discover(&self, deadline: Instant) -> Result<Url, Fault> {
        let mut fault = Fault::Unreadable(Document::Metadata);
        for url in places(self.issuer.url()) {
            match self.get(Document::Metadata, &url, deadline).await {
                Ok((_, body)) => match address_of_keys(&self.issuer, &body) {
                    Ok(url) => return Ok(url),
                    Err(other) => fault = other,
                },
                // The other URLs are on the same server.
                Err(unreachable @ Fault::Unreachable(..)) => return Err(unreachable),
                Err(other) => fault = other,
            }
        }
        Err(fault)
    }

    /// Fetches a document. Redirects are not followed.
    async fn get(&self, what: Document, url: &Url, deadline: Instant) -> Result<(HeaderMap, Bytes), Fault> {
        let request = Request::get(url.as_str()).header(ACCEPT, "application/json").body(Bytes::new());
        let request = request.map_err(|_| Fault::Unreadable(what))?;
        let unreachable = |error| Fault::Unreachable(what, word(&error));
        let mut answer = self.client.open(request, deadline).await.map_err(unreachable)?;
        if answer.status != StatusCode::OK {
            return Err(Fault::Status(what, answer.status));
        }
        let mut body = BytesMut::new();
        while let Some(more) = answer.next(deadline).await.map_err(unreachable)? {
            if body.len() + more.len() > MOST_BYTES {
                return Err(Fault::TooLarge(what));
            }
            body.extend_from_slice(&more);
        }
        Ok((answer.headers, body.freeze()))
    }
}

/// URLs of an issuer's metadata, in the order of the specifications.
fn places(issuer: &Url) -> Vec<Url> {
    let path = issuer.path().trim_end_matches('/');
    let mut paths = vec![
        format!("/.well-known/oauth-authorization-server{path}"),
        format!("/.well-known/openid-configuration{path}"),
    ];
    if !path.is_empty() {
        paths.push(format!("{path}/.well-known/openid-configuration"));
    }
    let at = |path: String| {
        let mut url = issuer.clone();
        url.set_path(&path);
        url
    };
    paths.into_iter().map(at).collect()
}

fn address_of_keys(issuer: &Identifier, metadata: &[u8]) -> Result<Url, Fault> {
    #[derive(Deserialize)]
    struct Metadata {
        issuer: String,
        jwks_uri: String,
    }
    let metadata: Metadata = serde_json::from_slice(metadata).map_err(|_| Fault::Unreadable(Document::Metadata))?;
    // Otherwise any document on that server could impersonate the issuer.
    if metadata.issuer != issuer.as_str() {
        return Err(Fault::OtherIssuer);
    }
    let url = Url::parse(&metadata.jwks_uri).map_err(|_| Fault::Unreadable(Document::Metadata))?;
    // A remote issuer must not direct requests to this machine.
    let is_local = url.scheme() == "http" && is_loopback(&url) && is_loopback(issuer.url());
    if url.scheme() == "https" || is_local { Ok(url) } else { Err(Fault::Unsafe) }
}

fn lifetime(headers: &HeaderMap) -> Duration {
    let directives = headers.get_all(CACHE_CONTROL).iter().filter_map(|value| value.to_str().ok());
    let mut directives =
        directives.flat_map(|value| value.split(',')).map(|directive| directive.trim().to_ascii_lowercase());
    let said = directives.find_map(|directive| match directive.as_str() {
        "no-store" | "no-cache" => Some(Duration::ZERO),
        directive => {
            let seconds = directive.strip_prefix("max-age=")?.trim_matches('"').parse().ok()?;
            Some(Duration::from_secs(seconds))
        }
    });
    let [shortest, longest] = LIFETIMES;
    said.unwrap_or(USUAL_LIFETIME).clamp(shortest, longest)
}

fn word(error: &providers::Error) -> &'static str {
    match error {
        providers::Error::Network(NetworkFault::Name) => "its name is not known",
        providers::Error::Network(NetworkFault::Refused) => "nothing listens there",
        providers::Error::Network(NetworkFault::Tls) => "the secure connection failed",
        providers::Error::Timeout => "it did not answer in time",
        _ => "the connection was closed",
    }
}

impl std::fmt::Display for Document {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self {
            Document::Metadata => "metadata",
            Document::Keys => "document of keys",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s05_metadata_is_looked_for_where_issuers_have_it() {
        let places = |issuer: &str| {
            let issuer: Identifier = issuer.parse().expect("an issuer");
            places(issuer.url()).into_iter().map(String::from).collect::<Vec<_>>()
        };
        for issuer in ["https://a.example", "https://a.example/"] {
            assert_eq!(
                places(issuer),
                [
                    "https://a.example/.well-known/oauth-authorization-server",
                    "https://a.example/.well-known/openid-configuration",
                ]
            );
        }
        assert_eq!(
            places("https://a.example/realms/one"),
            [
                "https://a.example/.well-known/oauth-authorization-server/realms/one",
                "https://a.example/.well-known/openid-configuration/realms/one",
                "https://a.example/realms/one/.well-known/openid-configuration",
            ]
        );
    }

    #[test]
    fn s05_metadata_must_be_the_issuers_and_lead_to_a_safe_place() {
        let ask = |issuer: &str, said: &str, keys: &str| {
            let metadata = serde_json::json!({"issuer": said, "jwks_uri": keys}).to_string();
            address_of_keys(&issuer.parse().expect("an issuer"), metadata.as_bytes()).map(String::from)
        };
        let (far, near) = ("https://a.example", "http://127.0.0.1:9");
        assert_eq!(ask(far, far, "https://keys.example/k"), Ok("https://keys.example/k".into()));
        assert_eq!(ask(near, near, "http://127.0.0.1:9/k"), Ok("http://127.0.0.1:9/k".into()));
        assert_eq!(ask(far, "https://a.example/", "https://keys.example/k"), Err(Fault::OtherIssuer));
        assert_eq!(ask(far, far, "http://keys.example/k"), Err(Fault::Unsafe));
        assert_eq!(ask(far, far, "http://127.0.0.1:9/k"), Err(Fault::Unsafe), "not on this machine");
        assert_eq!(ask(near, near, "http://10.0.0.1/k"), Err(Fault::Unsafe));
        assert_eq!(ask(far, far, "file:///etc/passwd"), Err(Fault::Unsafe));
        assert_eq!(ask(far, far, "/k"), Err(Fault::Unreadable(Document::Metadata)));
    }

    #[test]
    fn s05_keys_are_kept_as_long_as_the_issuer_says_within_reason() {
        for (said, seconds) in [
            (None, 3600),
            (Some("public, max-age=900, must-revalidate"), 900),
            (Some("max-age=1"), 300),
            (Some("Max-Age=99999999"), 86_400),
            (Some("no-store"), 300),
            (Some("max-age=soon"), 3600),
        ] {
            let mut headers = HeaderMap::new();
            headers.extend(said.map(|said| (CACHE_CONTROL, said.parse().expect("a header"))));
            assert_eq!(lifetime(&headers), Duration::from_secs(seconds), "{said:?}");
        }
    }
}

//! Discovery and fetch of an issuer's JWKS: from a configured URL, or from its metadata (RFC 8414, OpenID Connect).

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::ACCEPT;
use http::{HeaderMap, Request, StatusCode};
use serde::Deserialize;
use tokio::time::Instant;
use url::Url;

use super::jwks::JwkSet;
use super::jwks_cache::cache_lifetime;
use crate::config::oauth::{OAuth, ServerIdentifier, is_loopback};
use crate::providers::http_client::HttpClient;
use crate::providers::{self, NetworkError};

/// Fetches the documents of an issuer.
#[derive(Debug)]
pub(super) struct JwksFetcher {
    client: HttpClient,
    issuer: ServerIdentifier,
    /// `None`: discovered in the issuer's metadata.
    keys: Option<Url>,
}

/// A JWKS and how long it may be cached.
#[derive(Debug)]
pub(super) struct FetchedKeys {
    pub(super) keys: JwkSet,
    pub(super) lifetime: Duration,
}

/// Why the keys are unavailable. For the operator's log; callers receive less detail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum JwksError {
    #[error("cannot fetch the issuer's {0}: {1}")]
    Unreachable(IssuerDocument, &'static str),
    #[error("request for the issuer's {0} failed with status {1}")]
    Status(IssuerDocument, StatusCode),
    #[error("the issuer's {0} is larger than 1 MiB")]
    TooLarge(IssuerDocument),
    #[error("the issuer's {0} is invalid; check `server.oauth.issuer` and `server.oauth.jwks_url`")]
    Invalid(IssuerDocument),
    #[error("issuer in the metadata does not match; `server.oauth.issuer` must equal it exactly")]
    IssuerMismatch,
    #[error("`jwks_uri` in the issuer's metadata is not `https`; set `server.oauth.jwks_url`")]
    InsecureUrl,
}

/// The requested document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IssuerDocument {
    Metadata,
    Keys,
}

/// Timeout for all documents together.
const FETCH_TIMEOUT: Duration = Duration::from_secs(10);
const MAX_DOCUMENT_BYTES: usize = 1 << 20;

impl JwksFetcher {
    pub(super) fn new(settings: &OAuth, client: HttpClient) -> JwksFetcher {
        let keys = settings.jwks_url.as_ref().map(|url| url.expose().clone());
        JwksFetcher { client, issuer: settings.issuer.clone(), keys }
    }

    pub(super) async fn fetch(&self) -> Result<FetchedKeys, JwksError> {
        let deadline = Instant::now() + FETCH_TIMEOUT;
        let url = match &self.keys {
            Some(url) => url.clone(),
            None => self.discover(deadline).await?,
        };
        let (headers, body) = self.get(IssuerDocument::Keys, &url, deadline).await?;
        let keys = JwkSet::parse(&body).ok_or(JwksError::Invalid(IssuerDocument::Keys))?;
        Ok(FetchedKeys { keys, lifetime: cache_lifetime(&headers) })
    }

    /// Repeated for every fetch, because issuers move their keys.
    async fn discover(&self, deadline: Instant) -> Result<Url, JwksError> {
        let mut fault = JwksError::Invalid(IssuerDocument::Metadata);
        for url in metadata_urls(self.issuer.url()) {
            match self.get(IssuerDocument::Metadata, &url, deadline).await {
                Ok((_, body)) => match jwks_url(&self.issuer, &body) {
                    Ok(url) => return Ok(url),
                    Err(other) => fault = other,
                },
                // The other URLs are on the same server.
                Err(unreachable @ JwksError::Unreachable(..)) => return Err(unreachable),
                Err(other) => fault = other,
            }
        }
        Err(fault)
    }

    /// Fetches a document. Redirects are not followed.
    async fn get(&self, what: IssuerDocument, url: &Url, deadline: Instant) -> Result<(HeaderMap, Bytes), JwksError> {
        let request = Request::get(url.as_str()).header(ACCEPT, "application/json").body(Bytes::new());
        let request = request.map_err(|_| JwksError::Invalid(what))?;
        let unreachable = |error| JwksError::Unreachable(what, network_error_text(&error));
        let mut answer = self.client.open(request, deadline).await.map_err(unreachable)?;
        if answer.status != StatusCode::OK {
            return Err(JwksError::Status(what, answer.status));
        }
        let mut body = BytesMut::new();
        while let Some(more) = answer.next(deadline).await.map_err(unreachable)? {
            if body.len() + more.len() > MAX_DOCUMENT_BYTES {
                return Err(JwksError::TooLarge(what));
            }
            body.extend_from_slice(&more);
        }
        Ok((answer.headers, body.freeze()))
    }
}

/// URLs of an issuer's metadata, in the order of the specifications.
fn metadata_urls(issuer: &Url) -> Vec<Url> {
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

fn jwks_url(issuer: &ServerIdentifier, metadata: &[u8]) -> Result<Url, JwksError> {
    #[derive(Deserialize)]
    struct Metadata {
        issuer: String,
        jwks_uri: String,
    }
    let metadata: Metadata =
        serde_json::from_slice(metadata).map_err(|_| JwksError::Invalid(IssuerDocument::Metadata))?;
    // Otherwise any document on that server could impersonate the issuer.
    if metadata.issuer != issuer.as_str() {
        return Err(JwksError::IssuerMismatch);
    }
    let url = Url::parse(&metadata.jwks_uri).map_err(|_| JwksError::Invalid(IssuerDocument::Metadata))?;
    // A remote issuer must not direct requests to this machine.
    let is_local = url.scheme() == "http" && is_loopback(&url) && is_loopback(issuer.url());
    if url.scheme() == "https" || is_local { Ok(url) } else { Err(JwksError::InsecureUrl) }
}

fn network_error_text(error: &providers::Error) -> &'static str {
    match error {
        providers::Error::Network(NetworkError::DnsFailure) => "DNS lookup failed",
        providers::Error::Network(NetworkError::Refused) => "connection refused",
        providers::Error::Network(NetworkError::Tls) => "TLS handshake failed",
        providers::Error::Timeout => "request timed out",
        _ => "connection closed",
    }
}

impl std::fmt::Display for IssuerDocument {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self {
            IssuerDocument::Metadata => "metadata",
            IssuerDocument::Keys => "JWKS document",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s05_metadata_is_looked_for_where_issuers_have_it() {
        let places = |issuer: &str| {
            let issuer: ServerIdentifier = issuer.parse().expect("an issuer");
            metadata_urls(issuer.url()).into_iter().map(String::from).collect::<Vec<_>>()
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
            jwks_url(&issuer.parse().expect("an issuer"), metadata.as_bytes()).map(String::from)
        };
        let (far, near) = ("https://a.example", "http://127.0.0.1:9");
        assert_eq!(ask(far, far, "https://keys.example/k"), Ok("https://keys.example/k".into()));
        assert_eq!(ask(near, near, "http://127.0.0.1:9/k"), Ok("http://127.0.0.1:9/k".into()));
        assert_eq!(ask(far, "https://a.example/", "https://keys.example/k"), Err(JwksError::IssuerMismatch));
        assert_eq!(ask(far, far, "http://keys.example/k"), Err(JwksError::InsecureUrl));
        assert_eq!(ask(far, far, "http://127.0.0.1:9/k"), Err(JwksError::InsecureUrl), "not on this machine");
        assert_eq!(ask(near, near, "http://10.0.0.1/k"), Err(JwksError::InsecureUrl));
        assert_eq!(ask(far, far, "file:///etc/passwd"), Err(JwksError::InsecureUrl));
        assert_eq!(ask(far, far, "/k"), Err(JwksError::Invalid(IssuerDocument::Metadata)));
    }
}

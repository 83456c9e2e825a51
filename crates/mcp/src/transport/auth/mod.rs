//! Authentication of HTTP callers: by token, or anonymous on loopback.

mod tokens;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use http::HeaderMap;
use http::header::AUTHORIZATION;

use super::rate_limit::RateLimit;
use crate::permissions::Permissions;
use crate::trust_state::TrustState;

pub use tokens::{Token, TokenSet};

/// Authentication that a listener requires.
#[derive(Clone, Default)]
pub enum Auth {
    /// None: every client that can connect is served. Refused at startup for non-loopback addresses.
    #[default]
    None,
    /// A token that this authority accepts.
    Required(Arc<dyn TokenVerifier>),
}

/// Validates tokens.
///
/// Its errors must not contain any part of a token.
pub trait TokenVerifier: Send + Sync + 'static {
    /// Validates a token without waiting. Called for every request, so it must be fast.
    fn verify_now(&self, token: &str) -> TokenVerdict;

    /// Called after [`TokenVerdict::Pending`]; may wait, for example until keys are fetched.
    fn verify<'a>(&'a self, token: &'a str) -> BoxFuture<'a, TokenVerdict> {
        Box::pin(async move { self.verify_now(token) })
    }

    /// Parameters of `WWW-Authenticate` in addition to the error, such as `resource_metadata="…"`.
    fn challenge(&self) -> Option<String> {
        None
    }

    /// The same for a caller with insufficient trust who could obtain a token with more scopes.
    fn insufficient_scope(&self, _holder: &TokenHolder) -> Option<String> {
        None
    }

    /// Protected resource metadata (RFC 9728) as JSON; `None` without an authorization server.
    fn resource_metadata(&self) -> Option<Arc<str>> {
        None
    }
}

/// Result of validating a token.
#[derive(Debug, Clone)]
pub enum TokenVerdict {
    Valid(TokenHolder),
    /// Invalid. The reason is returned to the client.
    Invalid(&'static str),
    /// Not decided yet: validation has to wait.
    Pending,
    /// Temporarily undecidable, through no fault of the caller.
    Unavailable(&'static str),
}

/// The holder of a token. Cheap to clone.
#[derive(Debug, Clone)]
pub struct TokenHolder {
    /// Name in logs, rate limits, sealed state and sessions.
    pub identity: Arc<str>,
    pub trust: TrustState,
    /// Permissions; unrestricted if `None`.
    pub permissions: Option<Arc<Permissions>>,
    /// Rate limit; that of the listener if `None`.
    pub rate_limit: Option<RateLimit>,
    /// The operator's own token: the share of connections of one identity does not apply.
    pub is_operator: bool,
}

/// Caller of a request according to its headers.
#[derive(Debug, Clone)]
pub(crate) enum Credential {
    /// No token is required.
    NotRequired,
    Valid(TokenHolder),
    Missing,
    Invalid(&'static str),
    Pending,
    Unavailable(&'static str),
}

pub(crate) const INVALID_TOKEN: &str = "invalid token";

impl Auth {
    /// Accepts any of these secrets. Callers are identified by index and have the trust level of the listener.
    pub fn bearer<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Auth {
        let token = |(number, secret): (usize, &str)| Token::new(&(number + 1).to_string(), secret, None);
        Auth::tokens(secrets.into_iter().enumerate().map(token))
    }

    pub fn tokens(tokens: impl IntoIterator<Item = Token>) -> Auth {
        Auth::Required(Arc::new(TokenSet::new(tokens)))
    }

    /// Authenticates without waiting.
    pub(crate) fn verify_now(&self, headers: &HeaderMap) -> Credential {
        let Auth::Required(authority) = self else { return Credential::NotRequired };
        match bearer_token(headers) {
            Err(presented) => presented,
            Ok(token) => authority.verify_now(token).into(),
        }
    }

    /// Authenticates, and waits if necessary.
    pub(crate) async fn verify(&self, headers: &HeaderMap) -> Credential {
        let Auth::Required(authority) = self else { return Credential::NotRequired };
        match bearer_token(headers) {
            Err(presented) => presented,
            Ok(token) => authority.verify(token).await.into(),
        }
    }

    pub(crate) fn verifier(&self) -> Option<&dyn TokenVerifier> {
        match self {
            Auth::None => None,
            Auth::Required(authority) => Some(&**authority),
        }
    }
}

/// The bearer token of a request.
fn bearer_token(headers: &HeaderMap) -> Result<&str, Credential> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let Some(value) = values.next() else { return Err(Credential::Missing) };
    // With two headers, a proxy in front of this server could use a different one.
    if values.next().is_some() {
        return Err(Credential::Invalid("multiple `Authorization` headers; send one"));
    }
    match value.to_str().ok().and_then(|text| text.split_once(' ')) {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") && !token.trim().is_empty() => Ok(token.trim()),
        _ => Err(Credential::Invalid("unsupported authorization scheme; send `Authorization: Bearer <token>`")),
    }
}

impl From<TokenVerdict> for Credential {
    fn from(verdict: TokenVerdict) -> Credential {
        match verdict {
            TokenVerdict::Valid(holder) if holder.trust.is_revoked() => Credential::Invalid(INVALID_TOKEN),
            TokenVerdict::Valid(holder) => Credential::Valid(holder),
            TokenVerdict::Invalid(why) => Credential::Invalid(why),
            TokenVerdict::Pending => Credential::Pending,
            TokenVerdict::Unavailable(why) => Credential::Unavailable(why),
        }
    }
}

impl std::fmt::Debug for Auth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Auth::None => "None",
            Auth::Required(_) => "Ask(…)",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trust::TrustLevel;

    fn presented(auth: &Auth, value: &str) -> Credential {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, value.parse().expect("header"));
        auth.verify_now(&headers)
    }

    #[test]
    fn s05_only_a_known_token_passes() {
        let auth = Auth::tokens([Token::new("a", "one", None), Token::new("b", "two", Some(TrustLevel::Trusted))]);
        for (value, identity, trust) in
            [("Bearer one", "token:a", TrustLevel::Untrusted), ("bearer two", "token:b", TrustLevel::Trusted)]
        {
            let Credential::Valid(holder) = presented(&auth, value) else { panic!("{value} is valid") };
            assert_eq!((&*holder.identity, holder.trust.current(TrustLevel::Untrusted)), (identity, Some(trust)));
        }
        for wrong in ["Bearer three", "Bearer", "Basic one", "Bearer ", "one"] {
            assert!(matches!(presented(&auth, wrong), Credential::Invalid(_)), "{wrong}");
        }
        assert!(matches!(auth.verify_now(&HeaderMap::new()), Credential::Missing));
        assert!(matches!(Auth::None.verify_now(&HeaderMap::new()), Credential::NotRequired));
    }

    #[test]
    fn s05_two_tokens_are_none() {
        let auth = Auth::bearer(["one"]);
        let mut headers = HeaderMap::new();
        headers.append(AUTHORIZATION, "Bearer one".parse().expect("header"));
        headers.append(AUTHORIZATION, "Bearer two".parse().expect("header"));
        assert!(matches!(auth.verify_now(&headers), Credential::Invalid(_)));
    }
}

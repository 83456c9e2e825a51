//! Authentication of HTTP callers: by token, or anonymous on loopback.

mod tokens;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use http::HeaderMap;
use http::header::AUTHORIZATION;

use super::rate::RateLimit;
use crate::grant::Grant;
use crate::standing::Standing;

pub use tokens::{Token, Tokens};

/// Authentication that a listener requires.
#[derive(Clone, Default)]
pub enum Auth {
    /// None: every client that can connect is served. Refused at startup for non-loopback addresses.
    #[default]
    None,
    /// A token that this authority accepts.
    Ask(Arc<dyn Authority>),
}

/// Validates tokens.
///
/// Its errors must not contain any part of a token.
pub trait Authority: Send + Sync + 'static {
    /// Validates a token without waiting. Called for every request, so it must be fast.
    fn look(&self, token: &str) -> Verdict;

    /// Called after [`Verdict::Unsure`]; may wait, for example until keys are fetched.
    fn find_out<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Verdict> {
        Box::pin(async move { self.look(token) })
    }

    /// Parameters of `WWW-Authenticate` in addition to the error, such as `resource_metadata="…"`.
    fn challenge(&self) -> Option<String> {
        None
    }

    /// The same for a caller with insufficient trust who could obtain a token with more scopes.
    fn insufficient(&self, _holder: &Holder) -> Option<String> {
        None
    }

    /// Protected resource metadata (RFC 9728) as JSON; `None` without an authorization server.
    fn resource_metadata(&self) -> Option<Arc<str>> {
        None
    }
}

/// Result of validating a token.
#[derive(Debug, Clone)]
pub enum Verdict {
    Known(Holder),
    /// Invalid. The reason is returned to the client.
    Refused(&'static str),
    /// Not decided yet: validation has to wait.
    Unsure,
    /// Temporarily undecidable, through no fault of the caller.
    Later(&'static str),
}

/// The holder of a token. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Holder {
    /// Name in logs, rate limits, sealed state and sessions.
    pub identity: Arc<str>,
    pub standing: Standing,
    /// Permissions; unrestricted if `None`.
    pub grant: Option<Arc<Grant>>,
    /// Rate limit; that of the listener if `None`.
    pub rate_limit: Option<RateLimit>,
}

/// Caller of a request according to its headers.
#[derive(Debug, Clone)]
pub(crate) enum Presented {
    /// No token is required.
    NotAsked,
    Valid(Holder),
    Missing,
    Wrong(&'static str),
    Unsure,
    Later(&'static str),
}

pub(crate) const NOT_VALID: &str = "the token is not valid";

impl Auth {
    /// Accepts any of these secrets. Callers are identified by index and have the trust level of the listener.
    pub fn bearer<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Auth {
        let token = |(number, secret): (usize, &str)| Token::new(&(number + 1).to_string(), secret, None);
        Auth::tokens(secrets.into_iter().enumerate().map(token))
    }

    pub fn tokens(tokens: impl IntoIterator<Item = Token>) -> Auth {
        Auth::Ask(Arc::new(Tokens::new(tokens)))
    }

    /// Authenticates without waiting.
    pub(crate) fn look(&self, headers: &HeaderMap) -> Presented {
        let Auth::Ask(authority) = self else { return Presented::NotAsked };
        match token(headers) {
            Err(presented) => presented,
            Ok(token) => authority.look(token).into(),
        }
    }

    /// Authenticates, and waits if necessary.
    pub(crate) async fn find_out(&self, headers: &HeaderMap) -> Presented {
        let Auth::Ask(authority) = self else { return Presented::NotAsked };
        match token(headers) {
            Err(presented) => presented,
            Ok(token) => authority.find_out(token).await.into(),
        }
    }

    pub(crate) fn authority(&self) -> Option<&dyn Authority> {
        match self {
            Auth::None => None,
            Auth::Ask(authority) => Some(&**authority),
        }
    }
}

/// The bearer token of a request.
fn token(headers: &HeaderMap) -> Result<&str, Presented> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let Some(value) = values.next() else { return Err(Presented::Missing) };
    // With two headers, a proxy in front of this server could use a different one.
    if values.next().is_some() {
        return Err(Presented::Wrong("send one `Authorization` header"));
    }
    match value.to_str().ok().and_then(|text| text.split_once(' ')) {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") && !token.trim().is_empty() => Ok(token.trim()),
        _ => Err(Presented::Wrong("send `Authorization: Bearer <token>`")),
    }
}

impl From<Verdict> for Presented {
    fn from(verdict: Verdict) -> Presented {
        match verdict {
            Verdict::Known(holder) if holder.standing.is_revoked() => Presented::Wrong(NOT_VALID),
            Verdict::Known(holder) => Presented::Valid(holder),
            Verdict::Refused(why) => Presented::Wrong(why),
            Verdict::Unsure => Presented::Unsure,
            Verdict::Later(why) => Presented::Later(why),
        }
    }
}

impl std::fmt::Debug for Auth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Auth::None => "None",
            Auth::Ask(_) => "Ask(…)",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trust::TrustLevel;

    fn presented(auth: &Auth, value: &str) -> Presented {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, value.parse().expect("header"));
        auth.look(&headers)
    }

    #[test]
    fn s05_only_a_known_token_passes() {
        let auth = Auth::tokens([Token::new("a", "one", None), Token::new("b", "two", Some(TrustLevel::Trusted))]);
        for (value, identity, trust) in
            [("Bearer one", "token:a", TrustLevel::Untrusted), ("bearer two", "token:b", TrustLevel::Trusted)]
        {
            let Presented::Valid(holder) = presented(&auth, value) else { panic!("{value} is valid") };
            assert_eq!((&*holder.identity, holder.standing.now(TrustLevel::Untrusted)), (identity, Some(trust)));
        }
        for wrong in ["Bearer three", "Bearer", "Basic one", "Bearer ", "one"] {
            assert!(matches!(presented(&auth, wrong), Presented::Wrong(_)), "{wrong}");
        }
        assert!(matches!(auth.look(&HeaderMap::new()), Presented::Missing));
        assert!(matches!(Auth::None.look(&HeaderMap::new()), Presented::NotAsked));
    }

    #[test]
    fn s05_two_tokens_are_none() {
        let auth = Auth::bearer(["one"]);
        let mut headers = HeaderMap::new();
        headers.append(AUTHORIZATION, "Bearer one".parse().expect("header"));
        headers.append(AUTHORIZATION, "Bearer two".parse().expect("header"));
        assert!(matches!(auth.look(&headers), Presented::Wrong(_)));
    }
}

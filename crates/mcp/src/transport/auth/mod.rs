//! Who is calling over HTTP: the holder of a token, or nobody in particular on loopback.

mod tokens;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use http::HeaderMap;
use http::header::AUTHORIZATION;

use super::rate::RateLimit;
use crate::grant::Grant;
use crate::standing::Standing;

pub use tokens::{Token, Tokens};

/// What a listener asks of its callers.
#[derive(Clone, Default)]
pub enum Auth {
    /// Anyone who can connect. Refused at start for addresses beyond loopback.
    #[default]
    None,
    /// A token this authority knows.
    Ask(Arc<dyn Authority>),
}

/// Tells who holds a token.
///
/// Whatever it reads, its answers carry no part of a token.
pub trait Authority: Send + Sync + 'static {
    /// What is known without waiting. Asked for every request, so it must be quick.
    fn look(&self, token: &str) -> Verdict;

    /// Asked after [`Verdict::Unsure`]; may wait, for keys that have to be fetched, say.
    fn find_out<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Verdict> {
        Box::pin(async move { self.look(token) })
    }

    /// Parameters of `WWW-Authenticate` besides the error, such as `resource_metadata="…"`.
    fn challenge(&self) -> Option<String> {
        None
    }

    /// The same for a holder who is refused something for lack of trust, if another token of theirs could have more.
    fn insufficient(&self, _holder: &Holder) -> Option<String> {
        None
    }

    /// The document of RFC 9728 about this server, as JSON; none where no authorization server is used.
    fn resource_metadata(&self) -> Option<Arc<str>> {
        None
    }
}

/// What an authority says of a token.
#[derive(Debug, Clone)]
pub enum Verdict {
    Known(Holder),
    /// Not valid, and why, in words that may be told to whoever presented it.
    Refused(&'static str),
    /// Cannot be told at once.
    Unsure,
}

/// The holder of a token. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Holder {
    /// A name for logs, limits, sealed state and sessions.
    pub identity: Arc<str>,
    pub standing: Standing,
    /// What it may use; all, if none.
    pub grant: Option<Arc<Grant>>,
    /// How much it may send; as the listener says, if none.
    pub rate_limit: Option<RateLimit>,
}

/// Who a request comes from, as far as its headers tell.
#[derive(Debug, Clone)]
pub(crate) enum Presented {
    /// No token is asked for.
    NotAsked,
    Valid(Holder),
    Missing,
    Wrong(&'static str),
    Unsure,
}

pub(crate) const NOT_VALID: &str = "the token is not valid";

impl Auth {
    /// Any of these secrets; their bearers are called by number and trusted as their listener says.
    pub fn bearer<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Auth {
        let token = |(number, secret): (usize, &str)| Token::new(&(number + 1).to_string(), secret, None);
        Auth::tokens(secrets.into_iter().enumerate().map(token))
    }

    pub fn tokens(tokens: impl IntoIterator<Item = Token>) -> Auth {
        Auth::Ask(Arc::new(Tokens::new(tokens)))
    }

    /// What can be told at once.
    pub(crate) fn look(&self, headers: &HeaderMap) -> Presented {
        let Auth::Ask(authority) = self else { return Presented::NotAsked };
        match token(headers) {
            Err(presented) => presented,
            Ok(token) => authority.look(token).into(),
        }
    }

    /// What can be told after a while.
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
    // Two would let whoever stands before us and us read different ones.
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

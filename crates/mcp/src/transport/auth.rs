//! Who is calling over HTTP: a bearer token, or nobody in particular on loopback.

use std::sync::Arc;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::trust::TrustLevel;

/// What a listener asks of its callers.
#[derive(Clone, Default)]
pub enum Auth {
    /// Anyone who can connect. Refused at start for addresses beyond loopback.
    #[default]
    None,
    /// One of these tokens.
    Bearer(Vec<Token>),
}

/// A secret that names its bearer. Kept as a digest, compared in constant time.
#[derive(Clone)]
pub struct Token {
    digest: [u8; 32],
    name: Arc<str>,
    /// How far the bearer is trusted, wherever the call comes from; `None` leaves it to the listener.
    trust: Option<TrustLevel>,
}

/// Who a request comes from, as far as its headers tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Presented {
    /// No token is asked for.
    NotAsked,
    Valid(Bearer),
    Missing,
    Wrong,
}

/// The holder of a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Bearer {
    pub(crate) identity: Arc<str>,
    pub(crate) trust: Option<TrustLevel>,
}

impl Token {
    /// `name` is what logs and the audit call the bearer.
    pub fn new(name: &str, secret: &str, trust: Option<TrustLevel>) -> Token {
        Token { digest: Sha256::digest(secret).into(), name: format!("token:{name}").into(), trust }
    }
}

impl Auth {
    /// Any of these secrets; their bearers are called by number and trusted as their listener says.
    pub fn bearer<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Auth {
        let token = |(number, secret): (usize, &str)| Token::new(&(number + 1).to_string(), secret, None);
        Auth::Bearer(secrets.into_iter().enumerate().map(token).collect())
    }

    pub(crate) fn check(&self, headers: &HeaderMap) -> Presented {
        let Auth::Bearer(tokens) = self else { return Presented::NotAsked };
        let Some(value) = headers.get(AUTHORIZATION) else { return Presented::Missing };
        let Some((scheme, secret)) = value.to_str().ok().and_then(|text| text.split_once(' ')) else {
            return Presented::Wrong;
        };
        if !scheme.eq_ignore_ascii_case("bearer") {
            return Presented::Wrong;
        }
        let presented: [u8; 32] = Sha256::digest(secret.trim()).into();
        // Every token is compared, and each comparison reads all bytes: time tells nothing.
        let matching = tokens
            .iter()
            .fold(None, |found, token| if bool::from(token.digest.ct_eq(&presented)) { Some(token) } else { found });
        match matching {
            Some(token) => Presented::Valid(Bearer { identity: token.name.clone(), trust: token.trust }),
            None => Presented::Wrong,
        }
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Token").field(&self.name).field(&self.trust).finish()
    }
}

impl std::fmt::Debug for Auth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Auth::None => f.write_str("None"),
            Auth::Bearer(tokens) => write!(f, "Bearer({} tokens)", tokens.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn presented(auth: &Auth, value: &str) -> Presented {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, value.parse().expect("header"));
        auth.check(&headers)
    }

    #[test]
    fn s05_only_a_known_token_passes() {
        let auth = Auth::Bearer(vec![Token::new("a", "one", None), Token::new("b", "two", Some(TrustLevel::Trusted))]);
        let bearer = |identity: &str, trust| Presented::Valid(Bearer { identity: identity.into(), trust });
        assert_eq!(presented(&auth, "Bearer one"), bearer("token:a", None));
        assert_eq!(presented(&auth, "bearer two"), bearer("token:b", Some(TrustLevel::Trusted)));
        for wrong in ["Bearer three", "Bearer", "Basic one", "Bearer ", "one"] {
            assert_eq!(presented(&auth, wrong), Presented::Wrong, "{wrong}");
        }
        assert_eq!(auth.check(&HeaderMap::new()), Presented::Missing);
        assert_eq!(Auth::None.check(&HeaderMap::new()), Presented::NotAsked);
    }

    #[test]
    fn s01_tokens_cannot_be_printed() {
        let token = Token::new("laptop", "secret", None);
        assert_eq!(format!("{token:?}"), r#"Token("token:laptop", None)"#);
        assert_eq!(format!("{:?}", Auth::Bearer(vec![token])), "Bearer(1 tokens)");
    }
}

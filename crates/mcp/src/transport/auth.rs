//! Who is calling over HTTP: a bearer token, or nobody in particular on loopback.

use http::HeaderMap;
use http::header::AUTHORIZATION;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// What a listener asks of its callers.
#[derive(Clone, Default)]
pub enum Auth {
    /// Anyone who can connect. Refused at start for addresses beyond loopback.
    #[default]
    None,
    /// One of these tokens. Kept as digests, compared in constant time.
    Bearer(Vec<[u8; 32]>),
}

/// Who a request comes from, as far as its headers tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Presented {
    /// No token is asked for.
    NotAsked,
    Valid,
    Missing,
    Wrong,
}

impl Auth {
    pub fn bearer<T: AsRef<[u8]>>(tokens: impl IntoIterator<Item = T>) -> Auth {
        Auth::Bearer(tokens.into_iter().map(|token| Sha256::digest(token).into()).collect())
    }

    pub(crate) fn check(&self, headers: &HeaderMap) -> Presented {
        let Auth::Bearer(tokens) = self else { return Presented::NotAsked };
        let Some(value) = headers.get(AUTHORIZATION) else { return Presented::Missing };
        let Some((scheme, token)) = value.to_str().ok().and_then(|text| text.split_once(' ')) else {
            return Presented::Wrong;
        };
        if !scheme.eq_ignore_ascii_case("bearer") {
            return Presented::Wrong;
        }
        let presented: [u8; 32] = Sha256::digest(token.trim()).into();
        // Every token is compared, and each comparison reads all bytes: time tells nothing.
        let matches = tokens.iter().fold(0u8, |found, token| found | token.ct_eq(&presented).unwrap_u8());
        if matches == 1 { Presented::Valid } else { Presented::Wrong }
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
        let auth = Auth::bearer(["one", "two"]);
        assert_eq!(presented(&auth, "Bearer one"), Presented::Valid);
        assert_eq!(presented(&auth, "bearer two"), Presented::Valid);
        for wrong in ["Bearer three", "Bearer", "Basic one", "Bearer ", "one"] {
            assert_eq!(presented(&auth, wrong), Presented::Wrong, "{wrong}");
        }
        assert_eq!(auth.check(&HeaderMap::new()), Presented::Missing);
        assert_eq!(Auth::None.check(&HeaderMap::new()), Presented::NotAsked);
    }

    #[test]
    fn s01_tokens_cannot_be_printed() {
        assert_eq!(format!("{:?}", Auth::bearer(["secret"])), "Bearer(1 tokens)");
    }
}

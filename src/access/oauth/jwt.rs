//! JWT validation. No I/O except for the clock. Reasons for rejection never contain parts of the token.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use corbie_mcp::TrustLevel;
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Algorithm, Validation, dangerous, decode, decode_header};
use serde::Deserialize;

use super::identity::identity;
use super::jwks::VerificationKey;
use crate::config::oauth::{self, OAuth};

/// Requirements for every token.
#[derive(Debug)]
pub(super) struct JwtValidator {
    issuer: String,
    algorithms: Vec<Algorithm>,
    skew: Duration,
    scopes: Vec<(String, TrustLevel)>,
    /// Without an algorithm: it is set for each token, to an algorithm that the key permits.
    validation: Validation,
}

/// Unverified header fields of a token.
#[derive(Debug)]
pub(super) struct UnverifiedHeader {
    pub(super) key: Option<String>,
    pub(super) algorithm: Algorithm,
}

/// The holder of a valid token.
#[derive(Debug, PartialEq)]
pub(super) struct VerifiedToken {
    pub(super) identity: String,
    pub(super) trust: TrustLevel,
    pub(super) until: SystemTime,
}

/// Longer tokens are rejected. Typical ones have one or two kilobytes.
pub(super) const MAX_TOKEN_BYTES: usize = 8 << 10;

pub(super) const TOO_LONG: &str = "token is longer than 8 KiB";
pub(super) const UNREADABLE: &str = "token is not a valid signed JWT";
pub(super) const UNKNOWN_KEY: &str = "token is signed with an unknown key";
pub(super) const WRONG_KEY_USE: &str = "token is signed with a key that is not intended for this algorithm or use";
const UNKNOWN_KIND: &str = "token is not an access token";
const UNKNOWN_EXTENSIONS: &str = "token requires unsupported extensions (`crit`)";
const ALGORITHM: &str = "signature algorithm of the token is not allowed";
const SIGNATURE: &str = "invalid token signature";
const EXPIRED: &str = "token has expired";
const NOT_YET: &str = "token is not valid yet";
const NO_EXPIRY: &str = "token has no expiration time (`exp`)";
const UNKNOWN_ISSUER: &str = "unknown token issuer";
const OTHER_AUDIENCE: &str = "token audience does not match";
const NO_SUBJECT: &str = "token has no subject";

/// The claims used. A token with a claim of another type, or with a duplicate claim, is rejected.
#[derive(Deserialize)]
struct Claims {
    exp: f64,
    iat: Option<f64>,
    sub: Option<String>,
    client_id: Option<String>,
    azp: Option<String>,
    scope: Option<ScopeClaim>,
    scp: Option<ScopeClaim>,
}

/// A space-separated string in RFC 9068; some issuers use lists.
#[derive(Deserialize)]
#[serde(untagged)]
enum ScopeClaim {
    Text(String),
    List(Vec<String>),
}

impl JwtValidator {
    pub(super) fn new(settings: &OAuth, scopes: Vec<(String, TrustLevel)>) -> JwtValidator {
        let resource = &settings.resource;
        let mut audiences = vec![resource.as_str().to_owned()];
        // Without a path, the resource has two spellings.
        if resource.url().path() == "/" {
            let bare = resource.as_str().trim_end_matches('/');
            audiences.extend([bare.to_owned(), format!("{bare}/")]);
        }
        audiences.extend(settings.audiences.iter().cloned());
        let mut validation = Validation::new(Algorithm::RS256);
        validation.algorithms.clear();
        validation.leeway = settings.clock_skew.get().as_secs();
        validation.validate_nbf = true;
        validation.set_audience(&audiences);
        validation.set_issuer(&[settings.issuer.as_str()]);
        validation.set_required_spec_claims(&["exp", "iss", "aud"]);
        JwtValidator {
            issuer: settings.issuer.as_str().to_owned(),
            algorithms: settings.algorithms.iter().map(algorithm).collect(),
            skew: Duration::from_secs(validation.leeway),
            scopes,
            validation,
        }
    }

    /// Parses the unverified header of a token and checks the issuer. Key references in the header are ignored: keys
    /// come only from the issuer.
    pub(super) fn parse_header(&self, token: &str) -> Result<UnverifiedHeader, &'static str> {
        #[derive(Deserialize)]
        struct IssuerClaim {
            iss: String,
        }
        let head = decode_header(token).map_err(|_| UNREADABLE)?;
        if head.crit.is_some() {
            return Err(UNKNOWN_EXTENSIONS);
        }
        if !head.typ.as_deref().is_none_or(is_access_token) {
            return Err(UNKNOWN_KIND);
        }
        if !self.algorithms.contains(&head.alg) {
            return Err(ALGORITHM);
        }
        // Checked before the key lookup, to report the issuer as the reason: its keys would not be found.
        let issued: IssuerClaim = dangerous::insecure_decode_claims(token).map_err(|_| UNREADABLE)?;
        if issued.iss != self.issuer {
            return Err(UNKNOWN_ISSUER);
        }
        Ok(UnverifiedHeader { key: head.kid, algorithm: head.alg })
    }

    /// Verifies a token with a key and returns its holder.
    pub(super) fn verify(
        &self,
        token: &str,
        claimed: &UnverifiedHeader,
        key: &VerificationKey,
    ) -> Result<VerifiedToken, &'static str> {
        let validation = Validation { algorithms: vec![claimed.algorithm], ..self.validation.clone() };
        let claims = decode::<Claims>(token, &key.material, &validation).map_err(|error| reason(error.kind()))?.claims;
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        if claims.iat.is_some_and(|issued| issued > (since_epoch + self.skew).as_secs_f64()) {
            return Err(NOT_YET);
        }
        let expires = Duration::try_from_secs_f64(claims.exp).ok().and_then(|exp| exp.checked_add(self.skew));
        let until = expires.and_then(|expires| UNIX_EPOCH.checked_add(expires)).ok_or(UNREADABLE)?;
        let client = claims.client_id.as_deref().or(claims.azp.as_deref());
        let identity = identity(client, claims.sub.as_deref()).ok_or(NO_SUBJECT)?;
        Ok(VerifiedToken { identity, trust: self.trust(&claims), until })
    }

    /// The highest trust level of its scopes.
    fn trust(&self, claims: &Claims) -> TrustLevel {
        let given = || claims.scope.iter().chain(&claims.scp).flat_map(ScopeClaim::iter);
        let levels =
            self.scopes.iter().filter(|(scope, _)| given().any(|given| given == scope)).map(|(_, level)| *level);
        levels.max().unwrap_or(TrustLevel::Untrusted)
    }
}

impl ScopeClaim {
    fn iter(&self) -> Box<dyn Iterator<Item = &str> + '_> {
        match self {
            ScopeClaim::Text(text) => Box::new(text.split(' ')),
            ScopeClaim::List(list) => Box::new(list.iter().map(String::as_str)),
        }
    }
}

/// RFC 9068 requires `at+jwt`; most issuers use `JWT`.
fn is_access_token(kind: &str) -> bool {
    let kind = kind.to_ascii_lowercase();
    matches!(kind.strip_prefix("application/").unwrap_or(&kind), "jwt" | "at+jwt")
}

fn reason(kind: &ErrorKind) -> &'static str {
    match kind {
        ErrorKind::InvalidSignature => SIGNATURE,
        ErrorKind::InvalidAlgorithm | ErrorKind::UnsupportedAlgorithm => ALGORITHM,
        ErrorKind::ExpiredSignature => EXPIRED,
        ErrorKind::ImmatureSignature => NOT_YET,
        ErrorKind::InvalidIssuer => UNKNOWN_ISSUER,
        ErrorKind::InvalidAudience => OTHER_AUDIENCE,
        ErrorKind::MissingRequiredClaim(claim) => match claim.as_str() {
            "exp" => NO_EXPIRY,
            "aud" => OTHER_AUDIENCE,
            _ => UNREADABLE,
        },
        _ => UNREADABLE,
    }
}

fn algorithm(algorithm: &oauth::Algorithm) -> Algorithm {
    match algorithm {
        oauth::Algorithm::RS256 => Algorithm::RS256,
        oauth::Algorithm::RS384 => Algorithm::RS384,
        oauth::Algorithm::RS512 => Algorithm::RS512,
        oauth::Algorithm::PS256 => Algorithm::PS256,
        oauth::Algorithm::PS384 => Algorithm::PS384,
        oauth::Algorithm::PS512 => Algorithm::PS512,
        oauth::Algorithm::ES256 => Algorithm::ES256,
        oauth::Algorithm::ES384 => Algorithm::ES384,
        oauth::Algorithm::EdDSA => Algorithm::EdDSA,
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::access::oauth::jwks::{JwkSet, KeyLookup};
    use crate::access::oauth::ring_crypto::install_ring_provider;

    fn rules(resource: &str) -> JwtValidator {
        let settings = json!({"issuer": "https://a.example", "resource": resource});
        JwtValidator::new(&serde_json::from_value(settings).expect("settings"), Vec::new())
    }

    #[test]
    fn s05_a_place_without_a_path_has_two_spellings() {
        let audiences = |resource| rules(resource).validation.aud.expect("audiences");
        for resource in ["https://b.example", "https://b.example/"] {
            let audiences = audiences(resource);
            assert!(audiences.contains("https://b.example") && audiences.contains("https://b.example/"));
        }
        assert_eq!(audiences("https://b.example/mcp").len(), 1);
    }

    /// An arbitrary value that contains relevant names.
    fn anything() -> impl Strategy<Value = serde_json::Value> {
        let word = prop_oneof![
            Just(json!("https://a.example")),
            Just(json!("ES256")),
            Just(json!("none")),
            Just(json!("JWT")),
            Just(json!(null)),
            Just(json!([])),
            any::<f64>().prop_map(|number| json!(number)),
            any::<i64>().prop_map(|number| json!(number)),
            ".{0,8}".prop_map(|text| json!(text)),
        ];
        let name = prop::sample::select(vec![
            "alg", "typ", "kid", "crit", "jwk", "x5c", "iss", "aud", "exp", "nbf", "iat", "sub", "scope", "scp", "azp",
        ]);
        prop::collection::hash_map(name, word, 0..8).prop_map(|members| json!(members))
    }

    proptest! {
        /// Unsigned tokens must be rejected without panics.
        #[test]
        fn s05_whatever_is_not_signed_is_refused(head in anything(), body in anything(), end in "[A-Za-z0-9_-]{0,90}|.{0,20}") {
            install_ring_provider();
            let document = json!({"keys": [{"kty": "EC", "crv": "P-256", "x": "AQ", "y": "Ag"}]}).to_string();
            let keys = JwkSet::parse(document.as_bytes()).expect("keys");
            let encode = |value: &serde_json::Value| URL_SAFE_NO_PAD.encode(value.to_string());
            let token = format!("{}.{}.{end}", encode(&head), encode(&body));
            let rules = rules("https://b.example/mcp");
            if let Ok(claimed) = rules.parse_header(&token)
                && let KeyLookup::Key(key) = keys.find(claimed.key.as_deref(), claimed.algorithm)
            {
                prop_assert!(rules.verify(&token, &claimed, key).is_err());
            }
            prop_assert!(rules.parse_header(&end).is_err());
        }
    }
}

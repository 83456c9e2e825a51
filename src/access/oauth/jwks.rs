//! JSON Web Key Set: parsing, and selection of the key for a token.

use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, KeyOperations, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey, DecodingKeyKind};
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

/// The supported keys of an issuer.
#[derive(Debug)]
pub(super) struct JwkSet(Vec<VerificationKey>);

#[derive(Debug)]
pub(super) struct VerificationKey {
    /// The `kid`.
    id: Option<String>,
    pub(super) fingerprint: KeyFingerprint,
    /// Allowed algorithms: those of the key type, reduced to one if the issuer specifies `alg`.
    algorithms: Vec<Algorithm>,
    pub(super) material: DecodingKey,
}

/// Thumbprint that identifies a key.
pub(super) type KeyFingerprint = [u8; 32];

/// Result of searching the key of a token.
#[derive(Debug)]
pub(super) enum KeyLookup<'keys> {
    Key(&'keys VerificationKey),
    /// The key exists but does not permit the algorithm.
    WrongUse,
    /// There is no such key, or not yet.
    Unknown,
}

/// Issuers publish only a few keys.
const MAX_KEYS: usize = 100;

impl JwkSet {
    /// Parses a JWKS (RFC 7517). Keys of unknown types are skipped. Returns `None` if the document is not a JWKS.
    pub(super) fn parse(document: &[u8]) -> Option<JwkSet> {
        #[derive(Deserialize)]
        struct JwksDocument {
            keys: Vec<Value>,
        }
        let JwksDocument { keys } = serde_json::from_slice(document).ok()?;
        Some(JwkSet(keys.into_iter().take(MAX_KEYS).filter_map(VerificationKey::parse).collect()))
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn contains(&self, print: &KeyFingerprint) -> bool {
        self.0.iter().any(|key| key.fingerprint == *print)
    }

    #[cfg(test)]
    pub(super) fn fingerprints(&self) -> Vec<KeyFingerprint> {
        self.0.iter().map(|key| key.fingerprint).collect()
    }

    /// The key that a token names. Without a `kid`, the only key for the algorithm.
    pub(super) fn find(&self, id: Option<&str>, algorithm: Algorithm) -> KeyLookup<'_> {
        let named = || self.0.iter().filter(|key| id.is_none() || key.id.as_deref() == id);
        let mut fit = named().filter(|key| key.algorithms.contains(&algorithm));
        match (fit.next(), fit.next()) {
            (Some(_), Some(_)) if id.is_none() => KeyLookup::WrongUse,
            (Some(key), _) => KeyLookup::Key(key),
            (None, _) if id.is_some() && named().next().is_some() => KeyLookup::WrongUse,
            (None, _) => KeyLookup::Unknown,
        }
    }
}

impl VerificationKey {
    fn parse(value: Value) -> Option<VerificationKey> {
        let jwk = Jwk::deserialize(value).ok()?;
        let is_for_signatures =
            jwk.common.public_key_use.as_ref().is_none_or(|usage| *usage == PublicKeyUse::Signature);
        let operations = jwk.common.key_operations.as_ref();
        let may_verify = operations.is_none_or(|operations| operations.contains(&KeyOperations::Verify));
        let only = jwk.common.key_algorithm;
        let algorithms = algorithms_of_type(&jwk.algorithm).iter().copied();
        let algorithms: Vec<Algorithm> =
            algorithms.filter(|algorithm| only.is_none_or(|only| only == KeyAlgorithm::from(*algorithm))).collect();
        if algorithms.is_empty() || !is_for_signatures || !may_verify {
            return None;
        }
        let material = DecodingKey::from_jwk(&jwk).ok()?;
        let id = jwk.common.key_id;
        Some(VerificationKey {
            fingerprint: fingerprint(id.as_deref(), &algorithms, &material),
            id,
            algorithms,
            material,
        })
    }
}

/// Algorithms of a key type. Symmetric keys are excluded: they can sign as well as verify.
fn algorithms_of_type(parameters: &AlgorithmParameters) -> &'static [Algorithm] {
    match parameters {
        AlgorithmParameters::RSA(_) => {
            use Algorithm::*;
            &[RS256, RS384, RS512, PS256, PS384, PS512]
        }
        AlgorithmParameters::EllipticCurve(key) if key.curve == EllipticCurve::P256 => &[Algorithm::ES256],
        AlgorithmParameters::EllipticCurve(key) if key.curve == EllipticCurve::P384 => &[Algorithm::ES384],
        AlgorithmParameters::OctetKeyPair(key) if key.curve == EllipticCurve::Ed25519 => &[Algorithm::EdDSA],
        _ => &[],
    }
}

fn fingerprint(id: Option<&str>, algorithms: &[Algorithm], material: &DecodingKey) -> KeyFingerprint {
    let mut digest = Sha256::new();
    let mut add = |part: &[u8]| {
        digest.update((part.len() as u64).to_le_bytes());
        digest.update(part);
    };
    add(id.unwrap_or_default().as_bytes());
    add(format!("{algorithms:?}").as_bytes());
    match material.kind() {
        DecodingKeyKind::SecretOrDer(point) => add(point),
        DecodingKeyKind::RsaModulusExponent { n, e } => {
            add(n);
            add(e);
        }
    }
    digest.finalize().into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn set(keys: Value) -> JwkSet {
        JwkSet::parse(json!({ "keys": keys }).to_string().as_bytes()).expect("a document of keys")
    }

    fn curve(more: Value) -> Value {
        let mut key = json!({"kty": "EC", "crv": "P-256", "x": "AQ", "y": "Ag"});
        key.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        key
    }

    #[test]
    fn s05_a_key_is_for_what_its_type_and_its_issuer_say() {
        let rsa = json!({"kty": "RSA", "kid": "r", "n": "AQ", "e": "AQAB"});
        let keys = set(
            json!([rsa, curve(json!({"kid": "e"})), {"kty": "RSA", "kid": "p", "alg": "PS256", "n": "AQ", "e": "Aw"}]),
        );
        assert!(matches!(keys.find(Some("r"), Algorithm::RS256), KeyLookup::Key(_)));
        assert!(matches!(keys.find(Some("r"), Algorithm::ES256), KeyLookup::WrongUse));
        assert!(matches!(keys.find(Some("e"), Algorithm::RS256), KeyLookup::WrongUse));
        assert!(matches!(keys.find(Some("e"), Algorithm::ES384), KeyLookup::WrongUse), "another curve");
        assert!(matches!(keys.find(Some("p"), Algorithm::RS256), KeyLookup::WrongUse), "the issuer says for what");
        assert!(matches!(keys.find(Some("p"), Algorithm::PS256), KeyLookup::Key(_)));
        assert!(matches!(keys.find(Some("x"), Algorithm::RS256), KeyLookup::Unknown));
    }

    #[test]
    fn s05_secrets_and_keys_for_other_uses_are_left_out() {
        let unfit = json!([
            {"kty": "oct", "kid": "s", "k": "c2VjcmV0"},
            {"kty": "oct", "kid": "s", "alg": "RS256", "k": "c2VjcmV0"},
            curve(json!({"use": "enc"})),
            curve(json!({"key_ops": ["sign"]})),
            curve(json!({"alg": "HS256"})),
            curve(json!({"alg": "ES512"})),
            {"kty": "EC", "crv": "P-521", "x": "AQ", "y": "Ag"},
            {"kty": "OKP", "crv": "X25519", "x": "AQ"},
            {"kty": "AKP", "alg": "ML-DSA-44", "pub": "AQ"},
            {"kty": "RSA"},
            "no key",
        ]);
        assert_eq!(set(unfit).len(), 0);
        assert!(JwkSet::parse(b"<html>").is_none() && JwkSet::parse(b"{}").is_none());
        let many: Vec<Value> = (0..2 * MAX_KEYS).map(|id| curve(json!({"kid": id.to_string()}))).collect();
        assert_eq!(set(many.into()).len(), MAX_KEYS);
    }

    #[test]
    fn s05_a_token_that_names_no_key_has_the_only_one_or_none() {
        let one = set(json!([curve(json!({"kid": "a"})), {"kty": "OKP", "crv": "Ed25519", "kid": "b", "x": "AQ"}]));
        assert!(matches!(one.find(None, Algorithm::ES256), KeyLookup::Key(_)));
        assert!(matches!(one.find(None, Algorithm::RS256), KeyLookup::Unknown));
        let two = set(json!([curve(json!({"kid": "a"})), curve(json!({"kid": "b"}))]));
        assert!(matches!(two.find(None, Algorithm::ES256), KeyLookup::WrongUse));
    }

    #[test]
    fn a_key_is_another_when_anything_of_it_changes() {
        let print = |key: Value| set(json!([key])).0[0].fingerprint;
        let usual = print(curve(json!({"kid": "a"})));
        assert_eq!(usual, print(curve(json!({"kid": "a", "use": "sig"}))));
        for other in [json!({"kid": "b"}), json!({"kid": "a", "x": "Aw"}), json!({})] {
            assert_ne!(usual, print(curve(other)));
        }
    }
}

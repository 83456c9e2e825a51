//! Issuer keys and JWT signing. Hand-written, so that a test can also sign tokens no library would.

use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair,
    RSA_PKCS1_SHA256, RSA_PKCS1_SHA384, RSA_PKCS1_SHA512, RSA_PSS_SHA256, RSA_PSS_SHA384, RSA_PSS_SHA512, RsaKeyPair,
};
use serde_json::{Value, json};

/// A key with an id.
pub(crate) struct Signer {
    pub(crate) id: String,
    /// The `alg` of its tokens.
    pub(crate) algorithm: &'static str,
    key: SigningKey,
}

enum SigningKey {
    Rsa(Box<RsaKeyPair>),
    Ecdsa(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

const RSA_KEY_PEM: &str = include_str!("rsa-test-key.pem");

impl Signer {
    /// A new key; for RSA always the same one.
    pub(crate) fn new(id: &str, algorithm: &'static str) -> Signer {
        let random = SystemRandom::new();
        let curve = match algorithm {
            "ES384" => &ECDSA_P384_SHA384_FIXED_SIGNING,
            _ => &ECDSA_P256_SHA256_FIXED_SIGNING,
        };
        let pair = match algorithm {
            "ES256" | "ES384" => {
                let document = EcdsaKeyPair::generate_pkcs8(curve, &random).unwrap();
                SigningKey::Ecdsa(EcdsaKeyPair::from_pkcs8(curve, document.as_ref(), &random).unwrap())
            }
            "EdDSA" => {
                let document = Ed25519KeyPair::generate_pkcs8(&random).unwrap();
                SigningKey::Ed25519(Ed25519KeyPair::from_pkcs8(document.as_ref()).unwrap())
            }
            _ => {
                let text: String = RSA_KEY_PEM.lines().skip_while(|line| !line.starts_with("--")).collect();
                let inner = text.split("-----").nth(2).unwrap();
                SigningKey::Rsa(Box::new(RsaKeyPair::from_pkcs8(&STANDARD.decode(inner).unwrap()).unwrap()))
            }
        };
        Signer { id: id.into(), algorithm, key: pair }
    }

    /// The key as a JWK.
    pub(crate) fn jwk(&self) -> Value {
        let mut key = match &self.key {
            SigningKey::Rsa(pair) => {
                let public = ring::rsa::PublicKeyComponents::<Vec<u8>>::from(pair.public());
                json!({ "kty": "RSA", "n": encode(&public.n), "e": encode(&public.e) })
            }
            SigningKey::Ecdsa(pair) => {
                let point = &pair.public_key().as_ref()[1..];
                let (x, y) = point.split_at(point.len() / 2);
                let curve = if point.len() == 64 { "P-256" } else { "P-384" };
                json!({ "kty": "EC", "crv": curve, "x": encode(x), "y": encode(y) })
            }
            SigningKey::Ed25519(pair) => {
                json!({ "kty": "OKP", "crv": "Ed25519", "x": encode(pair.public_key().as_ref()) })
            }
        };
        key["kid"] = self.id.as_str().into();
        key["use"] = "sig".into();
        key
    }

    /// The HMAC secret of an attacker who uses the public key as a secret.
    pub(crate) fn public_bytes(&self) -> Vec<u8> {
        match &self.key {
            SigningKey::Rsa(pair) => pair.public().as_ref().to_vec(),
            SigningKey::Ecdsa(pair) => pair.public_key().as_ref().to_vec(),
            SigningKey::Ed25519(pair) => pair.public_key().as_ref().to_vec(),
        }
    }

    pub(crate) fn token(&self, claims: &Value) -> String {
        self.token_with(json!({}), claims)
    }

    /// A token with additional or replaced header members.
    pub(crate) fn token_with(&self, more: Value, claims: &Value) -> String {
        let mut head = json!({ "alg": self.algorithm, "typ": "at+jwt", "kid": self.id });
        head.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        head.as_object_mut().unwrap().retain(|_, value| !value.is_null());
        self.sign(&head.to_string(), &claims.to_string())
    }

    pub(crate) fn sign(&self, head: &str, claims: &str) -> String {
        let message = format!("{}.{}", encode(head.as_bytes()), encode(claims.as_bytes()));
        let signature = self.signature(message.as_bytes());
        format!("{message}.{}", encode(&signature))
    }

    fn signature(&self, message: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        match &self.key {
            SigningKey::Ecdsa(pair) => pair.sign(&random, message).unwrap().as_ref().to_vec(),
            SigningKey::Ed25519(pair) => pair.sign(message).as_ref().to_vec(),
            SigningKey::Rsa(pair) => {
                let padding: &'static dyn ring::signature::RsaEncoding = match self.algorithm {
                    "RS256" => &RSA_PKCS1_SHA256,
                    "RS384" => &RSA_PKCS1_SHA384,
                    "RS512" => &RSA_PKCS1_SHA512,
                    "PS256" => &RSA_PSS_SHA256,
                    "PS384" => &RSA_PSS_SHA384,
                    "PS512" => &RSA_PSS_SHA512,
                    other => panic!("{other} is not of RSA"),
                };
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(padding, &random, message, &mut signature).unwrap();
                signature
            }
        }
    }
}

/// A token signed with a secret.
pub(crate) fn hmac_token(secret: &[u8], id: &str, claims: &Value) -> String {
    let head = json!({ "alg": "HS256", "typ": "at+jwt", "kid": id }).to_string();
    let message = format!("{}.{}", encode(head.as_bytes()), encode(claims.to_string().as_bytes()));
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, secret);
    format!("{message}.{}", encode(ring::hmac::sign(&key, message.as_bytes()).as_ref()))
}

pub(crate) fn encode(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Seconds since the epoch, `ahead` of now.
pub(crate) fn unix_seconds(ahead: i64) -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    i64::try_from(now).unwrap() + ahead
}

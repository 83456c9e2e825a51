//! Keys of an issuer, and the tokens they sign.

use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, anyhow};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair, RSA_PKCS1_SHA256, RsaKeyPair};
use serde::Serialize;
use serde_json::{Value, json};

use super::auth_modes::RESOURCE;
use crate::machine;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) enum Algorithm {
    RS256,
    ES256,
}

/// A key, named after its algorithm.
#[derive(Debug)]
pub(super) struct Signer {
    random: SystemRandom,
    key: SigningKey,
}

#[derive(Debug)]
enum SigningKey {
    Rsa(Box<RsaKeyPair>),
    Ecdsa(EcdsaKeyPair),
}

const RSA_KEY_PEM: &str = include_str!("rsa-bench-key.pem");
/// Longer than any run.
const TOKEN_LIFETIME_SECONDS: u64 = 24 * 3600;

/// Signs this many unique tokens of one caller.
pub(super) fn tokens(signer: &Signer, issuer: &str, count: usize) -> Result<Vec<String>> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    let token = |number: usize| {
        // Realistic size.
        let claims = json!({
            "iss": issuer, "aud": RESOURCE, "sub": "248289761001", "client_id": "measuring-client",
            "scope": "openid profile email read", "iat": now - 5, "exp": now + TOKEN_LIFETIME_SECONDS,
            "jti": format!("{number:08}-58ae-4f1e-9d7c-0c6f6a3b2e11"), "auth_time": now - 60, "acr": "1",
            "preferred_username": "measuring", "email": "measuring@example.org", "email_verified": true,
        });
        signer.token(&claims)
    };
    // RSA takes half a millisecond per token.
    let share = count.div_ceil(machine::core_count()).max(1);
    let numbers: Vec<usize> = (0..count).collect();
    thread::scope(|scope| {
        let shares: Vec<_> = numbers
            .chunks(share)
            .map(|numbers| scope.spawn(move || numbers.iter().map(|number| token(*number)).collect::<Result<Vec<_>>>()))
            .collect();
        let mut all = Vec::with_capacity(count);
        for signed in shares {
            all.extend(signed.join().map_err(|_| anyhow!("signing panicked"))??);
        }
        Ok(all)
    })
}

/// SHA-256 in hex.
pub(super) fn digest(text: &str) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Signer {
    /// A new key; for RSA always the same one.
    pub(super) fn new(algorithm: Algorithm) -> Result<Signer> {
        let random = SystemRandom::new();
        let pair = match algorithm {
            Algorithm::RS256 => {
                let base64: String = RSA_KEY_PEM.lines().skip_while(|line| !line.starts_with("-----")).collect();
                let inner = base64.split("-----").nth(2).context("a key has a beginning and an end")?;
                let pair = RsaKeyPair::from_pkcs8(&STANDARD.decode(inner)?);
                SigningKey::Rsa(Box::new(pair.map_err(|error| anyhow!("the key for measurements: {error}"))?))
            }
            Algorithm::ES256 => {
                let curve = &ECDSA_P256_SHA256_FIXED_SIGNING;
                let document = EcdsaKeyPair::generate_pkcs8(curve, &random).map_err(|_| anyhow!("no key was made"))?;
                let pair = EcdsaKeyPair::from_pkcs8(curve, document.as_ref(), &random);
                SigningKey::Ecdsa(pair.map_err(|error| anyhow!("a new key: {error}"))?)
            }
        };
        Ok(Signer { random, key: pair })
    }

    /// The key as a JWK.
    pub(super) fn jwk(&self) -> Value {
        let name = self.name();
        match &self.key {
            SigningKey::Rsa(pair) => {
                let public = ring::rsa::PublicKeyComponents::<Vec<u8>>::from(pair.public());
                json!({ "kty": "RSA", "kid": name, "use": "sig", "n": encode(&public.n), "e": encode(&public.e) })
            }
            SigningKey::Ecdsa(pair) => {
                // The first byte marks an uncompressed point.
                let (x, y) = pair.public_key().as_ref()[1..].split_at(32);
                json!({ "kty": "EC", "kid": name, "use": "sig", "crv": "P-256", "x": encode(x), "y": encode(y) })
            }
        }
    }

    fn name(&self) -> &'static str {
        match self.key {
            SigningKey::Rsa(_) => "RS256",
            SigningKey::Ecdsa(_) => "ES256",
        }
    }

    fn token(&self, claims: &Value) -> Result<String> {
        let head = json!({ "alg": self.name(), "typ": "at+jwt", "kid": self.name() }).to_string();
        let message = format!("{}.{}", encode(head.as_bytes()), encode(claims.to_string().as_bytes()));
        let signature = match &self.key {
            SigningKey::Ecdsa(pair) => {
                pair.sign(&self.random, message.as_bytes()).map(|signature| signature.as_ref().to_vec())
            }
            SigningKey::Rsa(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                let signed = pair.sign(&RSA_PKCS1_SHA256, &self.random, message.as_bytes(), &mut signature);
                signed.map(|()| signature)
            }
        };
        let signature = signature.map_err(|_| anyhow!("{} did not sign", self.name()))?;
        Ok(format!("{message}.{}", encode(&signature)))
    }
}

fn encode(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_tokens_are_alike_and_each_says_who_signed_it() {
        for algorithm in [Algorithm::RS256, Algorithm::ES256] {
            let signer = Signer::new(algorithm).expect("a key");
            let tokens = tokens(&signer, "http://127.0.0.1:9", 3).expect("tokens");
            assert!(tokens.len() == 3 && tokens[0] != tokens[1] && tokens[1] != tokens[2]);
            let head = URL_SAFE_NO_PAD.decode(tokens[0].split('.').next().expect("a head")).expect("base64");
            let head: Value = serde_json::from_slice(&head).expect("JSON");
            assert_eq!(head["kid"], signer.jwk()["kid"]);
        }
    }
}

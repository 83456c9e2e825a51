//! Crypto provider for JWTs based on ring, which TLS already depends on. The JWT library has no cryptography of its
//! own.

use std::sync::Once;

use jsonwebtoken::crypto::{CryptoProvider, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{ErrorKind, Result, new_error};
use jsonwebtoken::signature::{self, Verifier};
use jsonwebtoken::{Algorithm, DecodingKey, DecodingKeyKind};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_2048_8192_SHA384,
    RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256, RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512,
    RsaParameters, RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm,
};

/// Verifies signatures of one key.
struct KeyVerifier {
    algorithm: Algorithm,
    method: VerificationMethod,
    key: DecodingKey,
}

/// Signature algorithm.
#[derive(Clone, Copy)]
enum VerificationMethod {
    Rsa(&'static RsaParameters),
    Curve(&'static dyn VerificationAlgorithm),
}

/// corbie never signs tokens, and parses keys only from JWKS.
static RING_PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: |_, _| Err(new_error(ErrorKind::UnsupportedAlgorithm)),
    verifier_factory: verifier,
    key_utils: KeyUtils::new_unimplemented(),
};

/// Installs ring as the crypto provider. Must be called before the first token is verified.
pub(super) fn install_ring_provider() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // No other code in this process installs a provider.
        let _ = RING_PROVIDER.install_default();
    });
}

fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>> {
    // A key belongs to one algorithm family. Without this check a public key could be used as an HMAC secret.
    if key.family() != algorithm.family() {
        return Err(new_error(ErrorKind::InvalidAlgorithm));
    }
    let way = verification_method(*algorithm).ok_or_else(|| new_error(ErrorKind::UnsupportedAlgorithm))?;
    Ok(Box::new(KeyVerifier { algorithm: *algorithm, method: way, key: key.clone() }))
}

fn verification_method(algorithm: Algorithm) -> Option<VerificationMethod> {
    Some(match algorithm {
        Algorithm::RS256 => VerificationMethod::Rsa(&RSA_PKCS1_2048_8192_SHA256),
        Algorithm::RS384 => VerificationMethod::Rsa(&RSA_PKCS1_2048_8192_SHA384),
        Algorithm::RS512 => VerificationMethod::Rsa(&RSA_PKCS1_2048_8192_SHA512),
        Algorithm::PS256 => VerificationMethod::Rsa(&RSA_PSS_2048_8192_SHA256),
        Algorithm::PS384 => VerificationMethod::Rsa(&RSA_PSS_2048_8192_SHA384),
        Algorithm::PS512 => VerificationMethod::Rsa(&RSA_PSS_2048_8192_SHA512),
        Algorithm::ES256 => VerificationMethod::Curve(&ECDSA_P256_SHA256_FIXED),
        Algorithm::ES384 => VerificationMethod::Curve(&ECDSA_P384_SHA384_FIXED),
        Algorithm::EdDSA => VerificationMethod::Curve(&ED25519),
        _ => return None,
    })
}

impl Verifier<Vec<u8>> for KeyVerifier {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> std::result::Result<(), signature::Error> {
        let checked = match (self.method, self.key.kind()) {
            (VerificationMethod::Rsa(parameters), DecodingKeyKind::RsaModulusExponent { n, e }) => {
                let key = RsaPublicKeyComponents { n: strip_leading_zeros(n), e: strip_leading_zeros(e) };
                key.verify(parameters, message, signature)
            }
            (VerificationMethod::Curve(algorithm), DecodingKeyKind::SecretOrDer(point)) => {
                UnparsedPublicKey::new(algorithm, point).verify(message, signature)
            }
            _ => return Err(signature::Error::new()),
        };
        checked.map_err(|_| signature::Error::new())
    }
}

impl JwtVerifier for KeyVerifier {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

/// Some issuers encode integers with leading zeros, which ring rejects.
fn strip_leading_zeros(number: &[u8]) -> &[u8] {
    &number[number.iter().take_while(|byte| **byte == 0).count()..]
}

//! HTTPS: certificates that can be replaced while the server runs, and the handshake (S-08).

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{InconsistentKeys, ServerConfig};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::acceptor::send_plain_response;
use crate::server::Server;

/// Certificate chain with its private key, shared by the listeners that use it.
#[derive(Clone)]
pub struct Certificates {
    current: Arc<CertificateResolver>,
    config: Arc<ServerConfig>,
}

/// Why a pair cannot be used. The message never contains parts of the files.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CertificateError {
    #[error("contains no certificate; it must have a PEM block `CERTIFICATE`, starting with the server certificate")]
    NoCertificate,
    #[error("contains an invalid certificate; check that it is complete and that the server certificate comes first")]
    BadCertificate,
    #[error("contains no private key; it must have a PEM block `PRIVATE KEY`, `EC PRIVATE KEY` or `RSA PRIVATE KEY`")]
    NoKey,
    #[error("contains an encrypted private key; store it without a passphrase, readable only by this user")]
    EncryptedKey,
    #[error("contains an unsupported private key; use RSA (2048 bits or more), ECDSA (P-256, P-384) or Ed25519")]
    BadKey,
    #[error("contains the private key of another certificate")]
    KeyMismatch,
}

/// Certificate resolver, called at each handshake.
struct CertificateResolver(ArcSwap<CertifiedKey>);

/// Maximum timeout of a handshake; at most the timeout of a request.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

impl Certificates {
    /// Parses a chain and a key in PEM: PKCS#8, SEC1 or PKCS#1.
    pub fn from_pem(chain: &[u8], key: &[u8]) -> Result<Certificates, CertificateError> {
        let current = Arc::new(CertificateResolver(ArcSwap::from_pointee(parse_pem(chain, key)?)));
        let versions = &[&rustls::version::TLS13, &rustls::version::TLS12];
        let builder = ServerConfig::builder_with_provider(Arc::new(default_provider()));
        let builder = builder.with_protocol_versions(versions).expect("the provider supports both versions");
        let mut settings = builder.with_no_client_auth().with_cert_resolver(current.clone());
        settings.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Certificates { current, config: Arc::new(settings) })
    }

    /// Replaces the pair for new connections; returns whether the chain differs. On an error, the previous pair stays
    /// in use.
    pub fn replace(&self, chain: &[u8], key: &[u8]) -> Result<bool, CertificateError> {
        let next = parse_pem(chain, key)?;
        let before = self.current.0.swap(Arc::new(next));
        Ok(before.cert != self.current.0.load().cert)
    }
}

impl CertificateError {
    /// Whether the key file is the cause, rather than the certificate file.
    pub fn is_key_error(&self) -> bool {
        match self {
            CertificateError::NoCertificate | CertificateError::BadCertificate => false,
            CertificateError::NoKey
            | CertificateError::EncryptedKey
            | CertificateError::BadKey
            | CertificateError::KeyMismatch => true,
        }
    }
}

fn parse_pem(chain: &[u8], key: &[u8]) -> Result<CertifiedKey, CertificateError> {
    let chain: Result<Vec<_>, pem::Error> = CertificateDer::pem_slice_iter(chain).collect();
    let chain = chain.map_err(|_| CertificateError::BadCertificate)?;
    if chain.is_empty() {
        return Err(CertificateError::NoCertificate);
    }
    let is_encrypted = memchr::memmem::find(key, b"ENCRYPTED").is_some();
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| match error {
        _ if is_encrypted => CertificateError::EncryptedKey,
        pem::Error::NoItemsFound => CertificateError::NoKey,
        _ => CertificateError::BadKey,
    })?;
    let key = default_provider().key_provider.load_private_key(key).map_err(|_| match is_encrypted {
        true => CertificateError::EncryptedKey,
        false => CertificateError::BadKey,
    })?;
    let pair = CertifiedKey::new(chain, key);
    match pair.keys_match() {
        // The public key cannot be derived from this type of key, so the pair is accepted unchecked.
        Ok(()) | Err(rustls::Error::InconsistentKeys(InconsistentKeys::Unknown)) => Ok(pair),
        Err(rustls::Error::InconsistentKeys(_)) => Err(CertificateError::KeyMismatch),
        Err(_) => Err(CertificateError::BadCertificate),
    }
}

/// Performs the handshake. Returns `None` and counts a failure; a client that speaks plain HTTP gets an HTTP error.
pub(super) async fn handshake(
    certificates: &Certificates,
    stream: TcpStream,
    server: &Server,
) -> Option<TlsStream<TcpStream>> {
    let limit = HANDSHAKE_TIMEOUT.min(server.limits().request_read_timeout);
    let shaking = async {
        let mut first = [0];
        match stream.peek(&mut first).await {
            // A port scan or health check without data.
            Ok(0) => return None,
            // A TLS record never starts with a letter; an HTTP request always does.
            Ok(_) if first[0].is_ascii_alphabetic() => {
                let why = "this port requires HTTPS; use https:// instead of http://\n";
                send_plain_response(stream, "400 Bad Request", "", why).await;
                return Some(Err("client sent plain HTTP to the HTTPS port".to_owned()));
            }
            Ok(_) => {}
            Err(error) => return Some(Err(error.to_string())),
        }
        let shaken = TlsAcceptor::from(certificates.config.clone()).accept(stream).await;
        Some(shaken.map_err(|error| error.to_string()))
    };
    let failure = match timeout(limit, shaking).await {
        Ok(None) => return None,
        Ok(Some(Ok(stream))) => return Some(stream),
        Ok(Some(Err(error))) => error,
        Err(_) => "TLS handshake timed out".to_owned(),
    };
    server.inner().metrics.failed_handshakes.inc();
    tracing::debug!(error = failure, "TLS handshake failed");
    None
}

impl ResolvesServerCert for CertificateResolver {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.load_full())
    }
}

impl fmt::Debug for CertificateResolver {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Current")
    }
}

impl fmt::Debug for Certificates {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Certificates({})", self.current.0.load().cert.len())
    }
}

//! Test certificates, a server with them, and a client that trusts them.

use std::io;
use std::sync::Arc;

use corbie_mcp::Server;
use corbie_mcp::transport::Certificates;
use corbie_mcp::transport::http::{Http, Options};
use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::fixture::peer::{self, TEST_TIMEOUT};

/// A self-signed certificate for `localhost`.
pub struct TestCertificate {
    pub chain: String,
    pub key: String,
}

impl TestCertificate {
    pub fn new() -> TestCertificate {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
        TestCertificate { chain: made.cert.pem(), key: made.signing_key.serialize_pem() }
    }

    /// An expired certificate.
    pub fn expired() -> TestCertificate {
        let mut params = CertificateParams::new(["localhost".to_owned()]).expect("a name");
        params.not_after = rcgen::date_time_ymd(2001, 1, 1);
        params.not_before = rcgen::date_time_ymd(2000, 1, 1);
        let key = KeyPair::generate().expect("a key");
        TestCertificate { chain: params.self_signed(&key).expect("a certificate").pem(), key: key.serialize_pem() }
    }

    pub fn certificates(&self) -> Certificates {
        Certificates::from_pem(self.chain.as_bytes(), self.key.as_bytes()).expect("a pair")
    }

    /// A client that trusts only this certificate.
    pub fn client(&self, versions: &[&'static SupportedProtocolVersion]) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(self.chain.as_bytes()).expect("PEM")).expect("a certificate");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_protocol_versions(versions).expect("versions");
        let mut config = builder.with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        config
    }

    pub async fn connect(&self, port: u16) -> io::Result<TlsStream<TcpStream>> {
        self.connect_as(port, rustls::ALL_VERSIONS).await
    }

    pub async fn connect_as(
        &self,
        port: u16,
        versions: &[&'static SupportedProtocolVersion],
    ) -> io::Result<TlsStream<TcpStream>> {
        let connector = TlsConnector::from(Arc::new(self.client(versions)));
        let name = ServerName::try_from("localhost").expect("a name");
        let stream = peer::connect(port).await;
        timeout(TEST_TIMEOUT, connector.connect(name, stream)).await.expect("in time")
    }
}

/// A server on a TLS port.
pub async fn listen_tls(server: &Server, certificates: Certificates) -> u16 {
    listen_tls_as(server, certificates, Options::default()).await
}

pub async fn listen_tls_as(server: &Server, certificates: Certificates, options: Options) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has free ports");
    let port = listener.local_addr().expect("bound").port();
    let http = Http::new(server.clone(), options);
    tokio::spawn(async move { http.serve_tls(listener, certificates).await });
    port
}

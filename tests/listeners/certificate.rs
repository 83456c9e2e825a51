//! Certificates for `localhost`, created per test, and a client that trusts them.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::process::TEST_TIMEOUT;

/// A self-signed certificate and its key.
pub(crate) struct TestCertificate {
    pub(crate) chain: String,
    pub(crate) key: String,
}

/// A TLS connection.
pub(crate) type TlsStream = StreamOwned<ClientConnection, TcpStream>;

impl TestCertificate {
    pub(crate) fn new() -> TestCertificate {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
        TestCertificate { chain: made.cert.pem(), key: made.signing_key.serialize_pem() }
    }

    /// Writes `server.pem` and `server.key`, each atomically.
    pub(crate) fn write(&self, folder: &Path) {
        replace_file(folder, "server.pem", &self.chain);
        replace_file(folder, "server.key", &self.key);
    }

    /// Performs a handshake, if the server has this certificate.
    pub(crate) fn connect(&self, port: u16) -> io::Result<TlsStream> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(self.chain.as_bytes()).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let config = builder.with_root_certificates(roots).with_no_client_auth();
        let client = ClientConnection::new(Arc::new(config), ServerName::try_from("localhost").unwrap()).unwrap();
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_read_timeout(Some(TEST_TIMEOUT))?;
        let mut connection = StreamOwned::new(client, stream);
        connection.conn.complete_io(&mut connection.sock)?;
        Ok(connection)
    }
}

/// Replaces a file atomically; only the user can read it.
pub(crate) fn replace_file(folder: &Path, name: &str, text: &str) {
    use std::os::unix::fs::PermissionsExt;
    let mut file = tempfile::NamedTempFile::new_in(folder).unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file.as_file().set_permissions(std::fs::Permissions::from_mode(0o600)).unwrap();
    file.persist(folder.join(name)).unwrap();
}

/// Sends one request on a keep-alive connection and returns the status line.
pub(crate) fn request_on(stream: &mut TlsStream) -> String {
    stream.write_all(b"GET /live HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    // The response ends with this character.
    while !answer.ends_with(b"}") {
        let mut piece = [0; 1024];
        let length = stream.read(&mut piece).unwrap();
        assert!(length > 0, "closed after {:?}", String::from_utf8_lossy(&answer));
        answer.extend_from_slice(&piece[..length]);
    }
    String::from_utf8_lossy(&answer).lines().next().unwrap_or_default().to_owned()
}

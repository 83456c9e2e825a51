//! TLS connections to databases: certificate verification and confidentiality.

use std::path::PathBuf;
use std::sync::Arc;

use corbie::knowledge::store::postgres::{Address, SearchQuery, Store};
use corbie::knowledge::store::{Error, Options};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tempfile::TempDir;

use crate::database::Database;
use crate::database_proxy::{CapturedTraffic, DatabaseProxy, ProxyMode, SSL_REQUEST};
use crate::fixture::{default_base, document, put, temp_folder};

/// A certificate authority with its certificate in a file.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    folder: TempDir,
}

impl Authority {
    fn new(name: &str) -> Authority {
        let mut params = CertificateParams::new([]).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let (key, folder) = (KeyPair::generate().unwrap(), temp_folder());
        std::fs::write(authority_file(&folder), params.self_signed(&key).unwrap().pem()).unwrap();
        Authority { issuer: Issuer::new(params, key), folder }
    }

    /// URL parameter that trusts this authority.
    fn root_cert_parameter(&self) -> String {
        format!("sslrootcert={}", authority_file(&self.folder).display())
    }

    /// A TLS server configuration with a certificate for this host.
    fn server_certificate(&self, host: &str) -> ProxyMode {
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new([host.to_owned()]).unwrap().signed_by(&key, &self.issuer).unwrap();
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .unwrap();
        ProxyMode::Tls(Arc::new(config))
    }
}

fn authority_file(folder: &TempDir) -> PathBuf {
    folder.path().join("authority.pem")
}

async fn connect(url: &str) -> Result<Store, Error> {
    Store::connect(&Address::parse(url).unwrap(), &[], Options::default()).await
}

/// Puts a document and returns the names of the found ones.
async fn put_and_search(store: &Store, filename: &str) -> Vec<String> {
    put(store, document(filename, 1)).await;
    let model = store.prepare_model("minilm", 384).await.unwrap();
    let sought = SearchQuery { text: "chunk", vector: None, filter: None, top_k: 9 };
    let found = store.search(&default_base(), model, sought).await.unwrap();
    found.into_iter().map(|hit| hit.chunk.filename).collect()
}

/// Whether bytes contain a word.
fn contains_word(bytes: &[u8], word: &str) -> bool {
    bytes.windows(word.len()).any(|found| found == word.as_bytes())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_whose_authority_is_believed_is_spoken_to_with_tls() {
    let Some(database) = Database::if_configured() else { return };
    let authority = Authority::new("ours");
    // By its name this host is remote, so TLS is the default.
    let far = format!("hostaddr=127.0.0.1&{}", authority.root_cert_parameter());
    let near = |mode: &str| format!("sslmode={mode}&{}", authority.root_cert_parameter());
    let asked = [
        ("db.example", far),
        ("localhost", near("require")),
        ("localhost", near("verify-full")),
        ("127.0.0.1", near("prefer")),
    ];
    for (number, (host, parameters)) in asked.iter().enumerate() {
        let door = DatabaseProxy::open(&database, authority.server_certificate(host)).await;
        let store = connect(&door.url(host, parameters)).await.unwrap_or_else(|error| panic!("{parameters}: {error}"));
        let found = put_and_search(&store, &format!("{number}.pdf")).await;
        assert_eq!(found.len(), number + 1, "{parameters}: {found:?}");
        let CapturedTraffic { sent, decrypted: arrived, .. } = door.captured_so_far();
        assert!(
            contains_word(&arrived, door.database()) && contains_word(&arrived, "All that stands on page 1"),
            "{parameters}"
        );
        for word in [door.database(), "All that stands", "INSERT"] {
            assert!(!contains_word(&sent, word), "{parameters}: `{word}` was sent in the clear");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_nobody_vouches_for_is_told_nothing() {
    let Some(database) = Database::if_configured() else { return };
    let (ours, theirs) = (Authority::new("ours"), Authority::new("theirs"));
    let doors = [
        (
            DatabaseProxy::open(&database, ours.server_certificate("db.example")).await,
            ours.root_cert_parameter(),
            "not valid for name",
        ),
        (
            DatabaseProxy::open(&database, theirs.server_certificate("localhost")).await,
            ours.root_cert_parameter(),
            "UnknownIssuer",
        ),
        // Not issued by a public authority either.
        (DatabaseProxy::open(&database, ours.server_certificate("localhost")).await, String::new(), "UnknownIssuer"),
    ];
    for (door, believed, reason) in &doors {
        // Modes that allow plain text also reject an untrusted certificate.
        for mode in ["require", "verify-ca", "verify-full", "prefer", "allow"] {
            let refused = connect(&door.url("localhost", &format!("sslmode={mode}&{believed}"))).await.unwrap_err();
            let told = refused.to_string();
            assert_eq!(refused.kind(), "storage_unavailable", "{told}");
            assert!(told.contains("certificate") && told.contains(reason), "{mode}: {told}");
        }
        let CapturedTraffic { sent, decrypted: arrived, .. } = door.captured_after_close().await;
        assert!(arrived.is_empty(), "{}", String::from_utf8_lossy(&arrived));
        assert!(sent.starts_with(&SSL_REQUEST) && !contains_word(&sent, door.database()), "{reason}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_without_tls_is_refused_where_tls_is_required() {
    let Some(database) = Database::if_configured() else { return };
    let door = DatabaseProxy::open(&database, ProxyMode::Plain).await;
    let far = ("db.example", "hostaddr=127.0.0.1");
    for (host, parameters) in [
        ("localhost", "sslmode=require"),
        ("localhost", "sslmode=verify-ca"),
        ("localhost", "sslmode=verify-full"),
        far,
    ] {
        let refused = connect(&door.url(host, parameters)).await.unwrap_err();
        assert_eq!(refused.kind(), "storage_unavailable", "{refused}");
        assert!(refused.to_string().contains("server does not support TLS"), "{refused}");
    }
    assert_eq!(
        door.captured_after_close().await.sent,
        SSL_REQUEST.repeat(4),
        "it was told no more than what was wished for"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_without_tls_is_used_where_tls_is_only_preferred() {
    let Some(database) = Database::if_configured() else { return };
    let door = DatabaseProxy::open(&database, ProxyMode::Plain).await;
    for (number, mode) in ["prefer", "allow"].iter().enumerate() {
        let store = connect(&door.url("localhost", &format!("sslmode={mode}"))).await.unwrap();
        assert_eq!(put_and_search(&store, &format!("{number}.pdf")).await.len(), number + 1);
    }
    let CapturedTraffic { sent, .. } = door.captured_so_far();
    assert!(sent.starts_with(&SSL_REQUEST) && contains_word(&sent, door.database()));
}

#[tokio::test]
async fn authorities_that_cannot_be_read_are_told_with_their_file() {
    let Some(database) = Database::if_configured() else { return };
    let door = DatabaseProxy::open(&database, ProxyMode::Plain).await;
    let refused = connect(&door.url("localhost", "sslmode=require&sslrootcert=/nowhere/ca.pem")).await.unwrap_err();
    assert!(refused.to_string().contains("`sslrootcert` /nowhere/ca.pem"), "{refused}");
    assert!(door.captured_after_close().await.sent.is_empty());
}

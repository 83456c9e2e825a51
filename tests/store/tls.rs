//! TLS connections to databases: certificate verification and confidentiality.

use std::path::PathBuf;
use std::sync::Arc;

use corbie::knowledge::store::postgres::{Address, Sought, Store};
use corbie::knowledge::store::{Error, Options};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tempfile::TempDir;

use crate::database::Database;
use crate::door::{Door, Manner, Seen, WISH};
use crate::fixture::{base, document, folder, put};

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
        let (key, folder) = (KeyPair::generate().unwrap(), folder());
        std::fs::write(file(&folder), params.self_signed(&key).unwrap().pem()).unwrap();
        Authority { issuer: Issuer::new(params, key), folder }
    }

    /// URL parameter that trusts this authority.
    fn believed(&self) -> String {
        format!("sslrootcert={}", file(&self.folder).display())
    }

    /// A TLS server configuration with a certificate for this host.
    fn vouch(&self, host: &str) -> Manner {
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
        Manner::Encrypted(Arc::new(config))
    }
}

fn file(folder: &TempDir) -> PathBuf {
    folder.path().join("authority.pem")
}

async fn connect(url: &str) -> Result<Store, Error> {
    Store::connect(&Address::parse(url).unwrap(), &[], Options::default()).await
}

/// Puts a document and returns the names of the found ones.
async fn put_and_found(store: &Store, filename: &str) -> Vec<String> {
    put(store, document(filename, 1)).await;
    let model = store.prepare_model("minilm", 384).await.unwrap();
    let sought = Sought { text: "chunk", vector: None, filter: None, top: 9 };
    let found = store.find(&base(), model, sought).await.unwrap();
    found.into_iter().map(|(chunk, _)| chunk.filename).collect()
}

/// Whether bytes contain a word.
fn has(bytes: &[u8], word: &str) -> bool {
    bytes.windows(word.len()).any(|found| found == word.as_bytes())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_whose_authority_is_believed_is_spoken_to_with_tls() {
    let Some(database) = Database::if_wanted() else { return };
    let authority = Authority::new("ours");
    // By its name this host is remote, so TLS is the default.
    let far = format!("hostaddr=127.0.0.1&{}", authority.believed());
    let near = |mode: &str| format!("sslmode={mode}&{}", authority.believed());
    let asked = [
        ("db.example", far),
        ("localhost", near("require")),
        ("localhost", near("verify-full")),
        ("127.0.0.1", near("prefer")),
    ];
    for (number, (host, parameters)) in asked.iter().enumerate() {
        let door = Door::open(&database, authority.vouch(host)).await;
        let store = connect(&door.url(host, parameters)).await.unwrap_or_else(|error| panic!("{parameters}: {error}"));
        let found = put_and_found(&store, &format!("{number}.pdf")).await;
        assert_eq!(found.len(), number + 1, "{parameters}: {found:?}");
        let Seen { sent, arrived, .. } = door.seen_so_far();
        assert!(has(&arrived, door.database()) && has(&arrived, "All that stands on page 1"), "{parameters}");
        for word in [door.database(), "All that stands", "INSERT"] {
            assert!(!has(&sent, word), "{parameters}: `{word}` was sent in the clear");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_nobody_vouches_for_is_told_nothing() {
    let Some(database) = Database::if_wanted() else { return };
    let (ours, theirs) = (Authority::new("ours"), Authority::new("theirs"));
    let doors = [
        (Door::open(&database, ours.vouch("db.example")).await, ours.believed(), "not valid for name"),
        (Door::open(&database, theirs.vouch("localhost")).await, ours.believed(), "UnknownIssuer"),
        // Not issued by a public authority either.
        (Door::open(&database, ours.vouch("localhost")).await, String::new(), "UnknownIssuer"),
    ];
    for (door, believed, reason) in &doors {
        // Modes that allow plain text also reject an untrusted certificate.
        for mode in ["require", "verify-ca", "verify-full", "prefer", "allow"] {
            let refused = connect(&door.url("localhost", &format!("sslmode={mode}&{believed}"))).await.unwrap_err();
            let told = refused.to_string();
            assert_eq!(refused.kind(), "storage_unavailable", "{told}");
            assert!(told.contains("certificate") && told.contains(reason), "{mode}: {told}");
        }
        let Seen { sent, arrived, .. } = door.seen().await;
        assert!(arrived.is_empty(), "{}", String::from_utf8_lossy(&arrived));
        assert!(sent.starts_with(&WISH) && !has(&sent, door.database()), "{reason}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_without_tls_is_refused_where_tls_is_required() {
    let Some(database) = Database::if_wanted() else { return };
    let door = Door::open(&database, Manner::Plain).await;
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
    assert_eq!(door.seen().await.sent, WISH.repeat(4), "it was told no more than what was wished for");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_without_tls_is_used_where_tls_is_only_preferred() {
    let Some(database) = Database::if_wanted() else { return };
    let door = Door::open(&database, Manner::Plain).await;
    for (number, mode) in ["prefer", "allow"].iter().enumerate() {
        let store = connect(&door.url("localhost", &format!("sslmode={mode}"))).await.unwrap();
        assert_eq!(put_and_found(&store, &format!("{number}.pdf")).await.len(), number + 1);
    }
    let Seen { sent, .. } = door.seen_so_far();
    assert!(sent.starts_with(&WISH) && has(&sent, door.database()));
}

#[tokio::test]
async fn authorities_that_cannot_be_read_are_told_with_their_file() {
    let Some(database) = Database::if_wanted() else { return };
    let door = Door::open(&database, Manner::Plain).await;
    let refused = connect(&door.url("localhost", "sslmode=require&sslrootcert=/nowhere/ca.pem")).await.unwrap_err();
    assert!(refused.to_string().contains("`sslrootcert` /nowhere/ca.pem"), "{refused}");
    assert!(door.seen().await.sent.is_empty());
}

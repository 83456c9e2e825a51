//! TLS certificates: loaded at startup, and reloaded when their files change or on SIGHUP.
//!
//! An invalid pair is logged and the previous one stays in use. Open connections keep the certificate they started
//! with.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use corbie_mcp::transport::{CertificateError, Certificates};

use crate::config::tls::Tls;
use crate::config::{ConfigError, LoadedConfig};
use crate::util::file_watch::{FileFingerprint, FileWatcher};

/// The certificates in use and the state of their files. Clones share the certificates.
#[derive(Clone)]
pub(super) struct WatchedCertificates {
    pub(super) certificates: Certificates,
    files: Tls,
    /// Taken before the files are read, so that a concurrent change is detected.
    read: [Option<FileFingerprint>; 2],
}

/// Why a pair of files is invalid, and which of the two is the cause.
#[derive(Debug, thiserror::Error)]
#[error("`{path}` {why}")]
struct CertificateFileError {
    of_key: bool,
    path: String,
    why: String,
}

/// Contents of the two files.
struct KeyPair {
    chain: Vec<u8>,
    key: Vec<u8>,
}

/// Size limit, larger than any chain needs.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Loads the configured certificates, if any.
pub(super) fn open(loaded: &LoadedConfig) -> Result<Option<WatchedCertificates>, ConfigError> {
    let Some(files) = &loaded.config.server.tls else { return Ok(None) };
    let read = stamps(files);
    let opened = KeyPair::read(files).and_then(|pair| {
        Certificates::from_pem(&pair.chain, &pair.key).map_err(|error| CertificateFileError::because(files, &error))
    });
    let certificates = opened.map_err(|unusable| {
        let key = if unusable.of_key { "server.tls.key" } else { "server.tls.certificate" };
        loaded.error_at(key, unusable.to_string())
    })?;
    warn_if_readable_by_others(&files.key);
    Ok(Some(WatchedCertificates { certificates, files: files.clone(), read }))
}

/// Registers for SIGHUP immediately; the returned future then watches signal and files until it is dropped.
pub(super) fn watch(followed: WatchedCertificates) -> impl Future<Output = ()> + Send {
    let mut changes = FileWatcher::register();
    async move {
        let WatchedCertificates { certificates, files, mut read } = followed;
        loop {
            changes.changed(|| stamps(&files), &read).await;
            read = stamps(&files);
            reload(&files, &certificates);
        }
    }
}

fn stamps(files: &Tls) -> [Option<FileFingerprint>; 2] {
    [FileFingerprint::of(Some(&files.certificate)), FileFingerprint::of(Some(&files.key))]
}

fn reload(tls: &Tls, certificates: &Certificates) {
    let replaced = KeyPair::read(tls).and_then(|pair| {
        certificates.replace(&pair.chain, &pair.key).map_err(|error| CertificateFileError::because(tls, &error))
    });
    match replaced {
        Ok(true) => tracing::info!("TLS certificate reloaded"),
        Ok(false) => tracing::info!("TLS certificate unchanged"),
        Err(error) => return tracing::error!(%error, "the new TLS certificate is invalid; keeping the current one"),
    }
    warn_if_readable_by_others(&tls.key);
}

impl KeyPair {
    fn read(tls: &Tls) -> Result<KeyPair, CertificateFileError> {
        let read = |path: &Path, of_key| {
            read_bounded(path).map_err(|error| CertificateFileError {
                of_key,
                path: path.display().to_string(),
                why: format!("cannot be read: {error}"),
            })
        };
        Ok(KeyPair { chain: read(&tls.certificate, false)?, key: read(&tls.key, true)? })
    }
}

impl CertificateFileError {
    fn because(tls: &Tls, error: &CertificateError) -> CertificateFileError {
        let of_key = error.is_key_error();
        let path = if of_key { &tls.key } else { &tls.certificate };
        CertificateFileError { of_key, path: path.display().to_string(), why: error.to_string() }
    }
}

fn read_bounded(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_FILE_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Warns if other users can read the key: with it they can impersonate this server.
#[cfg(unix)]
fn warn_if_readable_by_others(key: &Path) {
    use std::os::unix::fs::PermissionsExt;
    const OTHERS_MAY_READ: u32 = 0o004;
    let mode = std::fs::metadata(key).map(|facts| facts.permissions().mode());
    if mode.is_ok_and(|mode| mode & OTHERS_MAY_READ != 0) {
        tracing::warn!(key = %key.display(), "the private key is readable by all users; run `chmod 600` on it");
    }
}

#[cfg(not(unix))]
fn warn_if_readable_by_others(_: &Path) {}

//! `server.tls`: TLS certificates.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// TLS for listeners. With this section every port serves HTTPS and WSS, including loopback; Unix sockets do not use
/// TLS. The files are reloaded when they change and on SIGHUP.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tls {
    /// PEM file containing the server certificate followed by any intermediate certificates.
    pub certificate: PathBuf,
    /// PEM file containing the private key (PKCS#8, SEC1 or RSA), without a passphrase. Only this user should be able
    /// to read it.
    pub key: PathBuf,
}

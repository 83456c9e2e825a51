//! `server.tls`: TLS certificates.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The certificates of HTTPS. With this section every port of the server speaks HTTPS and `wss`, also those of this
/// machine; sockets in the file system do not. The files are read again when they change, and on SIGHUP.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tls {
    /// A file with the server's certificate in PEM, and after it those that lead to an authority that callers know.
    pub certificate: PathBuf,
    /// A file with the private key in PEM (PKCS#8, SEC1 or RSA), without a passphrase. Only this user should be able
    /// to read it.
    pub key: PathBuf,
}

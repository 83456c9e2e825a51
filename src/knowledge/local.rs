//! A socket in the storage, by which the command line finds a server that has the knowledge base open.
//!
//! The folder is private, so whoever can open the socket is the user. Each process has a socket of its own; one that was
//! left behind by a process that is gone is removed by whoever finds nobody there.

use std::path::{Path, PathBuf};

use corbie_mcp::{LineClient, Server};

use super::Knowledge;
use crate::private_folder::private_folder;

const SOCKETS: &str = "sockets";

/// Serves the socket once the knowledge base is open, until the server is drained.
#[cfg(unix)]
pub async fn serve(knowledge: Knowledge, server: Server) {
    use corbie_mcp::TrustLevel;
    use corbie_mcp::transport::unix;

    let Some(storage) = knowledge.when_open().await else { return };
    let folder = storage.join(SOCKETS);
    let path = folder.join(format!("{}.socket", std::process::id()));
    let bound = private_folder(&folder).and_then(|()| {
        // It has its name once it listens: whoever finds nobody behind a socket removes it.
        let unnamed = folder.join(format!("{}.starting", std::process::id()));
        let _ = std::fs::remove_file(&unnamed);
        let listener = tokio::net::UnixListener::bind(&unnamed)?;
        std::fs::rename(&unnamed, &path).map(|()| listener)
    });
    match bound {
        Ok(listener) => {
            let _gone = RemoveOnDrop(path);
            // Desktops start many processes and kill them, and seldom does anybody ask over a socket.
            for path in sockets(&storage) {
                drop(reach(&path).await);
            }
            if let Err(error) = unix::serve(&server, listener, TrustLevel::Trusted).await {
                tracing::warn!(%error, "the socket for the command line is closed");
            }
        }
        // A path may be too long for a socket; the command line then opens the knowledge base itself.
        Err(error) => tracing::debug!(%error, "there is no socket for the command line"),
    }
}

#[cfg(not(unix))]
pub async fn serve(_: Knowledge, _: Server) {}

/// A server that has the knowledge base of a storage open, if one answers.
#[cfg(unix)]
pub async fn connect(storage: &Path) -> Option<LineClient> {
    for path in sockets(storage) {
        if let Some(stream) = reach(&path).await {
            let (reader, writer) = stream.into_split();
            return Some(LineClient::over(reader, writer, |_, _| {}));
        }
    }
    None
}

/// The sockets there are, in an order of their own.
#[cfg(unix)]
fn sockets(storage: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(storage.join(SOCKETS)).into_iter().flatten().flatten();
    let is_named = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "socket");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_named).collect();
    paths.sort();
    paths
}

/// Whoever answers at a socket. One that nobody listens to any more is removed.
#[cfg(unix)]
async fn reach(path: &Path) -> Option<tokio::net::UnixStream> {
    let reached = tokio::net::UnixStream::connect(path).await;
    if reached.as_ref().is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionRefused) {
        let _ = std::fs::remove_file(path);
    }
    reached.ok()
}

#[cfg(not(unix))]
pub async fn connect(_: &Path) -> Option<LineClient> {
    None
}

struct RemoveOnDrop(PathBuf);

impl Drop for RemoveOnDrop {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

//! A socket in the storage, by which the command line finds a server that has the knowledge base open.
//!
//! The folder is private, so whoever can open the socket is the user. Each process has a socket of its own; one that was
//! left behind by a process that is gone is removed by whoever finds nobody there.

use std::path::{Path, PathBuf};

use corbie_mcp::{LineClient, Server};

use super::{Knowledge, private_folder};

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
        let _ = std::fs::remove_file(&path);
        remove_the_dead(&folder);
        tokio::net::UnixListener::bind(&path)
    });
    match bound {
        Ok(listener) => {
            let _gone = RemoveOnDrop(path);
            if let Err(error) = unix::serve(&server, listener, TrustLevel::Trusted).await {
                tracing::warn!(%error, "the socket for the command line is closed");
            }
        }
        // A path may be too long for a socket; the command line then opens the knowledge base itself.
        Err(error) => tracing::debug!(%error, "there is no socket for the command line"),
    }
}

/// Removes the sockets of processes that were killed: desktops start many, and seldom ask over one.
#[cfg(unix)]
fn remove_the_dead(folder: &Path) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        if std::os::unix::net::UnixStream::connect(&path)
            .is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionRefused)
        {
            let _ = std::fs::remove_file(&path);
        }
    }
}

#[cfg(not(unix))]
pub async fn serve(_: Knowledge, _: Server) {}

/// A server that has the knowledge base of a storage open, if one answers.
#[cfg(unix)]
pub async fn connect(storage: &Path) -> Option<LineClient> {
    let entries = std::fs::read_dir(storage.join(SOCKETS)).ok()?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        match tokio::net::UnixStream::connect(&path).await {
            Ok(stream) => {
                let (reader, writer) = stream.into_split();
                return Some(LineClient::over(reader, writer, |_, _| {}));
            }
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => {
                let _ = std::fs::remove_file(&path);
            }
            Err(_) => {}
        }
    }
    None
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

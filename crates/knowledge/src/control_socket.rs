//! Control socket in the storage folder, through which the command line reaches a running server.
//!
//! The folder is private, so only the user can open the socket. The server verifies that by the peer's uid, and so does
//! the command line before it sends anything (S-14). Each process has a separate socket. A stale socket of a dead
//! process is removed by the first process that gets no connection.

use std::path::{Path, PathBuf};

use corbie_mcp::{LineClient, Server};

use super::Knowledge;
use corbie_util::fs::dir_permissions;

const SOCKET_DIR: &str = "sockets";

/// Why the command line refuses to use a socket.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    #[error(transparent)]
    Folder(#[from] dir_permissions::Error),
    #[error(
        "socket `{}` is owned by another user (uid {owner}); nothing was sent. Remove it, and check that other users \
         cannot write to its folder",
        .path.display()
    )]
    SocketOwner { path: PathBuf, owner: u32 },
    #[error(
        "the process listening on socket `{}` runs as another user (uid {peer}); nothing was sent. Stop it, or run \
         this command as that user",
        .path.display()
    )]
    Peer { path: PathBuf, peer: u32 },
}

/// Serves the socket from when the knowledge base is open until the server is drained.
#[cfg(unix)]
pub async fn serve(knowledge: Knowledge, server: Server) {
    use corbie_mcp::TrustLevel;
    use corbie_mcp::transport::unix;

    let Some(storage) = knowledge.wait_until_open().await else { return };
    let folder = storage.join(SOCKET_DIR);
    let path = folder.join(format!("{}.socket", std::process::id()));
    if let Err(error) = prepare_socket_dir(&folder) {
        return tracing::warn!(%error, "cannot create the control socket");
    }
    // Renamed after it listens, because other processes remove a socket that does not accept connections.
    let unnamed = folder.join(format!("{}.starting", std::process::id()));
    let _ = std::fs::remove_file(&unnamed);
    let bound = tokio::net::UnixListener::bind(&unnamed)
        .and_then(|listener| std::fs::rename(&unnamed, &path).map(|()| listener));
    match bound {
        Ok(listener) => {
            let _gone = RemoveOnDrop(path);
            // Removes stale sockets. Desktop clients start and kill many processes, and the command line rarely
            // connects.
            for path in socket_paths(&storage) {
                drop(connect_or_remove(&path).await);
            }
            if let Err(error) = unix::serve(&server, listener, TrustLevel::Trusted).await {
                tracing::warn!(%error, "control socket closed");
            }
        }
        // A path may be too long for a Unix socket. The command line then opens the knowledge base directly.
        Err(error) => tracing::debug!(%error, "cannot create the control socket"),
    }
}

/// Creates the folder of the sockets. Fails if it is a link, or if other users can write to it.
#[cfg(unix)]
fn prepare_socket_dir(folder: &Path) -> Result<(), dir_permissions::Error> {
    dir_permissions::create_private_subdir(folder)?;
    dir_permissions::prepare(folder)
}

#[cfg(not(unix))]
pub async fn serve(_: Knowledge, _: Server) {}

/// Connects to a server that has the knowledge base of a storage open, if any. Sends nothing to a process of another
/// user.
#[cfg(unix)]
pub async fn connect(storage: &Path) -> Result<Option<LineClient>, TrustError> {
    use std::os::unix::fs::MetadataExt;

    let sockets = socket_paths(storage);
    if sockets.is_empty() {
        return Ok(None);
    }
    dir_permissions::check(storage)?;
    let folder = storage.join(SOCKET_DIR);
    dir_permissions::refuse_link(&folder)?;
    dir_permissions::check(&folder)?;
    let own = dir_permissions::effective_uid();
    let storage_owner = storage.metadata().map(|found| found.uid()).unwrap_or(own);
    for path in sockets {
        // The socket was removed in the meantime.
        let Ok(found) = path.symlink_metadata() else { continue };
        if !may_serve(own, storage_owner, found.uid()) {
            return Err(TrustError::SocketOwner { path, owner: found.uid() });
        }
        let Some(stream) = connect_or_remove(&path).await else { continue };
        // The socket file may have been replaced since the check. The peer credentials cannot be forged.
        match stream.peer_cred().map(|peer| peer.uid()) {
            Ok(peer) if may_serve(own, storage_owner, peer) => {}
            Ok(peer) => return Err(TrustError::Peer { path, peer }),
            Err(_) => continue,
        }
        let (reader, writer) = stream.into_split();
        return Ok(Some(LineClient::new(reader, writer, |_, _| {})));
    }
    Ok(None)
}

/// Whether a process of user `peer` may serve user `own`: the same user, or root. Root also accepts the server of the
/// user who owns the storage.
#[cfg(unix)]
fn may_serve(own: u32, storage_owner: u32, peer: u32) -> bool {
    const ROOT: u32 = 0;
    peer == own || peer == ROOT || (own == ROOT && peer == storage_owner)
}

/// All sockets, sorted by name.
#[cfg(unix)]
fn socket_paths(storage: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(storage.join(SOCKET_DIR)).into_iter().flatten().flatten();
    let is_named = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "socket");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_named).collect();
    paths.sort();
    paths
}

/// Connects to a socket. Removes it if no process listens.
#[cfg(unix)]
async fn connect_or_remove(path: &Path) -> Option<tokio::net::UnixStream> {
    let reached = tokio::net::UnixStream::connect(path).await;
    if reached.as_ref().is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionRefused) {
        let _ = std::fs::remove_file(path);
    }
    reached.ok()
}

#[cfg(not(unix))]
pub async fn connect(_: &Path) -> Result<Option<LineClient>, TrustError> {
    Ok(None)
}

struct RemoveOnDrop(PathBuf);

impl Drop for RemoveOnDrop {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    /// The target may be a folder of this user, whose sockets corbie would remove.
    #[tokio::test]
    async fn s14_a_link_in_the_place_of_the_socket_folder_is_not_used() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let (storage, foreign) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for folder in [storage.path(), foreign.path()] {
            std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700)).unwrap();
        }
        let stale = foreign.path().join("1.socket");
        drop(std::os::unix::net::UnixListener::bind(&stale).unwrap());
        let folder = storage.path().join(SOCKET_DIR);
        symlink(foreign.path(), &folder).unwrap();
        let refused = connect(storage.path()).await.unwrap_err();
        assert!(refused.to_string().contains("symbolic link"), "{refused}");
        assert!(prepare_socket_dir(&folder).unwrap_err().to_string().contains("symbolic link"));
        assert!(stale.exists(), "nothing is removed in the link's target");
        std::fs::remove_file(&folder).unwrap();
        prepare_socket_dir(&folder).unwrap();
    }

    #[test]
    fn s14_only_the_same_user_root_or_for_root_the_owner_of_the_storage_may_serve() {
        assert!(may_serve(1000, 1000, 1000) && may_serve(1000, 1000, 0) && may_serve(1000, 0, 1000));
        assert!(!may_serve(1000, 1000, 1001) && !may_serve(1000, 1001, 1001));
        assert!(may_serve(0, 0, 0) && may_serve(0, 1000, 1000));
        assert!(!may_serve(0, 0, 1000) && !may_serve(0, 1000, 1001));
    }
}

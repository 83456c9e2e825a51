//! Unix socket for HTTP: created with its permissions, and removed on drop.

use std::fs::{self, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener as StdListener, UnixStream as StdStream};
use std::path::{Path, PathBuf};

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with};
use tokio::net::UnixListener;

use super::peer_credentials::AllowedPeers;

/// A listener on a Unix socket. The file is removed on drop.
#[derive(Debug)]
pub struct SocketFile {
    pub(super) listener: UnixListener,
    path: PathBuf,
    /// Device and inode, which detect that another process has replaced the file.
    identity: (u64, u64),
    mode: u32,
}

/// Why the socket cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    #[error("folder `{0}` does not exist; create it with write permission for this user")]
    NoDirectory(PathBuf),
    #[error("another process is listening on this socket; stop it or use another path")]
    InUse,
    #[error("file exists and is not a socket; move it or use another path")]
    NotASocket,
    #[error("{0}; the path must be shorter than about 100 bytes and its folder writable")]
    Io(#[from] io::Error),
}

/// Backlog of connections, as for TCP listeners.
const LISTEN_BACKLOG: i32 = 1024;
/// Write permission for group and world, which connecting to a socket requires.
const GROUP_OTHER_WRITE: u32 = 0o022;

impl SocketFile {
    /// Creates the socket and listens. Replaces the stale file of a terminated process.
    pub fn bind(path: impl Into<PathBuf>, mode: u32) -> Result<SocketFile, SocketError> {
        let path = path.into();
        if let Some(folder) = path.parent().filter(|folder| !folder.is_dir()) {
            return Err(SocketError::NoDirectory(folder.into()));
        }
        remove_stale_socket(&path)?;
        let address = SocketAddrUnix::new(&path).map_err(io::Error::from)?;
        let socket = open_socket()?;
        bind(&socket, &address).map_err(io::Error::from)?;
        let identity = identity(&fs::symlink_metadata(&path)?);
        // Clients cannot connect before `listen`, so they never see the file with other permissions.
        fs::set_permissions(&path, Permissions::from_mode(mode))?;
        listen(&socket, LISTEN_BACKLOG).map_err(io::Error::from)?;
        let listener = UnixListener::from_std(StdListener::from(socket))?;
        Ok(SocketFile { listener, path, identity, mode })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the mode allows other users to connect.
    pub fn is_open_to_others(&self) -> bool {
        self.mode & GROUP_OTHER_WRITE != 0
    }

    pub(super) fn allowed_peers(&self) -> io::Result<AllowedPeers> {
        if self.is_open_to_others() { Ok(AllowedPeers::AnyUser) } else { AllowedPeers::own_user() }
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let is_ours = fs::symlink_metadata(&self.path).is_ok_and(|facts| identity(&facts) == self.identity);
        if is_ours {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Removes a stale socket of a terminated process.
fn remove_stale_socket(path: &Path) -> Result<(), SocketError> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error.into()),
        Ok(facts) if !facts.file_type().is_socket() => return Err(SocketError::NotASocket),
        Ok(_) => {}
    }
    match StdStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(fs::remove_file(path)?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        // Another process listens on it, or we lack the permission to find out.
        Ok(_) => Err(SocketError::InUse),
        Err(error) => Err(error.into()),
    }
}

#[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
fn open_socket() -> io::Result<rustix::fd::OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?)
}

/// Some systems do not accept these flags in `socket`.
#[cfg(not(any(target_os = "linux", target_os = "android", target_os = "freebsd")))]
fn open_socket() -> io::Result<rustix::fd::OwnedFd> {
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::empty(), None)?;
    rustix::io::fcntl_setfd(&socket, rustix::io::FdFlags::CLOEXEC)?;
    rustix::io::ioctl_fionbio(&socket, true)?;
    Ok(socket)
}

fn identity(facts: &Metadata) -> (u64, u64) {
    (facts.dev(), facts.ino())
}

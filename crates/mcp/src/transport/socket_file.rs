//! A socket in the file system that HTTP is served on: made with its mode, and removed at the end.

use std::fs::{self, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener as StdListener, UnixStream as StdStream};
use std::path::{Path, PathBuf};

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with};
use tokio::net::UnixListener;

use super::peers::Peers;

/// A listener on a file. The file goes when this is dropped.
#[derive(Debug)]
pub struct SocketFile {
    pub(super) listener: UnixListener,
    path: PathBuf,
    /// What tells our file from one that another process has put in its place.
    identity: (u64, u64),
    mode: u32,
}

/// Why there is no listener.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    #[error("the folder `{0}` does not exist; make it, and let this user write to it")]
    NoFolder(PathBuf),
    #[error("another process listens there; stop it or choose another file")]
    InUse,
    #[error("there is a file already, and it is no socket; move it or choose another name")]
    NotASocket,
    #[error("{0}; a path may have about 100 bytes, and its folder must let this user write")]
    Io(#[from] io::Error),
}

/// How many connections wait to be accepted, as with other listeners.
const BACKLOG: i32 = 1024;
/// Write permission for the group and for others, which is what opening a socket asks for.
const OTHERS_MAY_OPEN: u32 = 0o022;

impl SocketFile {
    /// Makes the file and listens. One that a process left behind which is gone is replaced.
    pub fn bind(path: impl Into<PathBuf>, mode: u32) -> Result<SocketFile, SocketError> {
        let path = path.into();
        if let Some(folder) = path.parent().filter(|folder| !folder.is_dir()) {
            return Err(SocketError::NoFolder(folder.into()));
        }
        clear(&path)?;
        let address = SocketAddrUnix::new(&path).map_err(io::Error::from)?;
        let socket = open_socket()?;
        bind(&socket, &address).map_err(io::Error::from)?;
        let identity = identity(&fs::symlink_metadata(&path)?);
        // Nobody can connect before `listen`, so nobody meets the file with another mode than it is to have.
        fs::set_permissions(&path, Permissions::from_mode(mode))?;
        listen(&socket, BACKLOG).map_err(io::Error::from)?;
        let listener = UnixListener::from_std(StdListener::from(socket))?;
        Ok(SocketFile { listener, path, identity, mode })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the mode lets other users in.
    pub fn is_open_to_others(&self) -> bool {
        self.mode & OTHERS_MAY_OPEN != 0
    }

    pub(super) fn peers(&self) -> io::Result<Peers> {
        if self.is_open_to_others() { Ok(Peers::WhoeverOpens) } else { Peers::own_user() }
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

/// Removes what a process left behind that is gone.
fn clear(path: &Path) -> Result<(), SocketError> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error.into()),
        Ok(facts) if !facts.file_type().is_socket() => return Err(SocketError::NotASocket),
        Ok(_) => {}
    }
    match StdStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(fs::remove_file(path)?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        // Somebody is there, or it is not ours to know.
        Ok(_) => Err(SocketError::InUse),
        Err(error) => Err(error.into()),
    }
}

#[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
fn open_socket() -> io::Result<rustix::fd::OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?)
}

/// Not every system takes these with the socket.
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

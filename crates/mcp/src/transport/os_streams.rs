//! The process's stdin and stdout as async streams, without blocking threads if the runtime can poll them.
//!
//! Clients start servers with pipes or socket pairs, which the runtime can poll. It cannot poll files and terminals;
//! those use the runtime's blocking threads, which cost several microseconds per message.

use std::io;

use tokio::io::{AsyncRead, AsyncWrite};

pub(crate) type BoxedReader = Box<dyn AsyncRead + Send + Unpin>;
pub(crate) type BoxedWriter = Box<dyn AsyncWrite + Send + Unpin>;

#[cfg(unix)]
pub(crate) use unix::{stdin, stdout};

#[cfg(unix)]
mod unix {
    use std::os::fd::{AsFd, OwnedFd};

    use rustix::fs::FileType;
    use tokio::net::UnixStream;
    use tokio::net::unix::pipe;

    use super::{BoxedReader, BoxedWriter, io};

    pub(crate) fn stdin() -> io::Result<BoxedReader> {
        let own = duplicate(rustix::stdio::stdin())?;
        Ok(match file_type(&own)? {
            FileType::Fifo => Box::new(pipe::Receiver::from_owned_fd(widen_pipe(own))?),
            FileType::Socket => Box::new(socket(own)?),
            _ => Box::new(tokio::io::stdin()),
        })
    }

    /// The original stdout under a new descriptor; descriptor 1 becomes stderr.
    ///
    /// A stray `println!` in a tool, a C library or a child process would otherwise corrupt the protocol.
    pub(crate) fn stdout() -> io::Result<BoxedWriter> {
        let own = duplicate(rustix::stdio::stdout())?;
        rustix::stdio::dup2_stdout(rustix::stdio::stderr())?;
        Ok(match file_type(&own)? {
            FileType::Fifo => Box::new(pipe::Sender::from_owned_fd(widen_pipe(own))?),
            FileType::Socket => Box::new(socket(own)?),
            _ => Box::new(tokio::fs::File::from_std(own.into())),
        })
    }

    /// Raises the pipe size to the maximum for unprivileged users. With the default 64 KiB a message of a megabyte
    /// takes sixteen context switches between the processes, each with a wait. The kernel allocates memory only for the
    /// pipe's content.
    #[cfg(target_os = "linux")]
    fn widen_pipe(pipe: OwnedFd) -> OwnedFd {
        const MAX_PIPE_BYTES: usize = 1024 * 1024;
        if rustix::pipe::fcntl_getpipe_size(&pipe).is_ok_and(|size| size < MAX_PIPE_BYTES) {
            // Keep the current size if the system refuses.
            let _ = rustix::pipe::fcntl_setpipe_size(&pipe, MAX_PIPE_BYTES);
        }
        pipe
    }

    #[cfg(not(target_os = "linux"))]
    fn widen_pipe(pipe: OwnedFd) -> OwnedFd {
        pipe
    }

    fn duplicate(fd: impl AsFd) -> io::Result<OwnedFd> {
        Ok(rustix::io::fcntl_dupfd_cloexec(fd, 3)?)
    }

    fn file_type(fd: &OwnedFd) -> io::Result<FileType> {
        Ok(FileType::from_raw_mode(rustix::fs::fstat(fd)?.st_mode))
    }

    fn socket(fd: OwnedFd) -> io::Result<UnixStream> {
        let socket = std::os::unix::net::UnixStream::from(fd);
        socket.set_nonblocking(true)?;
        UnixStream::from_std(socket)
    }
}

#[cfg(not(unix))]
pub(crate) fn stdin() -> io::Result<BoxedReader> {
    Ok(Box::new(tokio::io::stdin()))
}

#[cfg(not(unix))]
pub(crate) fn stdout() -> io::Result<BoxedWriter> {
    Ok(Box::new(tokio::io::stdout()))
}

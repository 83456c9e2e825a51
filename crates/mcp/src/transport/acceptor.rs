//! HTTP acceptors: TCP, TLS and Unix sockets, each producing a byte stream.

use std::io;
use std::net::IpAddr;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use crate::server::Server;

/// One listening endpoint.
#[derive(Debug)]
pub(super) struct Acceptor {
    listener: Listener,
    pub(super) handshake: Handshake,
}

#[derive(Debug)]
enum Listener {
    Tcp(TcpListener),
    #[cfg(unix)]
    Unix(super::socket_file::SocketFile),
}

/// Processing of a connection before HTTP.
#[derive(Debug, Clone)]
pub(super) enum Handshake {
    Plain,
    #[cfg(feature = "tls")]
    Tls(super::tls::Certificates),
    #[cfg(unix)]
    PeerCredentials(super::peer_credentials::AllowedPeers),
}

/// From where an acceptor can be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Exposure {
    /// A loopback address.
    Loopback,
    /// A socket file on this machine.
    UnixSocket,
    Network,
}

/// An accepted connection before any I/O.
pub(super) enum RawConnection {
    Tcp(TcpStream),
    #[cfg(unix)]
    Unix(tokio::net::UnixStream),
    /// A stream opened by other code.
    Stream(BoxedStream),
}

/// The stream that carries HTTP.
pub(super) type BoxedStream = Box<dyn ByteStream>;

pub(super) trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for S {}

/// Time for a rejected client to read the reply.
const REJECTION_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum of its input read in that time: closing a socket with unread bytes would reset it and discard the reply.
const MAX_DISCARDED_BYTES: u64 = 64 * 1024;

impl Acceptor {
    pub(super) fn tcp(listener: TcpListener) -> Acceptor {
        Acceptor { listener: Listener::Tcp(listener), handshake: Handshake::Plain }
    }

    #[cfg(feature = "tls")]
    pub(super) fn tls(listener: TcpListener, certificates: super::tls::Certificates) -> Acceptor {
        Acceptor { listener: Listener::Tcp(listener), handshake: Handshake::Tls(certificates) }
    }

    #[cfg(unix)]
    pub(super) fn unix(socket: super::socket_file::SocketFile) -> io::Result<Acceptor> {
        let manners = Handshake::PeerCredentials(socket.allowed_peers()?);
        Ok(Acceptor { listener: Listener::Unix(socket), handshake: manners })
    }

    pub(super) fn exposure(&self) -> io::Result<Exposure> {
        match &self.listener {
            Listener::Tcp(listener) if is_loopback(listener.local_addr()?.ip()) => Ok(Exposure::Loopback),
            Listener::Tcp(_) => Ok(Exposure::Network),
            #[cfg(unix)]
            Listener::Unix(_) => Ok(Exposure::UnixSocket),
        }
    }

    /// Its address, for display.
    pub(super) fn name(&self) -> String {
        match &self.listener {
            Listener::Tcp(listener) => listener.local_addr().map(|address| address.to_string()).unwrap_or_default(),
            #[cfg(unix)]
            Listener::Unix(socket) => socket.path().display().to_string(),
        }
    }

    pub(super) async fn accept(&self) -> io::Result<(RawConnection, IpAddr)> {
        match &self.listener {
            Listener::Tcp(listener) => {
                let (stream, from) = listener.accept().await?;
                // Replies are small and latency-sensitive; Nagle's algorithm would delay them.
                let _ = stream.set_nodelay(true);
                // Use the IPv4 form of IPv4-mapped addresses, on all listeners.
                Ok((RawConnection::Tcp(stream), from.ip().to_canonical()))
            }
            // A Unix socket client is on this machine.
            #[cfg(unix)]
            Listener::Unix(socket) => {
                let (stream, _) = socket.listener.accept().await?;
                Ok((RawConnection::Unix(stream), IpAddr::from([127, 0, 0, 1])))
            }
        }
    }
}

impl Handshake {
    pub(super) fn is_encrypted(&self) -> bool {
        match self {
            #[cfg(feature = "tls")]
            Handshake::Tls(_) => true,
            _ => false,
        }
    }

    /// Performs the steps before HTTP; `None` if the connection was rejected.
    pub(super) async fn perform(&self, knock: RawConnection, server: &Server) -> Option<BoxedStream> {
        match (self, knock) {
            #[cfg(feature = "tls")]
            (Handshake::Tls(certificates), RawConnection::Tcp(stream)) => {
                let shaken = super::tls::handshake(certificates, stream, server).await;
                shaken.map(|stream| Box::new(stream) as BoxedStream)
            }
            (_, RawConnection::Tcp(stream)) => Some(Box::new(stream)),
            #[cfg(unix)]
            (Handshake::PeerCredentials(peers), RawConnection::Unix(stream)) if !peers.allows(&stream) => {
                server.inner().metrics.rejected_connections.inc();
                let why = "permission denied: this socket accepts only its own user; the operator can allow other \
                    users\n";
                send_plain_response(stream, "403 Forbidden", "", why).await;
                None
            }
            #[cfg(unix)]
            (_, RawConnection::Unix(stream)) => Some(Box::new(stream)),
            (_, RawConnection::Stream(stream)) => Some(stream),
        }
    }

    /// Rejects a connection over the limit with a plain HTTP reply, without reading the request.
    pub(super) async fn reject(&self, knock: RawConnection) {
        match knock {
            // A TLS handshake would cost more than the request.
            RawConnection::Tcp(_) if self.is_encrypted() => {}
            RawConnection::Tcp(stream) => tell_full(stream).await,
            #[cfg(unix)]
            RawConnection::Unix(stream) => tell_full(stream).await,
            RawConnection::Stream(stream) => tell_full(stream).await,
        }
    }
}

/// Whether an address is loopback, including IPv4-mapped IPv6.
pub(super) fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

/// Rejects a connection over the limit, without reading its request.
pub(super) async fn tell_full(stream: impl AsyncRead + AsyncWrite + Unpin) {
    send_plain_response(stream, "503 Service Unavailable", "retry-after: 1\r\n", "").await;
}

/// Sends a single reply and closes the connection.
pub(super) async fn send_plain_response(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    status: &str,
    headers: &str,
    why: &str,
) {
    let reply = format!(
        "HTTP/1.1 {status}\r\n{headers}content-type: text/plain\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{why}",
        why.len()
    );
    let said = async {
        stream.write_all(reply.as_bytes()).await?;
        stream.shutdown().await?;
        tokio::io::copy(&mut stream.take(MAX_DISCARDED_BYTES), &mut tokio::io::sink()).await
    };
    let _ = timeout(REJECTION_TIMEOUT, said).await;
}

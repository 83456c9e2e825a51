//! Newline-delimited JSON-RPC over standard streams, or any pair of byte streams.

use std::io;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, BufReader, BufWriter};
use tokio::time::timeout;

use super::connection::Connection;
use super::lines::{Line, Lines};
use super::queue::Receiver;
use crate::error::Error;
use crate::server::Server;
use crate::trust::{Caller, TrustLevel, Via};

/// Serves the process's own stdin and stdout until the input ends or the server is drained.
///
/// Takes stdout for itself: what anything else in the process prints goes to stderr from then on.
pub async fn serve(server: &Server, trust: TrustLevel) -> io::Result<()> {
    serve_streams(server, tokio::io::stdin(), own_stdout()?, trust).await
}

/// The real stdout under a number of its own; number 1 becomes stderr.
///
/// A stray `println!` in a tool, a C library or a child process would otherwise break the protocol.
#[cfg(unix)]
fn own_stdout() -> io::Result<tokio::fs::File> {
    let kept = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3)?;
    rustix::stdio::dup2_stdout(rustix::stdio::stderr())?;
    Ok(tokio::fs::File::from_std(kept.into()))
}

#[cfg(not(unix))]
fn own_stdout() -> io::Result<tokio::io::Stdout> {
    Ok(tokio::io::stdout())
}

/// Serves one peer over any byte streams: a pipe, a Unix socket, a test.
///
/// End of input and [`Server::drain`] both let what is in flight finish and be answered, within the grace time.
pub async fn serve_streams<R, W>(server: &Server, reader: R, writer: W, trust: TrustLevel) -> io::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let caller = Caller { via: Via::Stdio, identity: "stdio".into(), trust };
    let (connection, outgoing) = Connection::new(server.clone(), caller, None);
    let mut writer = tokio::spawn(write(writer, outgoing));
    let grace = server.limits().shutdown_grace;
    let mut lines = Lines::new(BufReader::with_capacity(64 * 1024, reader), server.limits().max_message_bytes);
    let whole = async {
        let ended = converse(server, &connection, &mut lines).await;
        // After the end of input, what is in flight has its time; what outlasts it is dropped with the connection.
        let _ = timeout(grace, connection.finished()).await;
        drop(connection);
        // The writer ends when the last message is out. A client that reads no more is not waited for longer.
        match timeout(grace, &mut writer).await {
            Ok(Ok(written)) => ended.and(written),
            _ => ended,
        }
    };
    let ended = tokio::select! {
        ended = whole => ended,
        // Also when a client that does not read holds everything up.
        () = out_of_patience(server) => Ok(()),
    };
    writer.abort();
    ended
}

/// Takes messages until the input ends, nobody reads our answers any more, or a drain has seen the last one answered.
///
/// While draining it goes on reading, so that new requests are told why they are refused.
async fn converse<R>(server: &Server, connection: &Connection, lines: &mut Lines<R>) -> io::Result<()>
where
    R: tokio::io::AsyncBufRead + Unpin,
{
    let drained = async {
        server.inner().draining.cancelled().await;
        connection.finished().await;
    };
    let mut drained = std::pin::pin!(drained);
    loop {
        let line = tokio::select! {
            line = lines.next() => line?,
            () = &mut drained => return Ok(()),
            () = connection.closed() => return Ok(()),
        };
        match line {
            Line::Message(message) => connection.receive(&message).await,
            Line::TooLong => connection.refuse(too_long(server)).await,
            Line::End => return Ok(()),
        }
    }
}

/// Ends when the grace after a drain is over, or a stop at once was asked for.
async fn out_of_patience(server: &Server) {
    let inner = server.inner();
    inner.draining.cancelled().await;
    let _ = timeout(server.limits().shutdown_grace, inner.stop_now.cancelled()).await;
}

fn too_long(server: &Server) -> Error {
    Error::InvalidRequest(format!(
        "the message is longer than {} bytes; raise `server.limits.max_message_bytes` or send less",
        server.limits().max_message_bytes
    ))
}

/// The only writer: one message a line, flushed when no more is waiting.
async fn write(writer: impl AsyncWrite + Unpin, mut outgoing: Receiver) -> io::Result<()> {
    let mut writer = BufWriter::with_capacity(64 * 1024, writer);
    while let Some(message) = outgoing.recv().await {
        let mut next = Some(message);
        while let Some(message) = next {
            writer.write_all(&message.bytes).await?;
            writer.write_all(b"\n").await?;
            next = outgoing.try_recv().ok();
        }
        writer.flush().await?;
    }
    writer.shutdown().await
}

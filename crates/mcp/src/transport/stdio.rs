//! Newline-delimited JSON-RPC over standard streams, or any pair of byte streams.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, BufReader, BufWriter};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout, timeout_at};

use super::connection::Connection;
use super::lines::{Line, Lines};
use crate::error::Error;
use crate::server::Server;
use crate::trust::{Caller, TrustLevel, Via};

/// Serves the process's own stdin and stdout until the input ends or the server is drained.
pub async fn serve(server: &Server, trust: TrustLevel) -> io::Result<()> {
    serve_streams(server, tokio::io::stdin(), tokio::io::stdout(), trust).await
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
    let writer = tokio::spawn(write(writer, outgoing));
    let grace = server.limits().shutdown_grace;
    let mut lines = Lines::new(BufReader::with_capacity(64 * 1024, reader), server.limits().max_message_bytes);

    let ended = loop {
        let line = tokio::select! {
            line = lines.next() => line,
            () = server.inner().draining.cancelled() => {
                drain(server, &connection, &mut lines, grace).await;
                break Ok(());
            }
            // Nobody reads our answers any more, so there is nobody to read for.
            () = connection.closed() => break Ok(()),
        };
        match line {
            Ok(Line::Message(message)) => connection.receive(&message).await,
            Ok(Line::TooLong) => connection.refuse(too_long(server)).await,
            Ok(Line::End) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    // Work that outlasts the grace is dropped with the connection.
    let _ = timeout(grace, connection.finished()).await;
    drop(connection);
    // Spawned requests hold senders; the writer ends when the last is gone or the grace is over.
    let flushed = timeout(Duration::from_secs(5).min(grace), writer).await;
    ended.and(match flushed {
        Ok(Ok(written)) => written,
        _ => Ok(()),
    })
}

/// Goes on reading while the last requests finish, so that new ones are told why they are refused.
async fn drain<R>(server: &Server, connection: &Connection, lines: &mut Lines<R>, grace: Duration)
where
    R: tokio::io::AsyncBufRead + Unpin,
{
    let until = Instant::now() + grace;
    loop {
        tokio::select! {
            biased;
            () = connection.finished() => return,
            () = server.inner().stop_now.cancelled() => return,
            line = timeout_at(until, lines.next()) => match line {
                Ok(Ok(Line::Message(message))) => connection.receive(&message).await,
                Ok(Ok(Line::TooLong)) => connection.refuse(too_long(server)).await,
                // The input is over; only the work in flight is left to wait for.
                Ok(Ok(Line::End) | Err(_)) => {
                    let _ = timeout_at(until, connection.finished()).await;
                    return;
                }
                Err(_) => return,
            },
        }
    }
}

fn too_long(server: &Server) -> Error {
    Error::InvalidRequest(format!(
        "the message is longer than {} bytes; raise `server.limits.max_message_bytes` or send less",
        server.limits().max_message_bytes
    ))
}

/// The only writer: one message a line, flushed when no more is waiting.
async fn write(writer: impl AsyncWrite + Unpin, mut outgoing: mpsc::Receiver<Vec<u8>>) -> io::Result<()> {
    let mut writer = BufWriter::with_capacity(64 * 1024, writer);
    while let Some(message) = outgoing.recv().await {
        let mut next = Some(message);
        while let Some(message) = next {
            writer.write_all(&message).await?;
            writer.write_all(b"\n").await?;
            next = outgoing.try_recv().ok();
        }
        writer.flush().await?;
    }
    writer.shutdown().await
}

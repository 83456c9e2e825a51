//! Newline-delimited JSON-RPC over standard streams, or any pair of byte streams.
//!
//! A single task reads and writes. All messages from one read are dispatched before the task writes, and available
//! responses are appended directly to the write buffer: a client that sends many requests in one write gets their
//! responses in one write. Delayed responses and notifications arrive through the connection's queue.

use std::io;
use std::task::Poll;
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::time::{timeout, timeout_at};

use super::connection::Connection;
use super::line_reader::{BufferRecycler, InputLine, LineReader};
use super::os_streams;
use super::outgoing_queue::Receiver;
use crate::connected_caller::ConnectedCaller;
use crate::error::Error;
use crate::server::Server;
use crate::trust::Transport;
use crate::trust_state::TrustState;

/// Serves the process's own stdin and stdout until the input ends or the server is drained.
///
/// Redirects stdout: output of other code in the process goes to stderr from then on.
pub async fn serve(server: &Server, trust: impl Into<TrustState>) -> io::Result<()> {
    let party = stdio_caller(trust.into());
    let (server, input, output) = (server.clone(), os_streams::stdin()?, os_streams::stdout()?);
    // On a worker thread, which waits for the pipe itself. A worker would have to wake the thread that blocks on `main`
    // for every message: 20 µs each, more than half of a round trip.
    tokio::spawn(async move { serve_connection(&server, input, output, party, SPIN_DURATION).await }).await?
}

/// Serves one peer over any pair of byte streams, such as pipes.
///
/// At the end of input and after [`Server::drain`], in-flight requests are answered within the grace period.
pub async fn serve_streams<R, W>(server: &Server, reader: R, writer: W, trust: impl Into<TrustState>) -> io::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    serve_caller(server, reader, writer, stdio_caller(trust.into())).await
}

/// The same for a peer that another transport has identified.
pub(crate) async fn serve_caller<R, W>(server: &Server, reader: R, writer: W, party: ConnectedCaller) -> io::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    serve_connection(server, reader, writer, party, Duration::ZERO).await
}

/// The peer of the process's own streams.
fn stdio_caller(trust: TrustState) -> ConnectedCaller {
    ConnectedCaller::new(Transport::Stdio, "stdio".into(), trust)
}

async fn serve_connection<R, W>(
    server: &Server,
    reader: R,
    writer: W,
    party: ConnectedCaller,
    linger: Duration,
) -> io::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let (connection, outgoing) = Connection::new(server.clone(), party, None);
    let mut line = LineConnection {
        lines: LineReader::new(reader, server.limits().max_message_bytes),
        writer,
        outgoing,
        write_buffer: Vec::with_capacity(FLUSH_THRESHOLD_BYTES),
        recycler: BufferRecycler::default(),
        spin_duration: linger,
    };
    let whole = async {
        line.run(server, &connection).await?;
        connection.end_input();
        // In-flight requests get the grace period; later responses are dropped with the connection.
        let _ = timeout(server.limits().shutdown_grace, line.finish(&connection)).await;
        line.flush().await?;
        line.writer.shutdown().await
    };
    let ended = tokio::select! {
        ended = whole => ended,
        // Also ends if the client does not read.
        () = drain_deadline_passed(server) => Ok(()),
    };
    match ended {
        // The client has closed its end, so there is no receiver for an error.
        Err(error) if matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) => Ok(()),
        ended => ended,
    }
}

/// Write buffer size that is flushed even if more input is available, so that a flood of requests is answered
/// continuously.
const FLUSH_THRESHOLD_BYTES: usize = 64 * 1024;

/// How long the thread of the process's own streams polls after a response. Other streams share their thread with
/// further connections, which polling would delay.
const SPIN_DURATION: Duration = Duration::from_micros(50);

/// Both directions of a connection.
struct LineConnection<R, W> {
    lines: LineReader<R>,
    writer: W,
    outgoing: Receiver,
    write_buffer: Vec<u8>,
    recycler: BufferRecycler,
    /// How long to poll for the next message after a response.
    spin_duration: Duration,
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> LineConnection<R, W> {
    /// Dispatches messages until the input ends, or a drain has completed.
    ///
    /// Continues to read while draining, so that new requests get an error.
    async fn run(&mut self, server: &Server, connection: &Connection) -> io::Result<()> {
        let drained = async {
            server.inner().draining.cancelled().await;
            connection.finished().await;
        };
        let mut drained = std::pin::pin!(drained);
        loop {
            self.handle_buffered(server, connection).await?;
            // No more input is available: flush responses before waiting.
            let answered = self.flush().await?;
            if answered && !self.spin_duration.is_zero() && connection.is_idle() && self.spin_for_input().await? {
                continue;
            }
            tokio::select! {
                more = self.lines.fill() => if !more? {
                    return self.handle_buffered(server, connection).await;
                },
                Some(message) = self.outgoing.recv() => append_line(&mut self.write_buffer, &message.bytes),
                () = &mut drained => return Ok(()),
            }
        }
    }

    async fn handle_buffered(&mut self, server: &Server, connection: &Connection) -> io::Result<()> {
        loop {
            let before = self.write_buffer.len();
            match self.lines.take() {
                Some(InputLine::Message(message)) => connection.receive(message, &mut self.write_buffer).await,
                Some(InputLine::TooLong) => connection.reject_frame(message_too_long(server), &mut self.write_buffer),
                None => break,
            }
            // Notifications of the handler, such as progress, precede its response.
            let answer = if self.outgoing.is_empty() { Vec::new() } else { self.write_buffer.split_off(before) };
            while let Ok(message) = self.outgoing.try_recv() {
                append_line(&mut self.write_buffer, &message.bytes);
            }
            self.write_buffer.extend(answer);
            if self.write_buffer.last().is_some_and(|last| *last != b'\n') {
                self.write_buffer.push(b'\n');
            }
            if self.write_buffer.len() >= FLUSH_THRESHOLD_BYTES {
                self.flush().await?;
            }
        }
        Ok(())
    }

    /// Writes the messages of the remaining in-flight requests.
    async fn finish(&mut self, connection: &Connection) -> io::Result<()> {
        loop {
            tokio::select! {
                biased;
                Some(message) = self.outgoing.recv() => append_line(&mut self.write_buffer, &message.bytes),
                () = connection.finished() => {
                    while let Ok(message) = self.outgoing.try_recv() {
                        append_line(&mut self.write_buffer, &message.bytes);
                    }
                    return Ok(());
                }
            }
            self.flush().await?;
        }
    }

    /// Writes all available output; returns false if there is none.
    ///
    /// Continues to read meanwhile: otherwise a client that sends a large message during a large response would block
    /// until the response is written, and so would this task.
    async fn flush(&mut self) -> io::Result<bool> {
        if self.write_buffer.is_empty() {
            return Ok(false);
        }
        let mut written = 0;
        while written < self.write_buffer.len() {
            tokio::select! {
                biased;
                count = self.writer.write(&self.write_buffer[written..]) => match count? {
                    0 => return Err(io::ErrorKind::WriteZero.into()),
                    count => written += count,
                },
                more = self.lines.fill(), if self.lines.can_read_ahead() => drop(more?),
            }
        }
        self.recycler.recycle(&mut self.write_buffer);
        self.writer.flush().await?;
        Ok(true)
    }

    /// Polls briefly for the next message before the thread sleeps; returns true if input is available.
    ///
    /// A client that waits for each response sends its next request within microseconds, and a wakeup takes longer than
    /// serving it: 48 µs per round trip on two idle cores, of which 5 µs are work.
    async fn spin_for_input(&mut self) -> io::Result<bool> {
        let until = Instant::now() + self.spin_duration;
        while Instant::now() < until && self.outgoing.is_empty() {
            if let Poll::Ready(more) = futures_util::poll!(std::pin::pin!(self.lines.fill())) {
                return more;
            }
            // Yields to processes on the same core, which may include the client, then to other tasks of this thread.
            std::thread::yield_now();
            tokio::task::yield_now().await;
        }
        Ok(false)
    }
}

fn append_line(unwritten: &mut Vec<u8>, message: &[u8]) {
    unwritten.extend_from_slice(message);
    unwritten.push(b'\n');
}

/// Resolves when the grace period after a drain has ended, or immediate shutdown was requested.
async fn drain_deadline_passed(server: &Server) {
    let inner = server.inner();
    inner.draining.cancelled().await;
    let _ = timeout_at(server.drain_deadline(), inner.stop_now.cancelled()).await;
}

fn message_too_long(server: &Server) -> Error {
    Error::InvalidRequest(format!(
        "message is larger than {} bytes; send less or increase `server.limits.max_message_bytes`",
        server.limits().max_message_bytes
    ))
}

//! Newline-delimited JSON-RPC over standard streams, or any pair of byte streams.
//!
//! One task reads and writes. Everything that came with one read is taken before anything is written, and answers that
//! are ready go straight into the buffer that is written next: a client that sends many requests at once gets many
//! answers with one write. Answers that had to wait, and news, come through the connection's queue.

use std::io;
use std::task::Poll;
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::time::{timeout, timeout_at};

use super::connection::Connection;
use super::lines::{Line, Lines, Spare};
use super::os_streams;
use super::queue::Receiver;
use crate::error::Error;
use crate::party::Party;
use crate::server::Server;
use crate::standing::Standing;
use crate::trust::Via;

/// Serves the process's own stdin and stdout until the input ends or the server is drained.
///
/// Takes stdout for itself: what anything else in the process prints goes to stderr from then on.
pub async fn serve(server: &Server, trust: impl Into<Standing>) -> io::Result<()> {
    let party = local(trust.into());
    let (server, input, output) = (server.clone(), os_streams::stdin()?, os_streams::stdout()?);
    // On a worker, which waits for the pipe itself. The thread that blocks on `main` would have to be woken by one for
    // every message: 20 µs each, more than half of a round trip.
    tokio::spawn(async move { converse_over(&server, input, output, party, LINGER).await }).await?
}

/// Serves one peer over any byte streams: a pipe, a test.
///
/// End of input and [`Server::drain`] both let what is in flight finish and be answered, within the grace time.
pub async fn serve_streams<R, W>(server: &Server, reader: R, writer: W, trust: impl Into<Standing>) -> io::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    serve_party(server, reader, writer, local(trust.into())).await
}

/// The same for a peer that another transport has found out about.
pub(crate) async fn serve_party<R, W>(server: &Server, reader: R, writer: W, party: Party) -> io::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    converse_over(server, reader, writer, party, Duration::ZERO).await
}

/// The one peer of a process's own streams.
fn local(trust: Standing) -> Party {
    Party::new(Via::Stdio, "stdio".into(), trust)
}

async fn converse_over<R, W>(server: &Server, reader: R, writer: W, party: Party, linger: Duration) -> io::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let (connection, outgoing) = Connection::new(server.clone(), party, None);
    let mut line = Wire {
        lines: Lines::new(reader, server.limits().max_message_bytes),
        writer,
        outgoing,
        unwritten: Vec::with_capacity(WRITE_AT),
        spare: Spare::default(),
        linger,
    };
    let whole = async {
        line.converse(server, &connection).await?;
        connection.no_more_input();
        // What is in flight has its time; what outlasts it is dropped with the connection.
        let _ = timeout(server.limits().shutdown_grace, line.finish(&connection)).await;
        line.flush().await?;
        line.writer.shutdown().await
    };
    let ended = tokio::select! {
        ended = whole => ended,
        // Also when a client that does not read holds everything up.
        () = out_of_patience(server) => Ok(()),
    };
    match ended {
        // The client closed its end: there is nobody left to tell.
        Err(error) if matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) => Ok(()),
        ended => ended,
    }
}

/// More than this is written although more input is at hand, so that a flood of requests is answered as it comes.
const WRITE_AT: usize = 64 * 1024;

/// How long the thread that serves the process's own streams stays awake after an answer. Streams of others share their
/// thread with others, who would only be held up.
const LINGER: Duration = Duration::from_micros(50);

/// Both directions of one peer.
struct Wire<R, W> {
    lines: Lines<R>,
    writer: W,
    outgoing: Receiver,
    unwritten: Vec<u8>,
    spare: Spare,
    /// How long to stay awake for the next message after an answer.
    linger: Duration,
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> Wire<R, W> {
    /// Takes messages until the input ends, or a drain has seen the last one answered.
    ///
    /// While draining it goes on reading, so that new requests are told why they are refused.
    async fn converse(&mut self, server: &Server, connection: &Connection) -> io::Result<()> {
        let drained = async {
            server.inner().draining.cancelled().await;
            connection.finished().await;
        };
        let mut drained = std::pin::pin!(drained);
        loop {
            self.answer_what_is_here(server, connection).await?;
            // Nothing more is at hand: what was answered goes out before anything is waited for.
            let answered = self.flush().await?;
            if answered && !self.linger.is_zero() && connection.is_idle() && self.linger().await? {
                continue;
            }
            tokio::select! {
                more = self.lines.fill() => if !more? {
                    return self.answer_what_is_here(server, connection).await;
                },
                Some(message) = self.outgoing.recv() => append(&mut self.unwritten, &message.bytes),
                () = &mut drained => return Ok(()),
            }
        }
    }

    async fn answer_what_is_here(&mut self, server: &Server, connection: &Connection) -> io::Result<()> {
        loop {
            let before = self.unwritten.len();
            match self.lines.take() {
                Some(Line::Message(message)) => connection.receive(message, &mut self.unwritten).await,
                Some(Line::TooLong) => connection.refuse(too_long(server), &mut self.unwritten),
                None => break,
            }
            // What a handler told on its way, such as progress, stands before its answer.
            let answer = if self.outgoing.is_empty() { Vec::new() } else { self.unwritten.split_off(before) };
            while let Ok(message) = self.outgoing.try_recv() {
                append(&mut self.unwritten, &message.bytes);
            }
            self.unwritten.extend(answer);
            if self.unwritten.last().is_some_and(|last| *last != b'\n') {
                self.unwritten.push(b'\n');
            }
            if self.unwritten.len() >= WRITE_AT {
                self.flush().await?;
            }
        }
        Ok(())
    }

    /// Writes what the last requests in flight still say.
    async fn finish(&mut self, connection: &Connection) -> io::Result<()> {
        loop {
            tokio::select! {
                biased;
                Some(message) = self.outgoing.recv() => append(&mut self.unwritten, &message.bytes),
                () = connection.finished() => {
                    while let Ok(message) = self.outgoing.try_recv() {
                        append(&mut self.unwritten, &message.bytes);
                    }
                    return Ok(());
                }
            }
            self.flush().await?;
        }
    }

    /// Writes what is there to be written; false if that is nothing.
    ///
    /// Reads on meanwhile: a client that sends a large message while a large answer is on its way to it would otherwise
    /// stand still until we have written the whole.
    async fn flush(&mut self) -> io::Result<bool> {
        if self.unwritten.is_empty() {
            return Ok(false);
        }
        let mut written = 0;
        while written < self.unwritten.len() {
            tokio::select! {
                biased;
                count = self.writer.write(&self.unwritten[written..]) => match count? {
                    0 => return Err(io::ErrorKind::WriteZero.into()),
                    count => written += count,
                },
                more = self.lines.fill(), if self.lines.can_read_ahead() => drop(more?),
            }
        }
        self.spare.after(&mut self.unwritten);
        self.writer.flush().await?;
        Ok(true)
    }

    /// Looks for the next message for a moment before the thread goes to sleep; true if there is something to read.
    ///
    /// A client that waits for each answer sends its next request within microseconds, and to be woken for it takes
    /// longer than to serve it: 48 µs a round trip on two idle cores, of which we work 5.
    async fn linger(&mut self) -> io::Result<bool> {
        let until = Instant::now() + self.linger;
        while Instant::now() < until && self.outgoing.is_empty() {
            if let Poll::Ready(more) = futures_util::poll!(std::pin::pin!(self.lines.fill())) {
                return more;
            }
            // To whoever shares our core, perhaps the client; then to other tasks of this thread.
            std::thread::yield_now();
            tokio::task::yield_now().await;
        }
        Ok(false)
    }
}

fn append(unwritten: &mut Vec<u8>, message: &[u8]) {
    unwritten.extend_from_slice(message);
    unwritten.push(b'\n');
}

/// Ends when the grace after a drain is over, or a stop at once was asked for.
async fn out_of_patience(server: &Server) {
    let inner = server.inner();
    inner.draining.cancelled().await;
    let _ = timeout_at(server.grace_ends(), inner.stop_now.cancelled()).await;
}

fn too_long(server: &Server) -> Error {
    Error::InvalidRequest(format!(
        "the message is longer than {} bytes; raise `server.limits.max_message_bytes` or send less",
        server.limits().max_message_bytes
    ))
}

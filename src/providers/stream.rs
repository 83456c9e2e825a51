//! Streaming responses of a provider. A stream that is cut off yields an error and never looks like a normal end.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::HeaderValue;
use http::header::CONTENT_TYPE;
use tokio::time::Instant;
use tracing::Span;

use super::chat::Protocol;
use super::client::Opened;
use super::openai::{self, plain};
use super::provider::{Decoder, Provider};
use super::signer::Signer;
use super::{Delta, Error, Events, Head, NetworkFault, Question, mock, traced};

/// The pieces of one streaming response, in order. Dropping the stream closes the connection, so the provider stops
/// generating.
#[derive(Debug)]
pub struct Stream {
    provider: Arc<Provider>,
    source: Source,
    model: String,
    signer: Signer,
    /// The error that ended the stream.
    failed: Option<Error>,
    /// Pieces received but not yet taken by the reader.
    ready: VecDeque<Result<Piece, Error>>,
    /// Remaining deltas of a piece that the reader takes one at a time.
    left: VecDeque<Delta>,
    /// Passthrough mode: the reader wants unmodified events where possible.
    as_it_came: bool,
    /// When data last arrived.
    heard: Instant,
    /// When the stream must be complete.
    deadline: Option<Instant>,
    ended: bool,
    /// Span of the attempt this stream belongs to.
    span: Span,
}

/// One piece of a streaming response.
#[derive(Debug, Clone)]
pub enum Piece {
    /// OpenAI events that need no parsing, forwarded byte for byte to OpenAI clients.
    Plain(Bytes),
    /// One parsed event.
    Event {
        deltas: Vec<Delta>,
        /// The unmodified event data, if the provider speaks OpenAI's protocol.
        data: Option<String>,
        /// The event carries token usage, possibly a repeated report.
        counts: bool,
    },
}

#[derive(Debug)]
enum Source {
    Wire(Box<Wire>),
    /// All pieces are buffered already.
    Ready,
}

#[derive(Debug)]
struct Wire {
    opened: Opened,
    events: Events,
    decoder: Decoder,
}

impl Piece {
    /// The parsed deltas; empty for passthrough bytes.
    pub fn deltas(&self) -> &[Delta] {
        match self {
            Piece::Plain(_) => &[],
            Piece::Event { deltas, .. } => deltas,
        }
    }

    /// Number of SSE events in this piece.
    pub fn events(&self) -> u64 {
        match self {
            Piece::Plain(bytes) => plain::count(bytes),
            Piece::Event { .. } => 1,
        }
    }

    /// Whether the piece carries content for the client, including fields that corbie does not interpret.
    fn says_something(&self) -> bool {
        match self {
            Piece::Plain(_) => true,
            Piece::Event { deltas, data, .. } => {
                deltas.iter().any(says_something) || data.as_deref().is_some_and(openai::says_something_else)
            }
        }
    }
}

impl Stream {
    /// Sends a request and waits until `by` for the first piece with content.
    pub(super) async fn open(
        provider: &Arc<Provider>,
        key: usize,
        question: &Question,
        by: Instant,
    ) -> Result<Stream, Error> {
        let (provider, model) = (provider.clone(), question.model());
        let Some(request) = provider.request(key, question)? else {
            let piece = |delta| Ok(Piece::Event { deltas: vec![delta], data: None, counts: false });
            let ready = mock::deltas(&*question.chat()?)?.into_iter().map(piece).collect();
            return Ok(Stream::new(provider, Source::Ready, model, ready));
        };
        let opened = provider.client.open(request, by).await?;
        if !opened.status.is_success() || is_json(&opened) {
            return Err(refusal(&provider, opened, model, by).await);
        }
        let source = Source::Wire(Box::new(Wire { opened, events: Events::default(), decoder: provider.decoder() }));
        let mut stream = Stream::new(provider, source, model, VecDeque::new());
        match tokio::time::timeout_at(by, stream.until_content()).await {
            Ok(result) => result.map(|()| stream),
            Err(_) => Err(Error::Timeout),
        }
    }

    fn new(provider: Arc<Provider>, source: Source, model: &str, ready: VecDeque<Result<Piece, Error>>) -> Stream {
        let (signer, model, left) = (provider.signer(model), model.to_owned(), VecDeque::new());
        Stream {
            provider,
            source,
            model,
            signer,
            failed: None,
            ready,
            left,
            as_it_came: false,
            heard: Instant::now(),
            deadline: None,
            ended: false,
            span: Span::none(),
        }
    }

    /// Records the rest of the stream in this span, which ends with the stream.
    pub(super) fn within(&mut self, span: Span) {
        self.span = span;
    }

    /// Sets when the stream must be complete. The idle timeout alone does not end a stream whose provider keeps sending
    /// a little.
    pub fn end_by(&mut self, deadline: Instant) {
        self.deadline = Some(deadline);
    }

    /// Switches to passthrough: OpenAI events are parsed only as far as necessary from here on. [`Stream::next`] skips
    /// them.
    pub fn pass_on(&mut self) {
        self.as_it_came = self.provider.takes_as_it_came();
    }

    /// Whether a piece is buffered.
    pub fn is_ready(&self) -> bool {
        !self.left.is_empty() || !self.ready.is_empty()
    }

    /// The next delta, or `None` at the end. An error is always the last item.
    pub async fn next(&mut self) -> Option<Result<Delta, Error>> {
        loop {
            if let Some(delta) = self.left.pop_front() {
                return Some(Ok(delta));
            }
            match self.next_piece().await? {
                Ok(piece) => self.left.extend(piece.deltas().iter().cloned()),
                Err(error) => return Some(Err(error)),
            }
        }
    }

    /// The next piece, one event or one run of passthrough events.
    pub async fn next_piece(&mut self) -> Option<Result<Piece, Error>> {
        loop {
            // Checked here as well as while waiting: a provider that sends without pause is never waited for.
            if !self.ended && self.is_overdue() {
                self.fail(Error::StreamTimeout);
            }
            if self.ended || !self.ready.is_empty() {
                break;
            }
            self.more().await;
        }
        let next = self.ready.pop_front();
        // The opener has already reported a successful start; a later failure counts against the provider too.
        if let (Some(Err(_)), Some(error)) = (&next, self.failed.take()) {
            // The time limit is ours and not a failure of the provider.
            if error != Error::StreamTimeout {
                self.provider.answered(&self.model, Err(&error), Duration::ZERO);
            }
            traced::failed(&self.span, &error);
        }
        if let Some(Ok(piece)) = &next {
            traced::came(&self.span, piece.deltas());
        }
        next
    }

    async fn until_content(&mut self) -> Result<(), Error> {
        loop {
            for piece in &self.ready {
                match piece {
                    Ok(piece) if piece.says_something() => return Ok(()),
                    Ok(_) => {}
                    Err(error) => return Err(error.clone()),
                }
            }
            if self.ended {
                return Ok(());
            }
            self.more().await;
        }
    }

    async fn more(&mut self) {
        if let Err(error) = self.read().await {
            self.fail(error);
        }
    }

    async fn read(&mut self) -> Result<(), Error> {
        let Source::Wire(wire) = &mut self.source else {
            self.ended = true;
            return Ok(());
        };
        let idle = self.heard + self.provider.timeout;
        let came = wire.opened.next(self.deadline.map_or(idle, |deadline| idle.min(deadline))).await;
        if matches!(came, Err(Error::Timeout)) && self.is_overdue() {
            return Err(Error::StreamTimeout);
        }
        self.heard = Instant::now();
        self.take(came)
    }

    /// Reads available bytes without waiting. Returns whether there were any.
    pub fn read_ready(&mut self) -> bool {
        let Source::Wire(wire) = &mut self.source else { return false };
        if self.ended {
            return false;
        }
        let Some(came) = wire.opened.next_now() else { return false };
        self.heard = Instant::now();
        if let Err(error) = self.take(came) {
            self.fail(error);
        }
        true
    }

    fn take(&mut self, came: Result<Option<Bytes>, Error>) -> Result<(), Error> {
        let Source::Wire(wire) = &mut self.source else { return Ok(()) };
        let Wire { events, decoder, .. } = &mut **wire;
        match came {
            Ok(Some(mut bytes)) => {
                while !bytes.is_empty() && !decoder.is_over() {
                    let plain = if self.as_it_came && events.is_between() { plain::run(&bytes) } else { 0 };
                    if plain > 0 {
                        self.ready.push_back(Ok(Piece::Plain(bytes.split_to(plain))));
                        continue;
                    }
                    let end = plain::end(&bytes).unwrap_or(bytes.len());
                    let complete = events.push(&bytes.split_to(end));
                    for event in complete.map_err(|_| Error::Unreadable("an event is larger than 16 MiB"))? {
                        // Some providers send empty events as keep-alives, and some keep sending after the end.
                        if event.data.trim().is_empty() || decoder.is_over() {
                            continue;
                        }
                        let mut deltas = decoder.event(&event).map_err(|error| self.provider.scrubbed(error))?;
                        self.signer.tag_deltas(&mut deltas);
                        let counts = decoder.tells_tokens();
                        let data = (self.provider.protocol() == Protocol::OpenAi)
                            .then(|| openai::signed(event.data.as_bytes(), &self.signer).unwrap_or(event.data));
                        if !deltas.is_empty() || data.is_some() {
                            self.ready.push_back(Ok(Piece::Event { deltas, data, counts }));
                        }
                    }
                }
                // Some providers leave the connection open after the final event.
                self.ended = decoder.is_over();
                if self.ended {
                    self.ready.extend(last_piece(decoder).map(Ok));
                    self.let_go();
                }
                Ok(())
            }
            // Some providers reset the connection after the final event.
            Ok(None) | Err(Error::Network(NetworkFault::Closed)) => {
                self.ended = true;
                if !decoder.is_complete() {
                    return Err(Error::BrokenOff);
                }
                self.ready.extend(last_piece(decoder).map(Ok));
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Drains the rest of the body in a background task, so that the connection can be reused.
    fn let_go(&mut self) {
        let Source::Wire(wire) = std::mem::replace(&mut self.source, Source::Ready) else { return };
        let mut opened = wire.opened;
        tokio::spawn(async move {
            let by = Instant::now() + LETTING_GO;
            while let Ok(Some(_)) = opened.next(by).await {}
        });
    }

    fn is_overdue(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// Queues the error behind the pieces received before it, and closes the connection.
    fn fail(&mut self, error: Error) {
        self.ended = true;
        self.source = Source::Ready;
        self.failed = Some(error.clone());
        self.ready.push_back(Err(error));
    }
}

/// The decoder's final deltas after the end of the stream.
fn last_piece(decoder: &mut Decoder) -> Option<Piece> {
    let deltas = decoder.end();
    (!deltas.is_empty()).then_some(Piece::Event { deltas, data: None, counts: false })
}

fn says_something(delta: &Delta) -> bool {
    match delta {
        Delta::Text { text } | Delta::Reasoning { text } => !text.is_empty(),
        Delta::ToolCall { .. } | Delta::Stopped { .. } => true,
        _ => false,
    }
}

/// Some providers report an error as JSON with a success status.
fn is_json(opened: &Opened) -> bool {
    let kind = opened.headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    kind.starts_with(b"application/json")
}

/// Reads the error from a response that is not a stream.
async fn refusal(provider: &Provider, mut opened: Opened, model: &str, by: Instant) -> Error {
    let mut body = Vec::new();
    while body.len() < MOST_REFUSAL {
        match opened.next(by).await {
            Ok(Some(bytes)) => body.extend_from_slice(&bytes),
            _ => break,
        }
    }
    let head = Head { status: opened.status, headers: &opened.headers, at: SystemTime::now() };
    provider.response(head, &body, model).err().unwrap_or(Error::Unreadable("it is no stream"))
}

/// How long draining the body may take after the final event.
const LETTING_GO: Duration = Duration::from_secs(1);
/// Maximum number of bytes read from an error response.
const MOST_REFUSAL: usize = 1 << 20;

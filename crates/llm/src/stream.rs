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
use super::http_client::UnreadResponse;
use super::openai::{self, passthrough_event};
use super::provider::{Provider, StreamDecoder};
use super::signer::Signer;
use super::{ChatRequest, Delta, Error, NetworkError, ResponseHead, SseParser, mock, spans};

/// The pieces of one streaming response, in order. Dropping the stream closes the connection, so the provider stops
/// generating.
#[derive(Debug)]
pub struct ChatStream {
    provider: Arc<Provider>,
    source: StreamSource,
    model: String,
    signer: Signer,
    /// The error that ended the stream.
    error: Option<Error>,
    /// Pieces received but not yet taken by the reader.
    ready: VecDeque<Result<StreamPiece, Error>>,
    /// Remaining deltas of a piece that the reader takes one at a time.
    pending_deltas: VecDeque<Delta>,
    /// Passthrough mode: the reader wants unmodified events where possible.
    passthrough: bool,
    /// When data last arrived.
    last_data_at: Instant,
    /// When the stream must be complete.
    deadline: Option<Instant>,
    ended: bool,
    /// Span of the attempt this stream belongs to.
    span: Span,
}

/// One piece of a streaming response.
#[derive(Debug, Clone)]
pub enum StreamPiece {
    /// OpenAI events that need no parsing, forwarded byte for byte to OpenAI clients.
    Passthrough(Bytes),
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
enum StreamSource {
    Http(Box<HttpSource>),
    /// All pieces are buffered already.
    Buffered,
}

#[derive(Debug)]
struct HttpSource {
    response: UnreadResponse,
    events: SseParser,
    decoder: StreamDecoder,
}

impl StreamPiece {
    /// The parsed deltas; empty for passthrough bytes.
    pub fn deltas(&self) -> &[Delta] {
        match self {
            StreamPiece::Passthrough(_) => &[],
            StreamPiece::Event { deltas, .. } => deltas,
        }
    }

    /// Number of SSE events in this piece.
    pub fn events(&self) -> u64 {
        match self {
            StreamPiece::Passthrough(bytes) => passthrough_event::count_events(bytes),
            StreamPiece::Event { .. } => 1,
        }
    }

    /// Whether the piece carries content for the client, including fields that corbie does not interpret.
    fn has_content(&self) -> bool {
        match self {
            StreamPiece::Passthrough(_) => true,
            StreamPiece::Event { deltas, data, .. } => {
                deltas.iter().any(has_content) || data.as_deref().is_some_and(openai::has_unmodelled_content)
            }
        }
    }
}

impl ChatStream {
    /// Sends a request and waits until `by` for the first piece with content.
    pub(super) async fn open(
        provider: &Arc<Provider>,
        key: usize,
        question: &ChatRequest,
        by: Instant,
    ) -> Result<ChatStream, Error> {
        let (provider, model) = (provider.clone(), question.model());
        let Some(request) = provider.request(key, question)? else {
            let piece = |delta| Ok(StreamPiece::Event { deltas: vec![delta], data: None, counts: false });
            let ready = mock::deltas(&*question.chat()?)?.into_iter().map(piece).collect();
            return Ok(ChatStream::new(provider, StreamSource::Buffered, model, ready));
        };
        let opened = provider.client.open(request, by).await?;
        if !opened.status.is_success() || is_json(&opened) {
            return Err(read_error(&provider, opened, model, by).await);
        }
        let source = StreamSource::Http(Box::new(HttpSource {
            response: opened,
            events: SseParser::default(),
            decoder: provider.decoder(),
        }));
        let mut stream = ChatStream::new(provider, source, model, VecDeque::new());
        match tokio::time::timeout_at(by, stream.read_until_content()).await {
            Ok(result) => result.map(|()| stream),
            Err(_) => Err(Error::Timeout),
        }
    }

    fn new(
        provider: Arc<Provider>,
        source: StreamSource,
        model: &str,
        ready: VecDeque<Result<StreamPiece, Error>>,
    ) -> ChatStream {
        let (signer, model, left) = (provider.signer(model), model.to_owned(), VecDeque::new());
        ChatStream {
            provider,
            source,
            model,
            signer,
            error: None,
            ready,
            pending_deltas: left,
            passthrough: false,
            last_data_at: Instant::now(),
            deadline: None,
            ended: false,
            span: Span::none(),
        }
    }

    /// Sets when the stream must be complete. The idle timeout alone does not end a stream whose provider keeps sending
    /// a little.
    pub fn set_deadline(&mut self, deadline: Instant) {
        self.deadline = Some(deadline);
    }

    /// Switches to passthrough: OpenAI events are parsed only as far as necessary from here on. [`ChatStream::next`] skips
    /// them.
    pub fn enable_passthrough(&mut self) {
        self.passthrough = self.provider.accepts_passthrough();
    }

    /// Whether a piece is buffered.
    pub fn is_ready(&self) -> bool {
        !self.pending_deltas.is_empty() || !self.ready.is_empty()
    }

    /// The next delta, or `None` at the end. An error is always the last item.
    pub async fn next(&mut self) -> Option<Result<Delta, Error>> {
        loop {
            if let Some(delta) = self.pending_deltas.pop_front() {
                return Some(Ok(delta));
            }
            match self.next_piece().await? {
                Ok(piece) => self.pending_deltas.extend(piece.deltas().iter().cloned()),
                Err(error) => return Some(Err(error)),
            }
        }
    }

    /// The next piece, one event or one run of passthrough events.
    pub async fn next_piece(&mut self) -> Option<Result<StreamPiece, Error>> {
        loop {
            // Checked here as well as while waiting: a provider that sends without pause is never waited for.
            if !self.ended && self.is_overdue() {
                self.fail(Error::StreamTimeout);
            }
            if self.ended || !self.ready.is_empty() {
                break;
            }
            self.read_more().await;
        }
        let next = self.ready.pop_front();
        // The opener has already reported a successful start; a later failure counts against the provider too.
        if let (Some(Err(_)), Some(error)) = (&next, self.error.take()) {
            // The time limit is ours and not a failure of the provider.
            if error != Error::StreamTimeout {
                self.provider.record_call(&self.model, Err(&error), Duration::ZERO);
            }
            spans::record_error(&self.span, &error);
        }
        if let Some(Ok(piece)) = &next {
            spans::record_deltas(&self.span, piece.deltas());
        }
        next
    }

    async fn read_until_content(&mut self) -> Result<(), Error> {
        loop {
            for piece in &self.ready {
                match piece {
                    Ok(piece) if piece.has_content() => return Ok(()),
                    Ok(_) => {}
                    Err(error) => return Err(error.clone()),
                }
            }
            if self.ended {
                return Ok(());
            }
            self.read_more().await;
        }
    }

    async fn read_more(&mut self) {
        if let Err(error) = self.read().await {
            self.fail(error);
        }
    }

    async fn read(&mut self) -> Result<(), Error> {
        let StreamSource::Http(wire) = &mut self.source else {
            self.ended = true;
            return Ok(());
        };
        let idle = self.last_data_at + self.provider.timeout;
        let came = wire.response.next(self.deadline.map_or(idle, |deadline| idle.min(deadline))).await;
        if matches!(came, Err(Error::Timeout)) && self.is_overdue() {
            return Err(Error::StreamTimeout);
        }
        self.last_data_at = Instant::now();
        self.process(came)
    }

    /// Reads available bytes without waiting. Returns whether there were any.
    pub fn read_ready(&mut self) -> bool {
        let StreamSource::Http(wire) = &mut self.source else { return false };
        if self.ended {
            return false;
        }
        let Some(came) = wire.response.try_next() else { return false };
        self.last_data_at = Instant::now();
        if let Err(error) = self.process(came) {
            self.fail(error);
        }
        true
    }

    fn process(&mut self, came: Result<Option<Bytes>, Error>) -> Result<(), Error> {
        let StreamSource::Http(wire) = &mut self.source else { return Ok(()) };
        let HttpSource { events, decoder, .. } = &mut **wire;
        match came {
            Ok(Some(mut bytes)) => {
                while !bytes.is_empty() && !decoder.is_finished() {
                    let plain = if self.passthrough && events.is_at_boundary() {
                        passthrough_event::passthrough_len(&bytes)
                    } else {
                        0
                    };
                    if plain > 0 {
                        self.ready.push_back(Ok(StreamPiece::Passthrough(bytes.split_to(plain))));
                        continue;
                    }
                    let end = passthrough_event::first_event_end(&bytes).unwrap_or(bytes.len());
                    let complete = events.push(&bytes.split_to(end));
                    for event in complete.map_err(|_| Error::InvalidResponse("stream event is larger than 16 MiB"))? {
                        // Some providers send empty events as keep-alives, and some keep sending after the end.
                        if event.data.trim().is_empty() || decoder.is_finished() {
                            continue;
                        }
                        let mut deltas = decoder.event(&event).map_err(|error| self.provider.redact_keys(error))?;
                        self.signer.tag_deltas(&mut deltas);
                        let counts = decoder.carries_usage();
                        let data = (self.provider.protocol() == Protocol::OpenAi)
                            .then(|| openai::name_signer(event.data.as_bytes(), &self.signer).unwrap_or(event.data));
                        if !deltas.is_empty() || data.is_some() {
                            self.ready.push_back(Ok(StreamPiece::Event { deltas, data, counts }));
                        }
                    }
                }
                // Some providers leave the connection open after the final event.
                self.ended = decoder.is_finished();
                if self.ended {
                    self.ready.extend(last_piece(decoder).map(Ok));
                    self.drain_in_background();
                }
                Ok(())
            }
            // Some providers reset the connection after the final event.
            Ok(None) | Err(Error::Network(NetworkError::Closed)) => {
                self.ended = true;
                if !decoder.is_complete() {
                    return Err(Error::Truncated);
                }
                self.ready.extend(last_piece(decoder).map(Ok));
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Drains the rest of the body in a background task, so that the connection can be reused.
    fn drain_in_background(&mut self) {
        let StreamSource::Http(wire) = std::mem::replace(&mut self.source, StreamSource::Buffered) else { return };
        let mut opened = wire.response;
        tokio::spawn(async move {
            let by = Instant::now() + DRAIN_TIMEOUT;
            while let Ok(Some(_)) = opened.next(by).await {}
        });
    }

    fn is_overdue(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// Queues the error behind the pieces received before it, and closes the connection.
    fn fail(&mut self, error: Error) {
        self.ended = true;
        self.source = StreamSource::Buffered;
        self.error = Some(error.clone());
        self.ready.push_back(Err(error));
    }
}

impl spans::RecordAttributes for ChatStream {
    /// Records the rest of the stream in this span, which ends with the stream.
    fn record_attributes(&mut self, span: Span) {
        self.span = span;
    }
}

/// The decoder's final deltas after the end of the stream.
fn last_piece(decoder: &mut StreamDecoder) -> Option<StreamPiece> {
    let deltas = decoder.end();
    (!deltas.is_empty()).then_some(StreamPiece::Event { deltas, data: None, counts: false })
}

fn has_content(delta: &Delta) -> bool {
    match delta {
        Delta::Text { text } | Delta::Reasoning { text } => !text.is_empty(),
        Delta::ToolCall { .. } | Delta::Stopped { .. } => true,
        _ => false,
    }
}

/// Some providers report an error as JSON with a success status.
fn is_json(opened: &UnreadResponse) -> bool {
    let kind = opened.headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    kind.starts_with(b"application/json")
}

/// Reads the error from a response that is not a stream.
async fn read_error(provider: &Provider, mut opened: UnreadResponse, model: &str, by: Instant) -> Error {
    let mut body = Vec::new();
    while body.len() < MAX_ERROR_BYTES {
        match opened.next(by).await {
            Ok(Some(bytes)) => body.extend_from_slice(&bytes),
            _ => break,
        }
    }
    let head = ResponseHead { status: opened.status, headers: &opened.headers, received_at: SystemTime::now() };
    provider.response(head, &body, model).err().unwrap_or(Error::InvalidResponse("response is not an event stream"))
}

/// How long draining the body may take after the final event.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum number of bytes read from an error response.
const MAX_ERROR_BYTES: usize = 1 << 20;

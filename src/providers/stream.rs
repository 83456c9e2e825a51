//! An answer that comes in pieces. What breaks off is told as a failure, and never looks like an end.

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
use super::{Delta, Error, Events, Head, NetworkFault, Question, mock, traced};

/// The pieces of one answer, as they come. Dropping it closes the connection, and the provider stops.
#[derive(Debug)]
pub struct Stream {
    provider: Arc<Provider>,
    source: Source,
    model: String,
    /// Why it broke.
    failed: Option<Error>,
    /// What came together and is not taken yet.
    ready: VecDeque<Result<Piece, Error>>,
    /// What is left of a piece that is taken bit by bit.
    left: VecDeque<Delta>,
    /// Whoever takes it wants events as they came, where that can be.
    as_it_came: bool,
    /// When something was last heard of it.
    heard: Instant,
    ended: bool,
    /// The try that it is part of.
    span: Span,
}

/// What came.
#[derive(Debug, Clone)]
pub enum Piece {
    /// Events of OpenAI's protocol that say nothing corbie has to know, for callers who speak it too.
    Plain(Bytes),
    /// One event, read.
    Event {
        deltas: Vec<Delta>,
        /// Its data as it came, where the provider speaks OpenAI's protocol.
        data: Option<String>,
        /// It says how many tokens there were, perhaps again.
        counts: bool,
    },
}

#[derive(Debug)]
enum Source {
    Wire(Box<Wire>),
    /// All pieces are ready already.
    Ready,
}

#[derive(Debug)]
struct Wire {
    opened: Opened,
    events: Events,
    decoder: Decoder,
}

impl Piece {
    /// What it adds to the answer, as far as it was read.
    pub fn deltas(&self) -> &[Delta] {
        match self {
            Piece::Plain(_) => &[],
            Piece::Event { deltas, .. } => deltas,
        }
    }

    /// How many events it is.
    pub fn events(&self) -> u64 {
        match self {
            Piece::Plain(bytes) => plain::count(bytes),
            Piece::Event { .. } => 1,
        }
    }

    /// Whether a caller has something of it, also if corbie does not know what.
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
    /// Sends a request and waits for the first piece that says something, until `by`.
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
            return Err(refusal(&provider, opened, by).await);
        }
        let source = Source::Wire(Box::new(Wire { opened, events: Events::default(), decoder: provider.decoder() }));
        let mut stream = Stream::new(provider, source, model, VecDeque::new());
        match tokio::time::timeout_at(by, stream.until_content()).await {
            Ok(result) => result.map(|()| stream),
            Err(_) => Err(Error::Timeout),
        }
    }

    fn new(provider: Arc<Provider>, source: Source, model: &str, ready: VecDeque<Result<Piece, Error>>) -> Stream {
        let (model, left) = (model.to_owned(), VecDeque::new());
        Stream {
            provider,
            source,
            model,
            failed: None,
            ready,
            left,
            as_it_came: false,
            heard: Instant::now(),
            ended: false,
            span: Span::none(),
        }
    }

    /// What comes from here on is told to a span, which ends with the stream.
    pub(super) fn within(&mut self, span: Span) {
        self.span = span;
    }

    /// From here on, what comes in OpenAI's protocol is read no further than it must be. [`Stream::next`] would miss it.
    pub fn pass_on(&mut self) {
        self.as_it_came = self.provider.takes_as_it_came();
    }

    /// Whether something is there already.
    pub fn is_ready(&self) -> bool {
        !self.left.is_empty() || !self.ready.is_empty()
    }

    /// What comes next, bit by bit; none at the end. A failure is the last that comes.
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

    /// What comes next, event by event.
    pub async fn next_piece(&mut self) -> Option<Result<Piece, Error>> {
        while self.ready.is_empty() && !self.ended {
            self.more().await;
        }
        let next = self.ready.pop_front();
        // Whoever opened it has been told how it began; that it broke later says something of the provider too.
        if let (Some(Err(_)), Some(error)) = (&next, self.failed.take()) {
            self.provider.answered(&self.model, Err(&error), Duration::ZERO);
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
        let came = wire.opened.next(self.heard + self.provider.timeout).await;
        self.heard = Instant::now();
        self.take(came)
    }

    /// Takes what has come without waiting for anything; tells whether something had.
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
                        // Some write empty events as signs of life, and some go on after the end.
                        if event.data.trim().is_empty() || decoder.is_over() {
                            continue;
                        }
                        let deltas = decoder.event(&event).map_err(|error| self.provider.scrubbed(error))?;
                        let counts = decoder.tells_tokens();
                        let data = (self.provider.protocol() == Protocol::OpenAi).then_some(event.data);
                        if !deltas.is_empty() || data.is_some() {
                            self.ready.push_back(Ok(Piece::Event { deltas, data, counts }));
                        }
                    }
                }
                // Some say that all is said and keep the connection open.
                self.ended = decoder.is_over();
                if self.ended {
                    self.ready.extend(last_piece(decoder).map(Ok));
                    self.let_go();
                }
                Ok(())
            }
            // Some close the connection rudely when all is said.
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

    /// Reads the last bytes of a body whose answer is complete, aside: the connection can then be used again.
    fn let_go(&mut self) {
        let Source::Wire(wire) = std::mem::replace(&mut self.source, Source::Ready) else { return };
        let mut opened = wire.opened;
        tokio::spawn(async move {
            let by = Instant::now() + LETTING_GO;
            while let Ok(Some(_)) = opened.next(by).await {}
        });
    }

    /// What fails comes after the pieces before it.
    fn fail(&mut self, error: Error) {
        self.ended = true;
        self.failed = Some(error.clone());
        self.ready.push_back(Err(error));
    }
}

/// What is told once nothing more comes.
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

/// Some tell of a failure under a status of success.
fn is_json(opened: &Opened) -> bool {
    let kind = opened.headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    kind.starts_with(b"application/json")
}

/// What an answer says that is no stream.
async fn refusal(provider: &Provider, mut opened: Opened, by: Instant) -> Error {
    let mut body = Vec::new();
    while body.len() < MOST_REFUSAL {
        match opened.next(by).await {
            Ok(Some(bytes)) => body.extend_from_slice(&bytes),
            _ => break,
        }
    }
    let head = Head { status: opened.status, headers: &opened.headers, at: SystemTime::now() };
    provider.response(head, &body).err().unwrap_or(Error::Unreadable("it is no stream"))
}

/// How long the end of a body may take after the end of its answer.
const LETTING_GO: Duration = Duration::from_secs(1);
/// No refusal needs more words.
const MOST_REFUSAL: usize = 1 << 20;

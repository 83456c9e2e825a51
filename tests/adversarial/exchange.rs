//! Parser of the exchange corpus; `exchanges/README.md` documents the format.

use std::time::Duration;

/// The actions of one hostile client, and the expected outcome.
#[derive(Debug)]
pub(crate) struct AttackExchange {
    pub(crate) name: String,
    /// The goal of the client, as text.
    pub(crate) goal: String,
    pub(crate) server: String,
    /// Needs a fresh server.
    pub(crate) needs_fresh_server: bool,
    pub(crate) steps: Vec<(usize, ExchangeStep)>,
}

/// Texts are stored unexpanded: some variables get their values only when they are sent.
#[derive(Debug)]
pub(crate) enum ExchangeStep {
    /// Switches to another connection, which is opened if it is new.
    Connection(String),
    Send(String),
    Request(RequestTemplate),
    /// From here on, writes in pieces of this many bytes.
    ChunkSize(usize),
    /// Byte by byte, until everything is sent or the server disconnects.
    Drip(Duration, String),
    /// Repeatedly without reading, until the server disconnects.
    Flood(String),
    HalfClose,
    Close,
    WebSocket,
    Frame(FrameTemplate),
    /// A line on stdin.
    Line(String),
    Expect(Expectation),
    /// Text that must not be on stderr at the end.
    NeverLogged(String),
}

/// An HTTP request that is well-formed except for the changes of the exchange.
#[derive(Debug, Default)]
pub(crate) struct RequestTemplate {
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) headers: Vec<String>,
    /// Default headers to omit.
    pub(crate) omitted_headers: Vec<String>,
    pub(crate) body: String,
}

/// A WebSocket frame, masked with zeros, so that its payload is readable on the wire.
#[derive(Debug)]
pub(crate) struct FrameTemplate {
    pub(crate) opcode: u8,
    pub(crate) finished: bool,
    pub(crate) reserved: u8,
    pub(crate) masked: bool,
    /// Instead of the true length.
    pub(crate) length: Option<u64>,
    pub(crate) payload: String,
}

#[derive(Debug)]
pub(crate) enum Expectation {
    /// This many HTTP replies, each with one of these statuses; or a disconnect, if allowed.
    Status {
        times: usize,
        any: Vec<u16>,
        or_closed: bool,
    },
    /// The head of a reply with an unfinished body.
    Stream(u16),
    /// The end of that body.
    Ends,
    /// A WebSocket message.
    Message,
    /// A WebSocket close frame with one of these codes.
    CloseFrame {
        any: Vec<u16>,
        or_closed: bool,
    },
    /// A line on stdout.
    Line,
    /// No output on stdout: the next line answers the next request.
    Silence,
    /// The JSON-RPC error code of the last reply.
    Code(i64),
    Contains(String),
    Excludes(String),
    /// The server disconnects without further data.
    Closed,
    /// The connection stays open with no unread data: the next request gets its own reply.
    Open,
}

/// End of an HTTP line, in corpus notation.
const END_OF_LINE: &str = "<<0d 0a>>";

/// Parses a file of the corpus.
pub(crate) fn parse(file: &str) -> Result<Vec<AttackExchange>, String> {
    let mut exchanges: Vec<AttackExchange> = Vec::new();
    let mut usual = String::from("plain");
    for (number, line) in file.lines().enumerate().map(|(index, line)| (index + 1, line)) {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
        let Some(exchange) = exchanges.last_mut().filter(|_| verb != "==") else {
            match verb {
                "server" => usual = rest.to_owned(),
                "==" => exchanges.push(AttackExchange {
                    name: rest.to_owned(),
                    goal: String::new(),
                    server: usual.clone(),
                    needs_fresh_server: false,
                    steps: Vec::new(),
                }),
                _ => return Err(format!("line {number}: `{verb}` before the first exchange")),
            }
            continue;
        };
        exchange.parse_line(verb, rest, number).map_err(|problem| format!("line {number}: {problem}"))?;
    }
    Ok(exchanges)
}

impl AttackExchange {
    fn parse_line(&mut self, verb: &str, rest: &str, number: usize) -> Result<(), String> {
        let text = rest.to_owned();
        let step = match (verb, self.steps.last_mut()) {
            ("tries", _) => {
                self.goal = text;
                return Ok(());
            }
            ("server", _) => {
                self.server = text;
                return Ok(());
            }
            ("alone", _) => {
                self.needs_fresh_server = true;
                return Ok(());
            }
            ("+", Some((_, ExchangeStep::Request(request)))) => {
                request.headers.push(text);
                return Ok(());
            }
            ("-", Some((_, ExchangeStep::Request(request)))) => {
                request.omitted_headers.push(text);
                return Ok(());
            }
            ("|", Some((_, ExchangeStep::Request(request)))) => {
                request.body += rest;
                return Ok(());
            }
            ("request", _) => {
                let (method, target) = rest.split_once(' ').ok_or("a method and a target")?;
                ExchangeStep::Request(RequestTemplate {
                    method: method.into(),
                    target: target.into(),
                    ..RequestTemplate::default()
                })
            }
            // Consecutive lines are written in one call, so that they arrive together.
            (">" | "raw", Some((_, ExchangeStep::Send(before)))) => {
                *before += rest;
                *before += if verb == ">" { END_OF_LINE } else { "" };
                return Ok(());
            }
            (">", _) => ExchangeStep::Send(text + END_OF_LINE),
            ("raw", _) => ExchangeStep::Send(text),
            ("connection", _) => ExchangeStep::Connection(text),
            ("pieces", _) => ExchangeStep::ChunkSize(rest.parse().map_err(|_| "a number of bytes")?),
            ("drip", _) => {
                let (pause, text) = rest.split_once(' ').ok_or("a pause and a text")?;
                let pause = humantime::parse_duration(pause).map_err(|error| error.to_string())?;
                ExchangeStep::Drip(pause, text.into())
            }
            ("flood", _) => ExchangeStep::Flood(text),
            ("half-close", _) => ExchangeStep::HalfClose,
            ("close", _) => ExchangeStep::Close,
            ("websocket", _) => ExchangeStep::WebSocket,
            ("frame", _) => ExchangeStep::Frame(parse_frame(rest)?),
            ("line", _) => ExchangeStep::Line(text),
            ("never-logged", _) => ExchangeStep::NeverLogged(text),
            ("<", _) => ExchangeStep::Expect(parse_expectation(rest)?),
            _ => return Err(format!("what is `{verb}` here?")),
        };
        self.steps.push((number, step));
        Ok(())
    }
}

/// `text [unfinished] [reserved] [unmasked] [length=N] payload`; the payload begins at the first other word.
fn parse_frame(text: &str) -> Result<FrameTemplate, String> {
    let (kind, mut rest) = text.split_once(' ').unwrap_or((text, ""));
    let opcode = match kind {
        "continuation" => 0,
        "text" => 1,
        "binary" => 2,
        "close" => 8,
        "ping" => 9,
        "pong" => 10,
        number => number.parse().map_err(|_| format!("what is a frame of kind `{number}`?"))?,
    };
    let mut frame =
        FrameTemplate { opcode, finished: true, reserved: 0, masked: true, length: None, payload: String::new() };
    loop {
        let (word, after) = rest.split_once(' ').unwrap_or((rest, ""));
        match word {
            "unfinished" => frame.finished = false,
            "unmasked" => frame.masked = false,
            "reserved1" => frame.reserved = 0x40,
            "reserved2" => frame.reserved = 0x20,
            "reserved3" => frame.reserved = 0x10,
            word => match word.strip_prefix("length=") {
                Some(length) => frame.length = Some(length.parse().map_err(|_| "a length in bytes")?),
                None => {
                    frame.payload = rest.to_owned();
                    return Ok(frame);
                }
            },
        }
        rest = after;
    }
}

fn parse_expectation(text: &str) -> Result<Expectation, String> {
    let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
    Ok(match word {
        "ends" => Expectation::Ends,
        "message" => Expectation::Message,
        "close-frame" => {
            let (any, or_closed) = parse_statuses(rest)?;
            Expectation::CloseFrame { any, or_closed }
        }
        "line" => Expectation::Line,
        "silence" => Expectation::Silence,
        "code" => Expectation::Code(rest.parse().map_err(|_| "a number")?),
        "has" => Expectation::Contains(rest.into()),
        "not" => Expectation::Excludes(rest.into()),
        "closed" => Expectation::Closed,
        "open" => Expectation::Open,
        "stream" => Expectation::Stream(rest.parse().map_err(|_| "a status")?),
        _ => {
            let (times, statuses) = text.split_once(" times ").unwrap_or(("1", text));
            let (any, or_closed) = parse_statuses(statuses)?;
            Expectation::Status { times: times.parse().map_err(|_| "a count")?, any, or_closed }
        }
    })
}

/// `400|413|closed`.
fn parse_statuses(text: &str) -> Result<(Vec<u16>, bool), String> {
    let (mut numbers, mut or_closed) = (Vec::new(), false);
    for word in text.split('|') {
        match word {
            "closed" => or_closed = true,
            number => numbers.push(number.parse().map_err(|_| format!("what is `{number}` to expect?"))?),
        }
    }
    Ok((numbers, or_closed))
}

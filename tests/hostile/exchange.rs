//! Parser of the exchange corpus; `exchanges/README.md` documents the format.

use std::time::Duration;

/// The actions of one hostile client, and the expected outcome.
#[derive(Debug)]
pub(crate) struct Exchange {
    pub(crate) name: String,
    /// The goal of the client, as text.
    pub(crate) tries: String,
    pub(crate) server: String,
    /// Needs a fresh server.
    pub(crate) alone: bool,
    pub(crate) steps: Vec<(usize, Step)>,
}

/// Texts are stored unexpanded: some variables get their values only when they are sent.
#[derive(Debug)]
pub(crate) enum Step {
    /// Switches to another connection, which is opened if it is new.
    Connection(String),
    Send(String),
    Request(Request),
    /// From here on, writes in pieces of this many bytes.
    Pieces(usize),
    /// Byte by byte, until everything is sent or the server disconnects.
    Drip(Duration, String),
    /// Repeatedly without reading, until the server disconnects.
    Flood(String),
    HalfClose,
    Close,
    WebSocket,
    Frame(Frame),
    /// A line on stdin.
    Line(String),
    Expect(Expect),
    /// Text that must not be on stderr at the end.
    NeverLogged(String),
}

/// An HTTP request that is well-formed except for the changes of the exchange.
#[derive(Debug, Default)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) headers: Vec<String>,
    /// Default headers to omit.
    pub(crate) without: Vec<String>,
    pub(crate) body: String,
}

/// A WebSocket frame, masked with zeros, so that its payload is readable on the wire.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) opcode: u8,
    pub(crate) finished: bool,
    pub(crate) reserved: u8,
    pub(crate) masked: bool,
    /// Instead of the true length.
    pub(crate) length: Option<u64>,
    pub(crate) payload: String,
}

#[derive(Debug)]
pub(crate) enum Expect {
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
    Has(String),
    HasNot(String),
    /// The server disconnects without further data.
    Closed,
    /// The connection stays open with no unread data: the next request gets its own reply.
    Open,
}

/// End of an HTTP line, in corpus notation.
const END_OF_LINE: &str = "<<0d 0a>>";

/// Parses a file of the corpus.
pub(crate) fn parse(file: &str) -> Result<Vec<Exchange>, String> {
    let mut exchanges: Vec<Exchange> = Vec::new();
    let mut usual = String::from("plain");
    for (number, line) in file.lines().enumerate().map(|(index, line)| (index + 1, line)) {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
        let Some(exchange) = exchanges.last_mut().filter(|_| verb != "==") else {
            match verb {
                "server" => usual = rest.to_owned(),
                "==" => exchanges.push(Exchange {
                    name: rest.to_owned(),
                    tries: String::new(),
                    server: usual.clone(),
                    alone: false,
                    steps: Vec::new(),
                }),
                _ => return Err(format!("line {number}: `{verb}` before the first exchange")),
            }
            continue;
        };
        exchange.read(verb, rest, number).map_err(|problem| format!("line {number}: {problem}"))?;
    }
    Ok(exchanges)
}

impl Exchange {
    fn read(&mut self, verb: &str, rest: &str, number: usize) -> Result<(), String> {
        let text = rest.to_owned();
        let step = match (verb, self.steps.last_mut()) {
            ("tries", _) => {
                self.tries = text;
                return Ok(());
            }
            ("server", _) => {
                self.server = text;
                return Ok(());
            }
            ("alone", _) => {
                self.alone = true;
                return Ok(());
            }
            ("+", Some((_, Step::Request(request)))) => {
                request.headers.push(text);
                return Ok(());
            }
            ("-", Some((_, Step::Request(request)))) => {
                request.without.push(text);
                return Ok(());
            }
            ("|", Some((_, Step::Request(request)))) => {
                request.body += rest;
                return Ok(());
            }
            ("request", _) => {
                let (method, target) = rest.split_once(' ').ok_or("a method and a target")?;
                Step::Request(Request { method: method.into(), target: target.into(), ..Request::default() })
            }
            // Consecutive lines are written in one call, so that they arrive together.
            (">" | "raw", Some((_, Step::Send(before)))) => {
                *before += rest;
                *before += if verb == ">" { END_OF_LINE } else { "" };
                return Ok(());
            }
            (">", _) => Step::Send(text + END_OF_LINE),
            ("raw", _) => Step::Send(text),
            ("connection", _) => Step::Connection(text),
            ("pieces", _) => Step::Pieces(rest.parse().map_err(|_| "a number of bytes")?),
            ("drip", _) => {
                let (pause, text) = rest.split_once(' ').ok_or("a pause and a text")?;
                let pause = humantime::parse_duration(pause).map_err(|error| error.to_string())?;
                Step::Drip(pause, text.into())
            }
            ("flood", _) => Step::Flood(text),
            ("half-close", _) => Step::HalfClose,
            ("close", _) => Step::Close,
            ("websocket", _) => Step::WebSocket,
            ("frame", _) => Step::Frame(frame(rest)?),
            ("line", _) => Step::Line(text),
            ("never-logged", _) => Step::NeverLogged(text),
            ("<", _) => Step::Expect(expect(rest)?),
            _ => return Err(format!("what is `{verb}` here?")),
        };
        self.steps.push((number, step));
        Ok(())
    }
}

/// `text [unfinished] [reserved] [unmasked] [length=N] payload`; the payload begins at the first other word.
fn frame(text: &str) -> Result<Frame, String> {
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
    let mut frame = Frame { opcode, finished: true, reserved: 0, masked: true, length: None, payload: String::new() };
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

fn expect(text: &str) -> Result<Expect, String> {
    let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
    Ok(match word {
        "ends" => Expect::Ends,
        "message" => Expect::Message,
        "close-frame" => {
            let (any, or_closed) = numbers(rest)?;
            Expect::CloseFrame { any, or_closed }
        }
        "line" => Expect::Line,
        "silence" => Expect::Silence,
        "code" => Expect::Code(rest.parse().map_err(|_| "a number")?),
        "has" => Expect::Has(rest.into()),
        "not" => Expect::HasNot(rest.into()),
        "closed" => Expect::Closed,
        "open" => Expect::Open,
        "stream" => Expect::Stream(rest.parse().map_err(|_| "a status")?),
        _ => {
            let (times, statuses) = text.split_once(" times ").unwrap_or(("1", text));
            let (any, or_closed) = numbers(statuses)?;
            Expect::Status { times: times.parse().map_err(|_| "a count")?, any, or_closed }
        }
    })
}

/// `400|413|closed`.
fn numbers(text: &str) -> Result<(Vec<u16>, bool), String> {
    let (mut numbers, mut or_closed) = (Vec::new(), false);
    for word in text.split('|') {
        match word {
            "closed" => or_closed = true,
            number => numbers.push(number.parse().map_err(|_| format!("what is `{number}` to expect?"))?),
        }
    }
    Ok((numbers, or_closed))
}

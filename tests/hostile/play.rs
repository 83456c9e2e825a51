//! Plays a file of the corpus, one exchange after the other, and reports every failed one.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use serde_json::Value;

use crate::exchange::{self, Exchange, Expect, Request, Step};
use crate::peer::{Peer, Reply, encode, find};
use crate::servers::{Server, TOKEN};
use crate::text;

/// State between the steps of an exchange.
struct Stage<'a> {
    server: &'a mut Server,
    peers: HashMap<String, Peer>,
    current: String,
    last: Reply,
    never_logged: NeverLogged,
}

/// Text that must not be on stderr at the end, with the name of its exchange.
type NeverLogged = Vec<(String, Vec<u8>)>;

/// Text that no reply may contain (S-03): internals and secrets.
const INTERNALS: [&str; 4] = ["panicked", ".rs:", "RUST_BACKTRACE", TOKEN];

/// Plays everything in a file. Each kind of server is started once and stopped at the end.
#[track_caller]
pub(crate) fn play(file: &str) {
    let exchanges = exchange::parse(file).unwrap();
    let mut servers: HashMap<String, (Server, NeverLogged)> = HashMap::new();
    let mut failures = Vec::new();
    let count = exchanges.len();
    for exchange in exchanges {
        let kind = if exchange.alone { exchange.name.clone() } else { exchange.server.clone() };
        let (server, never_logged) =
            servers.entry(kind).or_insert_with(|| (Server::start(&exchange.server), Vec::new()));
        let played = perform(&exchange, server, never_logged).and_then(|()| server.still_serves());
        if let Err(problem) = played {
            failures.push(format!("{} ({}): {problem:.600}", exchange.name, exchange.tries));
        }
    }
    for (kind, (server, never_logged)) in servers {
        if let Err(problem) = server.end(&never_logged) {
            failures.push(format!("the server `{kind}` at its end: {problem:.600}"));
        }
    }
    assert!(failures.is_empty(), "{} of {count} went wrong:\n{}", failures.len(), failures.join("\n"));
}

fn perform(exchange: &Exchange, server: &mut Server, never_logged: &mut NeverLogged) -> Result<(), String> {
    let mut stage = Stage {
        server,
        peers: HashMap::new(),
        current: String::new(),
        last: Reply::default(),
        never_logged: Vec::new(),
    };
    let told = exchange.steps.iter().try_for_each(|(line, step)| {
        stage.step(&exchange.name, step).map_err(|problem| format!("line {line}: {problem}"))
    });
    never_logged.append(&mut stage.never_logged);
    told
}

impl Stage<'_> {
    fn step(&mut self, name: &str, step: &Step) -> Result<(), String> {
        match step {
            Step::Connection(name) => self.current.clone_from(name),
            Step::Send(text) => {
                let bytes = self.bytes(text)?;
                self.peer()?.send(&bytes);
            }
            Step::Request(request) => {
                let bytes = self.request(request)?;
                self.peer()?.send(&bytes);
            }
            Step::Pieces(length) => self.peer()?.pieces = *length,
            Step::Drip(pause, text) => {
                let bytes = self.bytes(text)?;
                self.peer()?.drip(&bytes, *pause);
            }
            Step::Flood(text) => {
                let bytes = self.bytes(text)?;
                self.peer()?.flood(&bytes)?;
            }
            Step::HalfClose => self.peer()?.half_close(),
            Step::Close => {
                self.peers.remove(&self.current);
            }
            Step::WebSocket => self.open_socket()?,
            Step::Frame(frame) => {
                let payload = self.bytes(&frame.payload)?;
                self.peer()?.send(&encode(frame, &payload));
            }
            Step::Line(text) => {
                let line = [self.bytes(text)?, b"\n".to_vec()].concat();
                self.server.running.send_bytes(&line);
            }
            Step::NeverLogged(text) => {
                let text = self.bytes(text)?;
                self.never_logged.push((name.to_owned(), text));
            }
            Step::Expect(expect) => self.expect(expect)?,
        }
        Ok(())
    }

    fn expect(&mut self, expect: &Expect) -> Result<(), String> {
        match expect {
            Expect::Status { times, any, or_closed } => {
                for _ in 0..*times {
                    match self.peer()?.reply()? {
                        None if *or_closed => self.last = Reply::default(),
                        None => return Err(format!("it hung up instead of answering {any:?}")),
                        Some(reply) if any.contains(&reply.status) => self.heard(reply)?,
                        Some(reply) => return Err(format!("not {any:?}: {}", shown(&reply.text()))),
                    }
                }
                Ok(())
            }
            Expect::Stream(status) => match self.peer()?.head()? {
                Some(reply) if reply.status == *status => self.heard(reply),
                other => Err(format!("not {status}: {other:?}")),
            },
            Expect::Ends => self.peer()?.chunks().map(drop),
            Expect::Message => match self.peer()?.frame()? {
                Some((1, body)) => self.heard(Reply { body, ..Reply::default() }),
                other => Err(format!("no message: {other:?}")),
            },
            Expect::CloseFrame { any, or_closed } => match self.peer()?.frame()? {
                None if *or_closed => Ok(()),
                Some((8, payload)) => match payload.first_chunk().map(|code| u16::from_be_bytes(*code)) {
                    Some(code) if any.contains(&code) => Ok(()),
                    code => Err(format!("not closed with {any:?} but {code:?}: {}", shown(&payload))),
                },
                other => Err(format!("no close frame: {other:?}")),
            },
            Expect::Line => {
                let body = self.server.running.line().into_bytes();
                self.heard(Reply { body, ..Reply::default() })
            }
            Expect::Silence => self.server.still_serves(),
            Expect::Code(code) => {
                let body: Value = serde_json::from_slice(&self.last.body)
                    .map_err(|error| format!("{error} in {}", shown(&self.last.body)))?;
                if body["error"]["code"] == *code { Ok(()) } else { Err(format!("not {code}: {body}")) }
            }
            Expect::Has(part) => match find(&self.last.text(), &self.bytes(part)?) {
                Some(_) => Ok(()),
                None => Err(format!("no {part:?} in {}", shown(&self.last.text()))),
            },
            Expect::HasNot(part) => match find(&self.last.text(), &self.bytes(part)?) {
                None => Ok(()),
                Some(_) => Err(format!("{part:?} in {}", shown(&self.last.text()))),
            },
            Expect::Closed => self.peer()?.closed(),
            Expect::Open => {
                let good = self.bytes("GET /live HTTP/1.1<<0d 0a>>Host: localhost<<0d 0a 0d 0a>>")?;
                self.peer()?.send(&good);
                match self.peer()?.reply()? {
                    Some(reply) if reply.status == 200 && reply.body == br#"{"status":"ok"}"# => Ok(()),
                    Some(reply) => Err(format!("the next request gets another's answer: {}", shown(&reply.text()))),
                    None => Err("the connection is closed".into()),
                }
            }
        }
    }

    /// No reply may reveal internals.
    fn heard(&mut self, reply: Reply) -> Result<(), String> {
        let text = reply.text();
        if let Some(word) = INTERNALS.iter().find(|word| find(&text, word.as_bytes()).is_some()) {
            return Err(format!("the reply tells {word:?}: {}", shown(&text)));
        }
        if let Some(id) = reply.head.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")) {
            self.server.facts.session = id.to_owned();
        }
        self.last = reply;
        Ok(())
    }

    fn open_socket(&mut self) -> Result<(), String> {
        let upgrade = Request {
            method: "GET".into(),
            target: "/mcp".into(),
            headers: vec![
                "Connection: Upgrade".into(),
                "Upgrade: websocket".into(),
                "Sec-WebSocket-Version: 13".into(),
                "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==".into(),
            ],
            ..Request::default()
        };
        let bytes = self.request(&upgrade)?;
        self.peer()?.send(&bytes);
        self.expect(&Expect::Status { times: 1, any: vec![101], or_closed: false })
    }

    /// A request with the default headers, except for replaced or omitted ones.
    fn request(&self, request: &Request) -> Result<Vec<u8>, String> {
        let body = self.bytes(&request.body)?;
        let mut head = format!("{} {} HTTP/1.1<<0d 0a>>", request.method, request.target);
        let has = |name: &str| {
            let given = request.headers.iter().filter_map(|header| header.split_once(':'));
            given.map(|(given, _)| given).chain(request.without.iter().map(String::as_str)).any(|each| each == name)
        };
        let mut usual = vec![("Host", "localhost".to_owned())];
        if request.method == "POST" {
            usual.push(("Content-Type", "application/json".into()));
            usual.push(("Content-Length", body.len().to_string()));
        }
        for (name, value) in usual.iter().filter(|(name, _)| !has(name)) {
            head += &format!("{name}: {value}<<0d 0a>>");
        }
        for header in &request.headers {
            head += &format!("{header}<<0d 0a>>");
        }
        Ok([self.bytes(&(head + "<<0d 0a>>"))?, body].concat())
    }

    fn bytes(&self, text: &str) -> Result<Vec<u8>, String> {
        text::bytes(text, &self.server.facts)
    }

    /// The current connection; it is opened on first use.
    fn peer(&mut self) -> Result<&mut Peer, String> {
        match self.peers.entry(self.current.clone()) {
            Entry::Occupied(open) => Ok(open.into_mut()),
            Entry::Vacant(place) => Ok(place.insert(Peer::connect(self.server.client)?)),
        }
    }
}

fn shown(bytes: &[u8]) -> String {
    format!("{:.400}", String::from_utf8_lossy(bytes))
}

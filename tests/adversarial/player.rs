//! Plays a file of the corpus, one exchange after the other, and reports every failed one.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use serde_json::Value;

use crate::byte_template;
use crate::exchange::{self, AttackExchange, ExchangeStep, Expectation, RequestTemplate};
use crate::raw_socket::{RawResponse, RawSocket, encode_frame, find};
use crate::target_server::{TOKEN, TargetServer};

/// State between the steps of an exchange.
struct ExchangePlayer<'a> {
    server: &'a mut TargetServer,
    connections: HashMap<String, RawSocket>,
    current: String,
    last_response: RawResponse,
    never_logged: ForbiddenLogTexts,
}

/// Text that must not be on stderr at the end, with the name of its exchange.
type ForbiddenLogTexts = Vec<(String, Vec<u8>)>;

/// Text that no reply may contain (S-03): internals and secrets.
const INTERNALS: [&str; 4] = ["panicked", ".rs:", "RUST_BACKTRACE", TOKEN];

/// Plays everything in a file. Each kind of server is started once and stopped at the end.
#[track_caller]
pub(crate) fn play_file(file: &str) {
    let exchanges = exchange::parse(file).unwrap();
    let mut servers: HashMap<String, (TargetServer, ForbiddenLogTexts)> = HashMap::new();
    let mut failures = Vec::new();
    let count = exchanges.len();
    for exchange in exchanges {
        let kind = if exchange.needs_fresh_server { exchange.name.clone() } else { exchange.server.clone() };
        let (server, never_logged) =
            servers.entry(kind).or_insert_with(|| (TargetServer::start(&exchange.server), Vec::new()));
        let played = play_exchange(&exchange, server, never_logged).and_then(|()| server.check_alive());
        if let Err(problem) = played {
            failures.push(format!("{} ({}): {problem:.600}", exchange.name, exchange.goal));
        }
    }
    for (kind, (server, never_logged)) in servers {
        if let Err(problem) = server.stop_and_check(&never_logged) {
            failures.push(format!("the server `{kind}` at its end: {problem:.600}"));
        }
    }
    assert!(failures.is_empty(), "{} of {count} went wrong:\n{}", failures.len(), failures.join("\n"));
}

fn play_exchange(
    exchange: &AttackExchange,
    server: &mut TargetServer,
    never_logged: &mut ForbiddenLogTexts,
) -> Result<(), String> {
    let mut stage = ExchangePlayer {
        server,
        connections: HashMap::new(),
        current: String::new(),
        last_response: RawResponse::default(),
        never_logged: Vec::new(),
    };
    let told = exchange.steps.iter().try_for_each(|(line, step)| {
        stage.run_step(&exchange.name, step).map_err(|problem| format!("line {line}: {problem}"))
    });
    never_logged.append(&mut stage.never_logged);
    told
}

impl ExchangePlayer<'_> {
    fn run_step(&mut self, name: &str, step: &ExchangeStep) -> Result<(), String> {
        match step {
            ExchangeStep::Connection(name) => self.current.clone_from(name),
            ExchangeStep::Send(text) => {
                let bytes = self.render_bytes(text)?;
                self.connection()?.send(&bytes);
            }
            ExchangeStep::Request(request) => {
                let bytes = self.render_request(request)?;
                self.connection()?.send(&bytes);
            }
            ExchangeStep::ChunkSize(length) => self.connection()?.chunk_size = *length,
            ExchangeStep::Drip(pause, text) => {
                let bytes = self.render_bytes(text)?;
                self.connection()?.drip(&bytes, *pause);
            }
            ExchangeStep::Flood(text) => {
                let bytes = self.render_bytes(text)?;
                self.connection()?.flood(&bytes)?;
            }
            ExchangeStep::HalfClose => self.connection()?.half_close(),
            ExchangeStep::Close => {
                self.connections.remove(&self.current);
            }
            ExchangeStep::WebSocket => self.open_websocket()?,
            ExchangeStep::Frame(frame) => {
                let payload = self.render_bytes(&frame.payload)?;
                self.connection()?.send(&encode_frame(frame, &payload));
            }
            ExchangeStep::Line(text) => {
                let line = [self.render_bytes(text)?, b"\n".to_vec()].concat();
                self.server.running.send_bytes(&line);
            }
            ExchangeStep::NeverLogged(text) => {
                let text = self.render_bytes(text)?;
                self.never_logged.push((name.to_owned(), text));
            }
            ExchangeStep::Expect(expect) => self.check_expectation(expect)?,
        }
        Ok(())
    }

    fn check_expectation(&mut self, expect: &Expectation) -> Result<(), String> {
        match expect {
            Expectation::Status { times, any, or_closed } => {
                for _ in 0..*times {
                    match self.connection()?.read_response()? {
                        None if *or_closed => self.last_response = RawResponse::default(),
                        None => return Err(format!("it hung up instead of answering {any:?}")),
                        Some(reply) if any.contains(&reply.status) => self.check_response(reply)?,
                        Some(reply) => return Err(format!("not {any:?}: {}", preview(&reply.text()))),
                    }
                }
                Ok(())
            }
            Expectation::Stream(status) => match self.connection()?.read_head()? {
                Some(reply) if reply.status == *status => self.check_response(reply),
                other => Err(format!("not {status}: {other:?}")),
            },
            Expectation::Ends => self.connection()?.read_chunked_body().map(drop),
            Expectation::Message => match self.connection()?.read_frame()? {
                Some((1, body)) => self.check_response(RawResponse { body, ..RawResponse::default() }),
                other => Err(format!("no message: {other:?}")),
            },
            Expectation::CloseFrame { any, or_closed } => match self.connection()?.read_frame()? {
                None if *or_closed => Ok(()),
                Some((8, payload)) => match payload.first_chunk().map(|code| u16::from_be_bytes(*code)) {
                    Some(code) if any.contains(&code) => Ok(()),
                    code => Err(format!("not closed with {any:?} but {code:?}: {}", preview(&payload))),
                },
                other => Err(format!("no close frame: {other:?}")),
            },
            Expectation::Line => {
                let body = self.server.running.read_line().into_bytes();
                self.check_response(RawResponse { body, ..RawResponse::default() })
            }
            Expectation::Silence => self.server.check_alive(),
            Expectation::Code(code) => {
                let body: Value = serde_json::from_slice(&self.last_response.body)
                    .map_err(|error| format!("{error} in {}", preview(&self.last_response.body)))?;
                if body["error"]["code"] == *code { Ok(()) } else { Err(format!("not {code}: {body}")) }
            }
            Expectation::Contains(part) => match find(&self.last_response.text(), &self.render_bytes(part)?) {
                Some(_) => Ok(()),
                None => Err(format!("no {part:?} in {}", preview(&self.last_response.text()))),
            },
            Expectation::Excludes(part) => match find(&self.last_response.text(), &self.render_bytes(part)?) {
                None => Ok(()),
                Some(_) => Err(format!("{part:?} in {}", preview(&self.last_response.text()))),
            },
            Expectation::Closed => self.connection()?.expect_close(),
            Expectation::Open => {
                let good = self.render_bytes("GET /live HTTP/1.1<<0d 0a>>Host: localhost<<0d 0a 0d 0a>>")?;
                self.connection()?.send(&good);
                match self.connection()?.read_response()? {
                    Some(reply) if reply.status == 200 && reply.body == br#"{"status":"ok"}"# => Ok(()),
                    Some(reply) => Err(format!("the next request gets another's answer: {}", preview(&reply.text()))),
                    None => Err("the connection is closed".into()),
                }
            }
        }
    }

    /// No reply may reveal internals.
    fn check_response(&mut self, reply: RawResponse) -> Result<(), String> {
        let text = reply.text();
        if let Some(word) = INTERNALS.iter().find(|word| find(&text, word.as_bytes()).is_some()) {
            return Err(format!("the reply tells {word:?}: {}", preview(&text)));
        }
        if let Some(id) = reply.head.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")) {
            self.server.values.session = id.to_owned();
        }
        self.last_response = reply;
        Ok(())
    }

    fn open_websocket(&mut self) -> Result<(), String> {
        let upgrade = RequestTemplate {
            method: "GET".into(),
            target: "/mcp".into(),
            headers: vec![
                "Connection: Upgrade".into(),
                "Upgrade: websocket".into(),
                "Sec-WebSocket-Version: 13".into(),
                "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==".into(),
            ],
            ..RequestTemplate::default()
        };
        let bytes = self.render_request(&upgrade)?;
        self.connection()?.send(&bytes);
        self.check_expectation(&Expectation::Status { times: 1, any: vec![101], or_closed: false })
    }

    /// A request with the default headers, except for replaced or omitted ones.
    fn render_request(&self, request: &RequestTemplate) -> Result<Vec<u8>, String> {
        let body = self.render_bytes(&request.body)?;
        let mut head = format!("{} {} HTTP/1.1<<0d 0a>>", request.method, request.target);
        let has = |name: &str| {
            let given = request.headers.iter().filter_map(|header| header.split_once(':'));
            given
                .map(|(given, _)| given)
                .chain(request.omitted_headers.iter().map(String::as_str))
                .any(|each| each == name)
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
        Ok([self.render_bytes(&(head + "<<0d 0a>>"))?, body].concat())
    }

    fn render_bytes(&self, text: &str) -> Result<Vec<u8>, String> {
        byte_template::render(text, &self.server.values)
    }

    /// The current connection; it is opened on first use.
    fn connection(&mut self) -> Result<&mut RawSocket, String> {
        match self.connections.entry(self.current.clone()) {
            Entry::Occupied(open) => Ok(open.into_mut()),
            Entry::Vacant(place) => Ok(place.insert(RawSocket::connect(self.server.client)?)),
        }
    }
}

fn preview(bytes: &[u8]) -> String {
    format!("{:.400}", String::from_utf8_lossy(bytes))
}

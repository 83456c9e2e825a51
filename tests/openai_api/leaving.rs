//! Client disconnects and server shutdown.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::fixture::{CHAT, Face, peer, question, with};
use crate::upstream::Peer;

const PATIENCE: Duration = Duration::from_secs(20);
const PROMPTLY: Duration = Duration::from_millis(100);

#[derive(Debug)]
enum Seen {
    Asked,
    /// The client closed the connection.
    Left(Instant),
}

/// A provider that sends one word every 20 ms, or no data, until the client disconnects.
fn endless(speaks: bool) -> (Peer, mpsc::Receiver<Seen>) {
    let (tell, told) = mpsc::channel();
    let peer = Peer::start(move |request, connection| {
        if request.head.starts_with("GET") {
            return;
        }
        let _ = tell.send(Seen::Asked);
        if speaks {
            let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
            let _ = connection.write_all(head.as_bytes());
        }
        let asked = Instant::now();
        while asked.elapsed() < PATIENCE {
            let word = json!({ "id": "1", "choices": [{ "index": 0, "delta": { "content": "on " } }] });
            let gone = speaks && connection.write_all(format!("data: {word}\n\n").as_bytes()).is_err();
            if gone || is_left(connection, Duration::from_millis(20)) {
                let _ = tell.send(Seen::Left(Instant::now()));
                return;
            }
        }
    });
    (peer, told)
}

fn is_left(connection: &mut TcpStream, within: Duration) -> bool {
    let _ = connection.set_read_timeout(Some(within));
    match connection.read(&mut [0]) {
        Ok(read) => read == 0,
        Err(error) => !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
    }
}

fn face(house: &Peer) -> Face {
    Face::start(&json!({ "providers": { "house": peer("openai-compatible", house) } }))
}

/// Time until the provider request is cancelled; the median of several runs, as the machine may be busy.
fn leaving(speaks: bool, mut hangs_up: impl FnMut(&Face, &mpsc::Receiver<Seen>) -> Instant) -> Duration {
    let (house, told) = endless(speaks);
    let face = face(&house);
    let visit = |_| {
        let left = hangs_up(&face, &told);
        match told.recv_timeout(PATIENCE) {
            Ok(Seen::Left(at)) => at.saturating_duration_since(left),
            seen => panic!("the provider is not left: {seen:?}"),
        }
    };
    let mut visits: Vec<Duration> = (0..7).map(visit).collect();
    visits.sort();
    visits[visits.len() / 2]
}

#[track_caller]
fn assert_asked(told: &mpsc::Receiver<Seen>) {
    let seen = told.recv_timeout(PATIENCE);
    assert!(matches!(seen, Ok(Seen::Asked)), "{seen:?}");
}

/// Sends a request, waits until the provider has it, and disconnects.
fn hang_up(face: &Face, told: &mpsc::Receiver<Seen>, question: &Value) -> Instant {
    let body = question.to_string();
    let mut connection = face.client.connect().unwrap();
    let head = face.client.head("POST", CHAT, &[], body.len());
    connection.write_all(format!("{head}{body}").as_bytes()).unwrap();
    assert_asked(told);
    drop(connection);
    Instant::now()
}

#[test]
fn a_caller_who_leaves_a_stream_closes_the_connection_to_the_provider_within_100_ms() {
    let took = leaving(true, |face, told| {
        let mut stream = face.open(&question("house/any", "hello")).unwrap();
        assert_asked(told);
        assert!(stream.read_chunk().unwrap().is_some());
        drop(stream);
        Instant::now()
    });
    assert!(took < PROMPTLY, "{took:?}");
}

#[test]
fn a_caller_who_leaves_before_the_first_piece_closes_the_connection_to_the_provider_within_100_ms() {
    for stream in [false, true] {
        let asked = with(question("house/any", "hello"), json!({ "stream": stream }));
        let took = leaving(false, |face, told| hang_up(face, told, &asked));
        assert!(took < PROMPTLY, "stream {stream}: {took:?}");
    }
}

#[test]
fn a_stream_that_takes_too_long_closes_the_connection_to_a_provider_that_never_stops() {
    let (house, told) = endless(true);
    let settings = json!({
        "providers": { "house": peer("openai-compatible", &house) }, "router": { "stream_timeout": "300ms" },
    });
    let face = Face::start(&settings);
    // The caller stays.
    let streamed = face.stream(&question("house/any", "hello"));
    assert_eq!(streamed.chunks.last().unwrap()["error"]["code"], "stream_timeout", "{streamed:?}");
    assert_asked(&told);
    assert!(matches!(told.recv_timeout(PATIENCE), Ok(Seen::Left(_))));
}

#[cfg(unix)]
#[test]
fn a_stream_under_way_when_the_server_is_told_to_end_comes_to_its_end() {
    use crate::fixture::{Streamed, error, three};
    use crate::process::wait_for;
    use crate::upstream::Upstream;

    let upstream = Upstream::start();
    let face = Face::start(&three(&upstream));
    let mut stream = face.open(&question("openai/drip-200", "hello to you and everybody else")).unwrap();
    assert_eq!(stream.head.status, 200);
    stream.read_chunk().unwrap().unwrap();
    face.server.signal("TERM");
    // New callers are rejected while the stream continues.
    let late = wait_for("the server to drain", || {
        match face.client.try_call("POST", CHAT, &[], &question("openai/echo-small", "late").to_string()) {
            Ok(reply) if reply.status == 200 => None,
            late => Some(late),
        }
    });
    if let Ok(late) = late {
        assert_eq!(error(&late, 503)["type"], "server_error");
    }
    stream.read_body().unwrap();
    let streamed = Streamed::of(stream.head);
    assert_eq!((streamed.text().as_str(), streamed.done), ("echo: hello to you and everybody else", true));
    let ended = face.server.end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

//! Client disconnects and server shutdown.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::fixture::{ApiServer, CHAT_PATH, chat_request, provider_settings, with_members};
use crate::upstream::ScriptedServer;

const EVENT_TIMEOUT: Duration = Duration::from_secs(20);
const MAX_DISCONNECT_LATENCY: Duration = Duration::from_millis(100);

#[derive(Debug)]
enum ProviderEvent {
    Requested,
    /// The client closed the connection.
    Disconnected(Instant),
}

/// A provider that sends one word every 20 ms, or no data, until the client disconnects.
fn endless_provider(speaks: bool) -> (ScriptedServer, mpsc::Receiver<ProviderEvent>) {
    let (tell, told) = mpsc::channel();
    let peer = ScriptedServer::start(move |request, connection| {
        if request.head.starts_with("GET") {
            return;
        }
        let _ = tell.send(ProviderEvent::Requested);
        if speaks {
            let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
            let _ = connection.write_all(head.as_bytes());
        }
        let asked = Instant::now();
        while asked.elapsed() < EVENT_TIMEOUT {
            let word = json!({ "id": "1", "choices": [{ "index": 0, "delta": { "content": "on " } }] });
            let gone = speaks && connection.write_all(format!("data: {word}\n\n").as_bytes()).is_err();
            if gone || is_disconnected(connection, Duration::from_millis(20)) {
                let _ = tell.send(ProviderEvent::Disconnected(Instant::now()));
                return;
            }
        }
    });
    (peer, told)
}

fn is_disconnected(connection: &mut TcpStream, within: Duration) -> bool {
    let _ = connection.set_read_timeout(Some(within));
    match connection.read(&mut [0]) {
        Ok(read) => read == 0,
        Err(error) => !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
    }
}

fn server_of_provider(house: &ScriptedServer) -> ApiServer {
    ApiServer::start(&json!({ "providers": { "house": provider_settings("openai-compatible", house) } }))
}

/// Time until the provider request is cancelled; the median of several runs, as the machine may be busy.
fn disconnect_latency(
    speaks: bool,
    mut hangs_up: impl FnMut(&ApiServer, &mpsc::Receiver<ProviderEvent>) -> Instant,
) -> Duration {
    let (house, told) = endless_provider(speaks);
    let face = server_of_provider(&house);
    let visit = |_| {
        let left = hangs_up(&face, &told);
        match told.recv_timeout(EVENT_TIMEOUT) {
            Ok(ProviderEvent::Disconnected(at)) => at.saturating_duration_since(left),
            seen => panic!("the provider is not left: {seen:?}"),
        }
    };
    let mut visits: Vec<Duration> = (0..7).map(visit).collect();
    visits.sort();
    visits[visits.len() / 2]
}

#[track_caller]
fn assert_requested(told: &mpsc::Receiver<ProviderEvent>) {
    let seen = told.recv_timeout(EVENT_TIMEOUT);
    assert!(matches!(seen, Ok(ProviderEvent::Requested)), "{seen:?}");
}

/// Sends a request, waits until the provider has it, and disconnects.
fn hang_up(face: &ApiServer, told: &mpsc::Receiver<ProviderEvent>, question: &Value) -> Instant {
    let body = question.to_string();
    let mut connection = face.client.connect().unwrap();
    let head = face.client.head("POST", CHAT_PATH, &[], body.len());
    connection.write_all(format!("{head}{body}").as_bytes()).unwrap();
    assert_requested(told);
    drop(connection);
    Instant::now()
}

#[test]
fn a_caller_who_leaves_a_stream_closes_the_connection_to_the_provider_within_100_ms() {
    let took = disconnect_latency(true, |face, told| {
        let mut stream = face.open(&chat_request("house/any", "hello")).unwrap();
        assert_requested(told);
        assert!(stream.read_chunk().unwrap().is_some());
        drop(stream);
        Instant::now()
    });
    assert!(took < MAX_DISCONNECT_LATENCY, "{took:?}");
}

#[test]
fn a_caller_who_leaves_before_the_first_piece_closes_the_connection_to_the_provider_within_100_ms() {
    for stream in [false, true] {
        let asked = with_members(chat_request("house/any", "hello"), json!({ "stream": stream }));
        let took = disconnect_latency(false, |face, told| hang_up(face, told, &asked));
        assert!(took < MAX_DISCONNECT_LATENCY, "stream {stream}: {took:?}");
    }
}

#[test]
fn a_stream_that_takes_too_long_closes_the_connection_to_a_provider_that_never_stops() {
    let (house, told) = endless_provider(true);
    let settings = json!({
        "providers": { "house": provider_settings("openai-compatible", &house) }, "router": { "stream_timeout": "300ms" },
    });
    let face = ApiServer::start(&settings);
    // The caller stays.
    let streamed = face.stream(&chat_request("house/any", "hello"));
    assert_eq!(streamed.chunks.last().unwrap()["error"]["code"], "stream_timeout", "{streamed:?}");
    assert_requested(&told);
    assert!(matches!(told.recv_timeout(EVENT_TIMEOUT), Ok(ProviderEvent::Disconnected(_))));
}

#[cfg(unix)]
#[test]
fn a_stream_under_way_when_the_server_is_told_to_end_comes_to_its_end() {
    use crate::fixture::{StreamedResponse, expect_error, settings_for_each_format};
    use crate::process::wait_for;
    use crate::upstream::FakeUpstream;

    let upstream = FakeUpstream::start();
    let face = ApiServer::start(&settings_for_each_format(&upstream));
    let mut stream = face.open(&chat_request("openai/drip-200", "hello to you and everybody else")).unwrap();
    assert_eq!(stream.head.status, 200);
    stream.read_chunk().unwrap().unwrap();
    face.server.signal("TERM");
    // New callers are rejected while the stream continues.
    let late = wait_for("the server to drain", || {
        match face.client.try_call("POST", CHAT_PATH, &[], &chat_request("openai/echo-small", "late").to_string()) {
            Ok(reply) if reply.status == 200 => None,
            late => Some(late),
        }
    });
    if let Ok(late) = late {
        assert_eq!(expect_error(&late, 503)["type"], "server_error");
    }
    stream.read_body().unwrap();
    let streamed = StreamedResponse::parse(stream.head);
    assert_eq!((streamed.text().as_str(), streamed.has_done_event), ("echo: hello to you and everybody else", true));
    let ended = face.server.wait();
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

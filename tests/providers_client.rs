#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
//! The HTTP client for providers, against well-behaved and misbehaving peers.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use corbie::config::providers as config;
use corbie::destinations::Destinations;
use corbie::providers::call::{Call, Hope};
use corbie::providers::client::Client;
use corbie::providers::provider::Provider;
use corbie::providers::{Chat, Error, NetworkFault, Request};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;

const PATIENCE: Duration = Duration::from_secs(20);

/// A peer that reads a request and then runs a function; returns its port.
async fn peer<Then: Future<Output = ()> + Send>(then: impl Fn(TcpStream) -> Then + Send + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut head = vec![0; 4096];
            let _ = stream.read(&mut head).await;
            then(stream).await;
        }
    });
    port
}

/// A peer that responds with these bytes and closes.
async fn answering(answer: &'static str) -> u16 {
    peer(move |mut stream| async move {
        let _ = stream.write_all(answer.as_bytes()).await;
        let _ = stream.shutdown().await;
    })
    .await
}

fn get(url: &str) -> Request {
    http::Request::get(url).body(Bytes::new()).unwrap()
}

async fn failure(url: &str, most: Duration) -> Error {
    Client::new().send(get(url), Instant::now() + most).await.unwrap_err()
}

#[tokio::test]
async fn an_answer_comes_whole_with_its_status_and_headers() {
    let port = answering("HTTP/1.1 429 Too Many\r\nRetry-After: 2\r\nContent-Length: 5\r\n\r\nhello").await;
    let answer =
        Client::new().send(get(&format!("http://127.0.0.1:{port}/")), Instant::now() + PATIENCE).await.unwrap();
    assert_eq!(
        (answer.status.as_u16(), &answer.headers["retry-after"], &*answer.body),
        (429, &"2".parse().unwrap(), &b"hello"[..])
    );
}

#[tokio::test]
async fn p16_what_goes_wrong_on_the_way_is_told_apart() {
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    assert_eq!(failure(&format!("http://127.0.0.1:{closed}/"), PATIENCE).await, Error::Network(NetworkFault::Refused));
    assert_eq!(failure("http://no-such-host.invalid/", PATIENCE).await, Error::Network(NetworkFault::Name));
    let plain = answering("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
    assert_eq!(failure(&format!("https://127.0.0.1:{plain}/"), PATIENCE).await, Error::Network(NetworkFault::Tls));
    let reset = peer(|stream| async move { drop(stream) }).await;
    assert_eq!(failure(&format!("http://127.0.0.1:{reset}/"), PATIENCE).await, Error::Network(NetworkFault::Closed));
    let lying = answering("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort").await;
    assert_eq!(failure(&format!("http://127.0.0.1:{lying}/"), PATIENCE).await, Error::Network(NetworkFault::Closed));
}

/// Host names that the resolver turns into addresses without DNS, as it would for a name controlled by an attacker.
#[tokio::test]
async fn p21_what_is_connected_to_is_judged_and_not_what_the_url_says() {
    let port = answering("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
    // Linux maps the first of these to the local machine, so the listener would respond.
    let plain = ["0", "0x0", "169.254.43518", "0xa9fea9fe"].map(|host| ("http", host));
    let both = ["0.0.0.0", "[::]", "[::ffff:0.0.0.0]", "[fe80::1]"].map(|host| [("http", host), ("https", host)]);
    for (scheme, host) in plain.into_iter().chain(both.into_iter().flatten()) {
        let error = failure(&format!("{scheme}://{host}:{port}/"), PATIENCE).await;
        assert_eq!(error, Error::Network(NetworkFault::Forbidden), "{scheme} {host}");
        assert!(error.to_string().contains("`network.allowed_addresses`"), "{error}");
        assert!(!error.retryable());
    }
    let network = serde_json::from_value(serde_json::json!({ "allowed_addresses": ["0.0.0.0"] })).unwrap();
    let client = Client::within(Destinations::new(&network));
    for host in ["0", "0.0.0.0", "localhost"] {
        let answer = client.send(get(&format!("http://{host}:{port}/")), Instant::now() + PATIENCE).await;
        assert_eq!(answer.unwrap().status.as_u16(), 200, "{host}");
    }
}

#[tokio::test]
async fn p18_silence_and_answers_without_end_meet_the_deadline() {
    let silent = peer(|stream| async move {
        tokio::time::sleep(PATIENCE).await;
        drop(stream);
    })
    .await;
    assert_eq!(failure(&format!("http://127.0.0.1:{silent}/"), Duration::from_millis(300)).await, Error::Timeout);
    let endless = peer(|mut stream| async move {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await;
        while stream.write_all(b"more ").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    assert_eq!(failure(&format!("http://127.0.0.1:{endless}/"), Duration::from_millis(300)).await, Error::Timeout);
}

#[tokio::test]
async fn a_stream_comes_piece_by_piece_and_its_silence_has_a_bound() {
    let port = peer(|mut stream| async move {
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        let _ = stream.write_all(format!("{head}3\r\none\r\n").as_bytes()).await;
        tokio::time::sleep(PATIENCE).await;
    })
    .await;
    let request = get(&format!("http://127.0.0.1:{port}/"));
    let mut opened = Client::new().open(request, Instant::now() + PATIENCE).await.unwrap();
    assert_eq!(opened.next(Instant::now() + PATIENCE).await, Ok(Some(Bytes::from_static(b"one"))));
    assert_eq!(opened.next(Instant::now() + Duration::from_millis(200)).await, Err(Error::Timeout));
}

#[tokio::test]
async fn connections_are_used_again() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let accepted = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        for _ in 0..3 {
            let mut head = vec![0; 4096];
            let _ = stream.read(&mut head).await.unwrap();
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await.unwrap();
        }
    });
    let client = Client::new();
    for _ in 0..3 {
        let answer = client.send(get(&format!("http://127.0.0.1:{port}/")), Instant::now() + PATIENCE).await.unwrap();
        assert_eq!(&*answer.body, b"ok");
    }
    accepted.await.unwrap();
}

/// The caller receives keep-alives meanwhile, so the wait for the next event restarts repeatedly.
#[tokio::test]
async fn silence_counts_from_the_last_word_however_often_somebody_looks() {
    let port = peer(|mut stream| async move {
        let event = "data: {\"id\":\"1\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\n";
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
        let _ = stream.write_all(format!("{head}{event}").as_bytes()).await;
        tokio::time::sleep(PATIENCE).await;
    })
    .await;
    let settings = serde_json::json!({
        "type": "openai-compatible", "base_url": format!("http://127.0.0.1:{port}/v1"), "timeout": "500ms",
    });
    let settings: config::Provider = serde_json::from_value(settings).unwrap();
    let provider = Arc::new(Provider::new("house", &settings, &Client::new()).unwrap());
    let asked = Chat { model: "any".into(), stream: true, ..Chat::default() };
    let deadline = Instant::now() + PATIENCE;
    let call = Call { provider: &provider, key: 0, question: &asked.into(), deadline, hope: Hope::default() };
    let opened = call.open().await;
    let mut stream = opened.result.unwrap();
    stream.next_piece().await.unwrap().unwrap();
    let next = loop {
        match tokio::time::timeout(Duration::from_millis(100), stream.next_piece()).await {
            Ok(next) => break next,
            Err(_) => assert!(Instant::now() < deadline, "it is waited for without end"),
        }
    };
    assert_eq!(next.unwrap().unwrap_err(), Error::Timeout);
}

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
//! The HTTP client for providers, against well-behaved and misbehaving peers.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use corbie::config::egress_policy::EgressPolicy;
use corbie::config::providers as config;
use corbie::providers::call::{FailoverOptions, ProviderCall};
use corbie::providers::http_client::HttpClient;
use corbie::providers::provider::Provider;
use corbie::providers::{Chat, Error, HttpRequest, NetworkError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;

const TEST_TIMEOUT: Duration = Duration::from_secs(20);

/// A peer that reads a request and then runs a function; returns its port.
async fn raw_server<Then: Future<Output = ()> + Send>(then: impl Fn(TcpStream) -> Then + Send + 'static) -> u16 {
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
async fn server_answering(answer: &'static str) -> u16 {
    raw_server(move |mut stream| async move {
        let _ = stream.write_all(answer.as_bytes()).await;
        let _ = stream.shutdown().await;
    })
    .await
}

fn get(url: &str) -> HttpRequest {
    http::Request::get(url).body(Bytes::new()).unwrap()
}

async fn send_error(url: &str, most: Duration) -> Error {
    HttpClient::default().send(get(url), Instant::now() + most).await.unwrap_err()
}

#[tokio::test]
async fn an_answer_comes_whole_with_its_status_and_headers() {
    let port = server_answering("HTTP/1.1 429 Too Many\r\nRetry-After: 2\r\nContent-Length: 5\r\n\r\nhello").await;
    let answer = HttpClient::default()
        .send(get(&format!("http://127.0.0.1:{port}/")), Instant::now() + TEST_TIMEOUT)
        .await
        .unwrap();
    assert_eq!(
        (answer.status.as_u16(), &answer.headers["retry-after"], &*answer.body),
        (429, &"2".parse().unwrap(), &b"hello"[..])
    );
}

#[tokio::test]
async fn p16_what_goes_wrong_on_the_way_is_told_apart() {
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    assert_eq!(
        send_error(&format!("http://127.0.0.1:{closed}/"), TEST_TIMEOUT).await,
        Error::Network(NetworkError::Refused)
    );
    assert_eq!(
        send_error("http://no-such-host.invalid/", TEST_TIMEOUT).await,
        Error::Network(NetworkError::DnsFailure)
    );
    let plain = server_answering("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
    assert_eq!(
        send_error(&format!("https://127.0.0.1:{plain}/"), TEST_TIMEOUT).await,
        Error::Network(NetworkError::Tls)
    );
    let reset = raw_server(|stream| async move { drop(stream) }).await;
    assert_eq!(
        send_error(&format!("http://127.0.0.1:{reset}/"), TEST_TIMEOUT).await,
        Error::Network(NetworkError::Closed)
    );
    let lying = server_answering("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort").await;
    assert_eq!(
        send_error(&format!("http://127.0.0.1:{lying}/"), TEST_TIMEOUT).await,
        Error::Network(NetworkError::Closed)
    );
}

/// Host names that the resolver turns into addresses without DNS, as it would for a name controlled by an attacker.
#[tokio::test]
async fn p21_what_is_connected_to_is_judged_and_not_what_the_url_says() {
    let port = server_answering("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
    // Linux maps the first of these to the local machine, so the listener would respond.
    let plain = ["0", "0x0", "169.254.43518", "0xa9fea9fe"].map(|host| ("http", host));
    let both = ["0.0.0.0", "[::]", "[::ffff:0.0.0.0]", "[fe80::1]"].map(|host| [("http", host), ("https", host)]);
    for (scheme, host) in plain.into_iter().chain(both.into_iter().flatten()) {
        let error = send_error(&format!("{scheme}://{host}:{port}/"), TEST_TIMEOUT).await;
        assert_eq!(error, Error::Network(NetworkError::EgressDenied), "{scheme} {host}");
        assert!(error.to_string().contains("`network.allowed_addresses`"), "{error}");
        assert!(!error.is_retryable());
    }
    let network = serde_json::from_value(serde_json::json!({ "allowed_addresses": ["0.0.0.0"] })).unwrap();
    let client = HttpClient::with_egress_policy(EgressPolicy::new(&network));
    for host in ["0", "0.0.0.0", "localhost"] {
        let answer = client.send(get(&format!("http://{host}:{port}/")), Instant::now() + TEST_TIMEOUT).await;
        assert_eq!(answer.unwrap().status.as_u16(), 200, "{host}");
    }
}

#[tokio::test]
async fn p18_silence_and_answers_without_end_meet_the_deadline() {
    let silent = raw_server(|stream| async move {
        tokio::time::sleep(TEST_TIMEOUT).await;
        drop(stream);
    })
    .await;
    assert_eq!(send_error(&format!("http://127.0.0.1:{silent}/"), Duration::from_millis(300)).await, Error::Timeout);
    let endless = raw_server(|mut stream| async move {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await;
        while stream.write_all(b"more ").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    assert_eq!(send_error(&format!("http://127.0.0.1:{endless}/"), Duration::from_millis(300)).await, Error::Timeout);
}

#[tokio::test]
async fn a_stream_comes_piece_by_piece_and_its_silence_has_a_bound() {
    let port = raw_server(|mut stream| async move {
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        let _ = stream.write_all(format!("{head}3\r\none\r\n").as_bytes()).await;
        tokio::time::sleep(TEST_TIMEOUT).await;
    })
    .await;
    let request = get(&format!("http://127.0.0.1:{port}/"));
    let mut opened = HttpClient::default().open(request, Instant::now() + TEST_TIMEOUT).await.unwrap();
    assert_eq!(opened.next(Instant::now() + TEST_TIMEOUT).await, Ok(Some(Bytes::from_static(b"one"))));
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
    let client = HttpClient::default();
    for _ in 0..3 {
        let answer =
            client.send(get(&format!("http://127.0.0.1:{port}/")), Instant::now() + TEST_TIMEOUT).await.unwrap();
        assert_eq!(&*answer.body, b"ok");
    }
    accepted.await.unwrap();
}

/// The caller receives keep-alives meanwhile, so the wait for the next event restarts repeatedly.
#[tokio::test]
async fn silence_counts_from_the_last_word_however_often_somebody_looks() {
    let port = raw_server(|mut stream| async move {
        let event = "data: {\"id\":\"1\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\n";
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
        let _ = stream.write_all(format!("{head}{event}").as_bytes()).await;
        tokio::time::sleep(TEST_TIMEOUT).await;
    })
    .await;
    let settings = serde_json::json!({
        "type": "openai-compatible", "base_url": format!("http://127.0.0.1:{port}/v1"), "timeout": "500ms",
    });
    let settings: config::Provider = serde_json::from_value(settings).unwrap();
    let provider = Arc::new(Provider::new("house", &settings, &HttpClient::default()).unwrap());
    let asked = Chat { model: "any".into(), stream: true, ..Chat::default() };
    let deadline = Instant::now() + TEST_TIMEOUT;
    let call = ProviderCall {
        provider: &provider,
        key: 0,
        request: &asked.into(),
        deadline,
        failover: FailoverOptions::default(),
    };
    let opened = call.open_stream().await;
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

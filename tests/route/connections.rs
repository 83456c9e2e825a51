//! P-21: connections to providers: address, headers, proxy and trusted certificates.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use corbie_mcp::Era;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::{Value, json};

use crate::fixture::{app, complete};
use crate::upstream::{FORMATS, RecordedRequest, ScriptedServer, write_json};

fn answer() -> Value {
    json!({ "model": "m", "choices": [{ "message": { "role": "assistant", "content": "hi" }, "finish_reason": "stop" }] })
}

fn header(request: &RecordedRequest, name: &str) -> Option<String> {
    request.head.lines().find_map(|line| {
        let (found, value) = line.split_once(':')?;
        found.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
    })
}

fn basic_auth(pair: &str) -> Option<String> {
    Some(format!("Basic {}", STANDARD.encode(pair)))
}

#[tokio::test(flavor = "multi_thread")]
async fn p21_f36_s02_the_address_and_the_headers_are_the_operators() {
    let peer = ScriptedServer::answering(|_| answer());
    let app = app(json!({ "providers": { "gateway": {
        "base_url": format!("http://someone:p%40ss@127.0.0.1:{}/team/openai/v1/", peer.port),
        "headers": { "X-Team": "blue", "OpenAI-Project": "my project" },
    } } }));
    complete(&app, json!({ "prompt": "Hello", "model": "gateway/m" })).await.unwrap();
    let [sent] = &peer.requests()[..] else { panic!("one request") };
    assert!(sent.head.starts_with("POST /team/openai/v1/chat/completions HTTP/1.1"), "{}", sent.head);
    assert_eq!(header(sent, "x-team").as_deref(), Some("blue"));
    assert_eq!(header(sent, "openai-project").as_deref(), Some("my project"));
    assert_eq!(header(sent, "authorization"), basic_auth("someone:p@ss"));
}

#[tokio::test(flavor = "multi_thread")]
async fn p21_every_wire_format_takes_an_address_and_headers() {
    for format in FORMATS {
        let peer = ScriptedServer::answering(|_| json!({}));
        let app = app(json!({ "providers": { "gateway": {
            "type": format,
            "base_url": format!("http://127.0.0.1:{}/behind", peer.port),
            "api_key": "k",
            "headers": { "X-Team": "blue" },
        } } }));
        complete(&app, json!({ "prompt": "Hello", "model": "gateway/m" })).await.unwrap_err();
        let [sent] = &peer.requests()[..] else { panic!("one request") };
        assert!(sent.head.starts_with("POST /behind/"), "{format}: {}", sent.head);
        assert_eq!(header(sent, "x-team").as_deref(), Some("blue"), "{format}");
    }
}

/// A proxy that accepts a tunnel with the right credentials and responds itself in place of the target.
fn connect_proxy(wants: Option<String>) -> ScriptedServer {
    ScriptedServer::start(move |request, connection| {
        if !request.head.starts_with("CONNECT") {
            return write_json(connection, &answer());
        }
        let may = wants.is_none() || header(request, "proxy-authorization") == wants;
        let reply = if may { "200 Connected" } else { "407 Proxy Authentication Required\r\nContent-Length: 0" };
        let _ = connection.write_all(format!("HTTP/1.1 {reply}\r\n\r\n").as_bytes());
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn p21_a_proxy_is_asked_for_a_tunnel_and_is_shown_its_credentials_and_no_others() {
    let proxy = connect_proxy(basic_auth("me:secret"));
    let app = app(json!({ "providers": { "far": {
        // Only the proxy can resolve it.
        "base_url": "http://far.invalid/v1",
        "api_key": "key-of-far",
        "proxy": format!("http://me:secret@127.0.0.1:{}", proxy.port),
    } } }));
    let answered = complete(&app, json!({ "prompt": "Hello", "model": "far/m" })).await.unwrap();
    assert_eq!(answered["message"]["content"], "hi");
    let [tunnel, through] = &proxy.requests()[..] else { panic!("a tunnel and a request") };
    assert!(tunnel.head.starts_with("CONNECT far.invalid:80 HTTP/1.1"), "{}", tunnel.head);
    assert!(!tunnel.head.contains("key-of-far"), "{}", tunnel.head);
    assert!(through.head.starts_with("POST /v1/chat/completions"), "{}", through.head);
    assert_eq!(header(through, "proxy-authorization"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn p21_a_proxy_that_refuses_is_a_network_error() {
    let proxy = connect_proxy(basic_auth("me:other"));
    let app = app(json!({
        "providers": { "far": {
            "base_url": "http://far.invalid/v1",
            "proxy": format!("http://me:secret@127.0.0.1:{}", proxy.port),
        } },
        "router": { "timeout": "900ms" },
    }));
    let error = complete(&app, json!({ "prompt": "Hello", "model": "far/m" })).await.unwrap_err();
    assert_eq!(error.to_object(Era::Legacy).code, -32006, "{error}");
    assert!(!error.to_string().contains("secret"), "{error}");
    assert!(proxy.requests().iter().all(|request| request.head.starts_with("CONNECT")));
}

/// A TLS server with a self-signed certificate; reports the outcome of each handshake.
fn self_signed_server() -> (u16, mpsc::Receiver<Result<usize, String>>) {
    let certificate = CertificateDer::from(include_bytes!("self_signed.der").to_vec());
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(include_bytes!("self_signed_key.der").to_vec()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let (config, listener) = (Arc::new(config), TcpListener::bind("127.0.0.1:0").unwrap());
    let port = listener.local_addr().unwrap().port();
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        for mut connection in listener.incoming().map_while(Result::ok) {
            let mut session = rustls::ServerConnection::new(config.clone()).unwrap();
            let read = rustls::Stream::new(&mut session, &mut connection).read(&mut [0; 1024]);
            let _ = tell.send(read.map_err(|error| error.to_string()));
        }
    });
    (port, told)
}

#[tokio::test(flavor = "multi_thread")]
async fn s08_p21_certificates_are_verified_and_nothing_is_sent_to_a_stranger() {
    let (port, told) = self_signed_server();
    for host in ["localhost", "127.0.0.1"] {
        let app = app(json!({
            "providers": { "stranger": { "base_url": format!("https://{host}:{port}/v1"), "api_key": "k" } },
            "router": { "timeout": "900ms" },
        }));
        let error = complete(&app, json!({ "prompt": "Hello", "model": "stranger/m" })).await.unwrap_err();
        assert_eq!(error.to_object(Era::Legacy).code, -32006, "{error}");
        assert!(error.to_string().contains("certificate"), "{error}");
        let read = told.recv_timeout(Duration::from_secs(20)).unwrap();
        assert!(read.is_err(), "{host}: {read:?}");
    }
}

/// A proxy that forwards every tunnel to one local port.
fn proxy_to_port(port: u16) -> ScriptedServer {
    ScriptedServer::start(move |_, connection| {
        let (Ok(mut far), Ok(mut back)) = (TcpStream::connect(("127.0.0.1", port)), connection.try_clone()) else {
            return;
        };
        let _ = connection.write_all(b"HTTP/1.1 200 Connected\r\n\r\n");
        let Ok(mut reading) = far.try_clone() else { return };
        std::thread::spawn(move || std::io::copy(&mut reading, &mut back));
        let _ = std::io::copy(connection, &mut far);
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn s08_p21_a_proxy_cannot_pass_itself_off_as_the_provider() {
    let (port, told) = self_signed_server();
    let proxy = proxy_to_port(port);
    let app = app(json!({
        "providers": { "far": {
            "base_url": "https://localhost/v1",
            "api_key": "k",
            "proxy": format!("http://127.0.0.1:{}", proxy.port),
        } },
        "router": { "timeout": "900ms" },
    }));
    let error = complete(&app, json!({ "prompt": "Hello", "model": "far/m" })).await.unwrap_err();
    assert_eq!(error.to_object(Era::Legacy).code, -32006, "{error}");
    assert!(error.to_string().contains("certificate"), "{error}");
    assert!(proxy.requests()[0].head.starts_with("CONNECT localhost:443"), "{:?}", proxy.requests());
    assert!(told.recv_timeout(Duration::from_secs(20)).unwrap().is_err());
}

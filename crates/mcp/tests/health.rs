//! Health endpoints and their paths.

mod fixture;

use corbie_mcp::Health;
use corbie_mcp::transport::http::{Http, Options};
use fixture::peer::{self, http};
use serde_json::{Map, Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};

fn members(of: Value) -> Map<String, Value> {
    of.as_object().cloned().expect("an object")
}

/// `/health` of a program with this check.
async fn health(check: impl Fn() -> Health + Send + Sync + 'static) -> Value {
    let server = fixture::builder(Default::default()).health(check).build().expect("valid");
    let port = fixture::listen(&server, Options::default()).await;
    let reply = http(port, "GET", "/health", &[], "").await;
    assert_eq!((reply.status, reply.headers["content-type"].as_str()), (200, "application/json"));
    reply.json()
}

#[tokio::test]
async fn t40_health_is_ok_and_tells_what_the_program_adds() {
    let added = json!({ "categories": ["math", "general"], "model": "rules", "index_size": 95 });
    let expected = added.clone();
    let body = health(move || Health { members: members(added.clone()), ..Health::default() }).await;
    assert_eq!(body["status"], "ok");
    for member in ["categories", "model", "index_size"] {
        assert_eq!(body[member], expected[member], "{member}");
    }
}

#[tokio::test]
async fn t40_health_tells_the_servers_own_numbers() {
    let server = fixture::server();
    let port = fixture::listen(&server, Options::default()).await;
    let body = http(port, "GET", "/health", &[], "").await.json();
    assert_eq!((&body["status"], &body["version"]), (&json!("ok"), &json!("1.2.3")));
    assert_eq!(body["tools_count"], server.registry().len());
    assert_eq!(body["protocol_version"], "2026-07-28");
    assert!(body["uptime_seconds"].is_u64());
}

#[tokio::test]
async fn t41_an_impaired_part_is_named_and_the_status_stays_200() {
    let impaired = || vec![("knowledge".to_owned(), "the storage folder cannot be read".to_owned())];
    let body = health(move || Health { impaired: impaired(), members: members(json!({ "model": "rules" })) }).await;
    assert_eq!((&body["status"], &body["model"]), (&json!("degraded"), &json!("rules")));
    assert_eq!(body["impaired"], json!({ "knowledge": "the storage folder cannot be read" }));
}

#[tokio::test]
async fn t41_the_state_is_measured_at_every_call() {
    let well = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let check = {
        let well = well.clone();
        move || match well.load(std::sync::atomic::Ordering::SeqCst) {
            true => Health::default(),
            false => Health { impaired: vec![("model".into(), "still loading".into())], ..Health::default() },
        }
    };
    let server = fixture::builder(Default::default()).health(check).build().expect("valid");
    let port = fixture::listen(&server, Options::default()).await;
    assert_eq!(http(port, "GET", "/health", &[], "").await.json()["status"], "degraded");
    well.store(true, std::sync::atomic::Ordering::SeqCst);
    assert_eq!(http(port, "GET", "/health", &[], "").await.json()["status"], "ok");
}

/// A panicking check counts as degraded; the endpoint reports it instead of closing the connection.
#[tokio::test]
async fn t41_a_check_that_panics_is_degraded_too() {
    let server = fixture::builder(Default::default()).health(|| panic!("secret detail of the panic")).build();
    let port = fixture::listen(&server.expect("valid"), Options::default()).await;
    let reply = http(port, "GET", "/health", &[], "").await;
    assert_eq!((reply.status, reply.body.contains("secret")), (200, false), "{reply:?}");
    assert_eq!(reply.json()["status"], "degraded");
}

/// A load balancer may query one component. Without a component, the server stays ready.
#[tokio::test]
async fn t41_ready_knows_the_part_that_is_asked_for() {
    let health = || Health { impaired: vec![("archive".into(), "its disk is full".into())], ..Health::default() };
    let server = fixture::builder(Default::default()).health(health).build().expect("valid");
    let port = fixture::listen(&server, Options::default()).await;
    let ready = async |path: &str| {
        let reply = http(port, "GET", path, &[], "").await;
        (reply.status, reply.json()["status"].clone())
    };
    assert_eq!(ready("/ready").await, (200, json!("degraded")));
    assert_eq!(ready("/ready?for=archive").await, (503, json!("degraded")));
    assert_eq!(ready("/ready?for=search").await, (200, json!("degraded")));
}

#[tokio::test]
async fn t41_ready_turns_503_while_the_last_requests_finish_and_live_stays() {
    let gate = fixture::Gate::new();
    let server = fixture::builder(Default::default()).tool(gate.tool()).build().expect("valid");
    let port = fixture::listen(&server, Options::default()).await;
    assert_eq!(http(port, "GET", "/ready", &[], "").await.status, 200);
    let held = tokio::spawn(async move { peer::post(port, &peer::call(1, "gate", json!({}))).await });
    gate.entered().await;
    server.drain();
    assert_eq!(http(port, "GET", "/ready", &[], "").await.status, 503);
    assert_eq!(http(port, "GET", "/live", &[], "").await.status, 200);
    gate.open();
    assert_eq!(held.await.expect("no panic").status, 200);
}

#[tokio::test]
async fn t43_localhost_is_served_over_ipv4_and_ipv6() {
    let http = Http::new(fixture::server(), Options::default());
    for address in ["127.0.0.1:0", "[::1]:0"] {
        let listener = TcpListener::bind(address).await.expect("this machine has both loopbacks");
        let address = listener.local_addr().expect("bound");
        let http = http.clone();
        tokio::spawn(async move { http.serve(listener).await });
        for host in [address.to_string(), format!("localhost:{}", address.port()), "localhost".to_owned()] {
            let mut stream = TcpStream::connect(address).await.expect("listening");
            let get = format!("GET /health HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
            stream.write_all(get.as_bytes()).await.expect("writable");
            assert_eq!(peer::until_closed(&mut stream).await.status, 200, "{host} on {address}");
        }
    }
}

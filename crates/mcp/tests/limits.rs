//! Limits per caller: rate, concurrency, and memory for request bodies.

mod fixture;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use corbie_mcp::transport::http::Options;
use corbie_mcp::transport::{Auth, RateLimit, Token, TokenHolder, TokenVerdict, TokenVerifier, TrustedProxies};
use corbie_mcp::{Limits, Server, TrustLevel, TrustState};
use fixture::Gate;
use fixture::peer::{self, HttpReply, JSON, call, http, request};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::task::JoinHandle;

const ANNA: (&str, &str) = ("authorization", "Bearer anna");
const BEN: (&str, &str) = ("authorization", "Bearer ben");

/// Longer than any test.
const MAX_WAIT: Duration = Duration::from_secs(300);

fn two_callers() -> Options {
    Options { auth: Auth::tokens([Token::new("a", "anna", None), Token::new("b", "ben", None)]), ..Options::default() }
}

/// A server with a concurrency of one, and a tool that waits for release.
fn one_at_a_time(limits: Limits) -> (Server, Gate) {
    let gate = Gate::new();
    let server = fixture::builder(Default::default()).tool(gate.tool()).limits(limits).build().expect("valid");
    (server, gate)
}

fn one() -> Limits {
    Limits {
        max_concurrent: 1,
        max_concurrent_per_caller: 1,
        max_queued: 100,
        max_queue_wait: MAX_WAIT,
        write_timeout: MAX_WAIT,
        ..fixture::quick_limits()
    }
}

async fn post_as(port: u16, who: (&str, &str), body: &Value) -> HttpReply {
    http(port, "POST", "/mcp", &[JSON, who], &body.to_string()).await
}

fn spawn_call(port: u16, who: (&'static str, &'static str), tool: &'static str) -> JoinHandle<HttpReply> {
    tokio::spawn(async move { post_as(port, who, &call(1, tool, json!({}))).await })
}

/// The value of a metric.
async fn metric_value(port: u16, name: &str) -> u64 {
    let reply = http(port, "GET", "/metrics", &[ANNA], "").await;
    let line = reply.body.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ').map(str::to_owned));
    line.map_or(0, |value| value.parse().expect("a number"))
}

async fn wait_for_metric(port: u16, name: &str, value: u64) {
    peer::eventually(async || metric_value(port, name).await == value).await;
}

const RUNNING: &str = "corbie_admission_running";
const WAITING: &str = "corbie_admission_waiting";

fn shed(reason: &str) -> String {
    format!("corbie_admission_shed_total{{reason=\"{reason}\"}}")
}

/// The retry hint of a rejection: the same number in its data and in its message.
fn hint(error: &Value) -> u64 {
    assert_eq!((&error["code"], &error["data"]["error_type"]), (&json!(-32002), &json!("RateLimited")), "{error}");
    let told = error["data"]["details"]["retry_after_ms"].as_u64().unwrap_or_else(|| panic!("no hint in {error}"));
    let words = error["message"].as_str().expect("words");
    assert!(words.ends_with(&format!("; retry after {told} ms")), "{words}");
    assert!(told > 0, "{error}");
    told
}

fn assert_header(reply: &HttpReply, told: u64) {
    assert_eq!(reply.headers["retry-after"], told.div_ceil(1000).max(1).to_string(), "{reply:?}");
}

// === rate limits ===

#[tokio::test]
async fn s09_x20_a_refusal_says_when_to_come_again_on_every_way_in() {
    let slow = Some(RateLimit { per_second: 1, burst: 1 });
    let ping = request(1, "ping", json!({}));
    let listen = async || fixture::listen(&fixture::server(), Options { rate_limit: slow, ..Options::default() }).await;

    let port = listen().await;
    assert_eq!(peer::post(port, &ping).await.status, 200);
    for path in ["/mcp", "/mcp/ping"] {
        let refused = http(port, "POST", path, &[JSON], &ping.to_string()).await;
        assert_eq!(refused.status, 429);
        assert_header(&refused, hint(&refused.json()["error"]));
    }
    // The first member of a batch is charged with the body; each further member is charged too.
    let port = listen().await;
    let batch = peer::post(port, &json!([ping, ping])).await.json();
    assert!(hint(&batch[1]["error"]) <= 1000, "{batch}");

    let port = fixture::listen(
        &fixture::server(),
        Options { rate_limit: Some(RateLimit { per_second: 1, burst: 2 }), ..Options::default() },
    )
    .await;
    let mut socket = peer::websocket(port).await;
    let mut answers = Vec::new();
    for _ in 0..3 {
        peer::ws_send(&mut socket, &ping).await;
        answers.push(peer::ws_receive(&mut socket).await);
    }
    let refused = answers.iter().find(|answer| answer.get("error").is_some()).expect("three were too many");
    assert!(hint(&refused["error"]) <= 1000);
}

#[tokio::test]
async fn s09_the_limit_of_all_callers_leaves_something_for_each() {
    let global_rate_limit = Some(RateLimit { per_second: 1, burst: 20 });
    let port = fixture::listen(&fixture::server(), Options { global_rate_limit, ..two_callers() }).await;
    let ping = request(1, "ping", json!({}));
    let mut refused = Vec::new();
    for _ in 0..60 {
        let reply = post_as(port, ANNA, &ping).await;
        if reply.status == 429 {
            refused.push(reply);
        }
    }
    let error = &refused.first().expect("sixty are too many").json()["error"];
    assert!(error["message"].as_str().expect("words").contains("rate limit of the server"), "{error}");
    assert_header(&refused[0], hint(error));
    assert_eq!(post_as(port, BEN, &ping).await.status, 200, "a flood of one is no wall for the other");
}

/// Sends wrong tokens until the address is over its limit, and a few more; returns the replies.
async fn flood_with_wrong_tokens(port: u16) -> Vec<HttpReply> {
    let ping = request(1, "ping", json!({}));
    let mut replies = Vec::new();
    for guess in 0..400 {
        replies.push(post_as(port, ("authorization", &format!("Bearer {guess:04}")), &ping).await);
        if replies.iter().filter(|reply| reply.status == 429).count() > 20 {
            break;
        }
    }
    replies
}

#[tokio::test]
async fn s09_a_flood_of_wrong_tokens_does_not_lock_out_a_valid_one() {
    let ping = request(1, "ping", json!({}));
    for (rate_limit, allowed) in [(Some(RateLimit { per_second: 1, burst: 5 }), 5), (None, 100)] {
        let port = fixture::listen(&fixture::server(), Options { rate_limit, ..two_callers() }).await;
        let replies = flood_with_wrong_tokens(port).await;
        assert!(replies[..allowed].iter().all(|reply| reply.status == 401), "a few mistakes are forgiven");
        let refused = replies.last().expect("a reply");
        assert_eq!(refused.status, 429, "{rate_limit:?}");
        assert_header(refused, hint(&refused.json()["error"]));
        // Neither caller has called before the flood.
        for caller in [ANNA, BEN] {
            assert_eq!(post_as(port, caller, &ping).await.status, 200, "{rate_limit:?} {caller:?}");
        }
    }
}

#[tokio::test]
async fn s09_wrong_tokens_use_up_nothing_of_a_callers_own_rate() {
    let port = fixture::listen(&fixture::server(), two_callers()).await;
    let ping = request(1, "ping", json!({}));
    assert_eq!(flood_with_wrong_tokens(port).await.last().expect("a reply").status, 429);
    for _ in 0..200 {
        assert_eq!(post_as(port, ANNA, &ping).await.status, 200);
    }
    let missing = http(port, "POST", "/mcp", &[JSON], &ping.to_string()).await.status;
    assert_eq!(missing, 401, "no token is no wrong token");
}

/// Tokens that are verified at some cost: `valid…` and `forged…` are not cached, and each check is counted.
#[derive(Default)]
struct CountingVerifier {
    checked: AtomicUsize,
}

impl TokenVerifier for CountingVerifier {
    fn verify_now(&self, token: &str) -> TokenVerdict {
        let holder = |name: &str| TokenHolder {
            identity: name.into(),
            trust: TrustState::new(Some(TrustLevel::Verified)),
            permissions: None,
            rate_limit: None,
            is_operator: false,
        };
        match token {
            "cached" => TokenVerdict::Valid(holder("cached")),
            _ => TokenVerdict::Pending,
        }
    }

    fn verify<'a>(&'a self, token: &'a str) -> BoxFuture<'a, TokenVerdict> {
        self.checked.fetch_add(1, Ordering::SeqCst);
        Box::pin(std::future::ready(match token.starts_with("valid") {
            true => self.verify_now("cached"),
            false => TokenVerdict::Invalid("invalid token signature"),
        }))
    }
}

/// Sends forged tokens from several connections at once until it is aborted.
fn spawn_forgers(port: u16, forgers: usize) -> tokio::task::JoinSet<()> {
    let forge = |forger: usize| async move {
        for number in 0.. {
            let token = format!("Bearer forged-{forger}-{number}");
            let reply = http(port, "GET", "/metrics", &[("authorization", &token)], "").await;
            let refused = reply.status == 429 && reply.headers.contains_key("retry-after");
            assert!(refused || reply.status == 401, "{}", reply.status);
        }
    };
    (0..forgers).map(forge).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s09_a_flood_of_forged_tokens_has_few_signatures_checked_and_cached_ones_pass() {
    let authority = Arc::new(CountingVerifier::default());
    let options = Options { auth: Auth::Required(authority.clone()), ..Options::default() };
    let port = fixture::listen(&fixture::server(), options).await;
    let began = Instant::now();
    let mut flood = spawn_forgers(port, 100);
    tokio::time::sleep(Duration::from_secs(3)).await;
    for _ in 0..50 {
        let known = http(port, "GET", "/metrics", &[("authorization", "Bearer cached")], "").await;
        assert_eq!(known.status, 200);
    }
    let checked = authority.checked.load(Ordering::SeqCst);
    let allowed = 200 + 100 * (began.elapsed().as_secs() as usize + 1);
    assert!((200..=allowed).contains(&checked), "{checked} of {allowed}");
    assert!(flood.try_join_next().is_none(), "no forger met another reply");
}

/// A caller behind the same address as the flood, such as a company's, comes with a new token.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s09_a_valid_token_that_is_not_cached_passes_during_a_flood_of_forged_ones() {
    let authority = Arc::new(CountingVerifier::default());
    let options = Options { auth: Auth::Required(authority.clone()), ..Options::default() };
    let port = fixture::listen(&fixture::server(), options).await;
    let _flood = spawn_forgers(port, 100);
    while authority.checked.load(Ordering::SeqCst) < 250 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    for number in 0..5 {
        let (token, began) = (format!("Bearer valid-{number}"), Instant::now());
        let reply = http(port, "GET", "/metrics", &[("authorization", &token)], "").await;
        assert_eq!(reply.status, 200, "{number}");
        // About 100 forged tokens are before it in the queue.
        assert!(began.elapsed() < Duration::from_secs(5), "{number}: {:?}", began.elapsed());
    }
}

#[tokio::test]
async fn s09_any_number_of_valid_tokens_that_are_not_cached_pass() {
    let options = Options { auth: Auth::Required(Arc::new(CountingVerifier::default())), ..Options::default() };
    let port = fixture::listen(&fixture::server(), options).await;
    for number in 0..500 {
        let token = format!("Bearer valid-{number}");
        assert_eq!(http(port, "GET", "/metrics", &[("authorization", &token)], "").await.status, 200, "{number}");
    }
    let health = http(port, "GET", "/health", &[("authorization", "Bearer valid")], "").await.json();
    assert_eq!(health["version"], "1.2.3", "its signature is checked there too");
}

#[tokio::test]
async fn s09_behind_a_trusted_proxy_wrong_tokens_count_for_the_client() {
    let trusted_proxies = TrustedProxies::new(|address| address.is_loopback());
    let rate_limit = Some(RateLimit { per_second: 1, burst: 5 });
    let options = Options { trusted_proxies, forwarded_rate_limit: rate_limit, ..two_callers() };
    let port = fixture::listen(&fixture::server(), options).await;
    let ping = request(1, "ping", json!({})).to_string();
    let post = async |from: &str, token: &str| {
        let headers = [JSON, ("x-forwarded-for", from), ("authorization", token)];
        http(port, "POST", "/mcp", &headers, &ping).await.status
    };
    let mut statuses = Vec::new();
    for guess in 0..20 {
        // The client forges the left of the list; the proxy adds the right.
        statuses.push(post(&format!("192.0.2.{guess}, 203.0.113.7"), "Bearer wrong").await);
    }
    assert!(statuses.iter().filter(|status| **status == 429).count() > 10, "{statuses:?}");
    assert_eq!(post("203.0.113.7", BEN.1).await, 200, "a valid token passes");
    assert_eq!(post("203.0.113.8", "Bearer wrong").await, 401, "others behind the same proxy are not limited");
}

#[tokio::test]
async fn m80_whoever_may_not_send_is_refused_before_anything_is_read() {
    let rate_limit = Some(RateLimit { per_second: 1, burst: 1 });
    let port = fixture::listen(&fixture::server(), Options { rate_limit, ..two_callers() }).await;
    assert_eq!(http(port, "POST", "/mcp", &[JSON, ANNA], "{").await.status, 400);
    for (body, kind) in [("{", JSON), ("{}", ("content-type", "text/plain"))] {
        assert_eq!(http(port, "POST", "/mcp", &[kind, ANNA], body).await.status, 429, "{body}");
    }
    let stranger = ("authorization", "Bearer nobody");
    assert_eq!(http(port, "POST", "/mcp", &[JSON, stranger], "{").await.status, 401);
}

// === concurrency ===

#[tokio::test]
async fn s09_a_flood_of_one_caller_holds_up_no_other() {
    let (server, gate) = one_at_a_time(one());
    let port = fixture::listen(&server, two_callers()).await;
    let flood: Vec<_> = (0..30).map(|_| spawn_call(port, ANNA, "gate")).collect();
    gate.entered().await;
    wait_for_metric(port, WAITING, 29).await;
    let trickle = spawn_call(port, BEN, "gate");
    wait_for_metric(port, WAITING, 30).await;
    // One request of the flood is running; one more may run before the other caller's turn.
    gate.open();
    gate.open();
    let served = tokio::time::timeout(peer::TEST_TIMEOUT, trickle).await.expect("its turn has come").expect("no panic");
    assert_eq!(served.status, 200);
    assert!(flood.iter().filter(|call| call.is_finished()).count() <= 2);
    (0..29).for_each(|_| gate.open());
    for call in flood {
        assert_eq!(call.await.expect("no panic").status, 200, "all are served in the end");
    }
    wait_for_metric(port, RUNNING, 0).await;
}

#[tokio::test]
async fn s09_one_caller_cannot_take_every_place() {
    let (server, gate) = one_at_a_time(Limits { max_concurrent: 3, max_concurrent_per_caller: 2, ..one() });
    let port = fixture::listen(&server, two_callers()).await;
    let flood: Vec<_> = (0..5).map(|_| spawn_call(port, ANNA, "gate")).collect();
    wait_for_metric(port, WAITING, 3).await;
    assert_eq!(metric_value(port, RUNNING).await, 2);
    assert_eq!(post_as(port, BEN, &call(1, "echo", json!({ "text": "hi" }))).await.status, 200);
    (0..5).for_each(|_| gate.open());
    for call in flood {
        assert_eq!(call.await.expect("no panic").status, 200);
    }
}

#[tokio::test]
async fn s09_when_the_queue_is_full_more_is_refused_with_a_hint() {
    let (server, gate) = one_at_a_time(Limits { max_queued: 1, ..one() });
    let port = fixture::listen(&server, two_callers()).await;
    let held = spawn_call(port, ANNA, "gate");
    gate.entered().await;
    let waiting = spawn_call(port, ANNA, "gate");
    wait_for_metric(port, WAITING, 1).await;
    for (path, body) in [("/mcp", call(1, "gate", json!({}))), ("/mcp/tools/call", json!({ "name": "gate" }))] {
        let refused = http(port, "POST", path, &[JSON, BEN], &body.to_string()).await;
        assert_eq!(refused.status, 429, "{path}");
        assert_header(&refused, hint(&refused.json()["error"]));
    }
    assert_eq!(metric_value(port, &shed("queue_full")).await, 2);
    gate.open();
    gate.open();
    for call in [held, waiting] {
        assert_eq!(call.await.expect("no panic").status, 200, "what was taken on is answered");
    }
}

#[tokio::test]
async fn s09_what_would_wait_too_long_is_refused_at_once() {
    let (server, gate) = one_at_a_time(Limits { max_queue_wait: Duration::from_millis(50), ..one() });
    let port = fixture::listen(&server, two_callers()).await;
    // A call of one second sets the average duration.
    assert_eq!(post_as(port, ANNA, &call(1, "wait", json!({ "ms": 1000 }))).await.status, 200);
    let held = spawn_call(port, ANNA, "gate");
    gate.entered().await;
    let refused = post_as(port, BEN, &call(1, "gate", json!({}))).await;
    assert_eq!(refused.status, 429);
    assert!(hint(&refused.json()["error"]) >= 1000, "{refused:?}");
    assert_eq!(
        (metric_value(port, &shed("expected_wait")).await, metric_value(port, &shed("wait_timeout")).await),
        (1, 0)
    );
    gate.open();
    assert_eq!(held.await.expect("no panic").status, 200);
}

#[tokio::test]
async fn s09_whoever_waited_in_vain_is_told_and_leaves_no_trace() {
    let (server, gate) = one_at_a_time(Limits { max_queue_wait: Duration::from_millis(50), ..one() });
    let port = fixture::listen(&server, two_callers()).await;
    let held = spawn_call(port, ANNA, "gate");
    gate.entered().await;
    let refused = post_as(port, BEN, &call(1, "gate", json!({}))).await;
    assert_eq!(refused.status, 429);
    hint(&refused.json()["error"]);
    assert_eq!((metric_value(port, &shed("wait_timeout")).await, metric_value(port, WAITING).await), (1, 0));
    gate.open();
    assert_eq!(held.await.expect("no panic").status, 200);
}

#[tokio::test]
async fn s09_a_full_server_answers_pings_shows_its_tools_and_can_be_told_to_stop() {
    let (server, gate) = one_at_a_time(one());
    let port = fixture::listen(&server, Options::default()).await;
    let mut socket = peer::websocket(port).await;
    peer::ws_send(&mut socket, &call(1, "gate", json!({}))).await;
    gate.entered().await;
    peer::ws_send(&mut socket, &call(2, "gate", json!({}))).await;
    wait_for_metric(port, WAITING, 1).await;
    for method in ["ping", "tools/list", "resources/list", "prompts/list"] {
        peer::ws_send(&mut socket, &request(3, method, json!({}))).await;
        assert_eq!(peer::ws_receive(&mut socket).await["id"], 3, "{method}");
    }
    assert_eq!(http(port, "GET", "/health", &[], "").await.status, 200);
    let inside = server.request(TrustLevel::Trusted, "tools/call", &json!({ "name": "old" })).await;
    assert!(inside.is_ok(), "what the program asks itself needs no place");
    let cancel =
        |id: i64| json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } });
    peer::ws_send(&mut socket, &cancel(2)).await;
    wait_for_metric(port, WAITING, 0).await;
    peer::ws_send(&mut socket, &cancel(1)).await;
    gate.abandoned().await;
    wait_for_metric(port, RUNNING, 0).await;
}

#[tokio::test]
async fn s09_a_place_is_free_again_however_its_request_ends() {
    let (server, gate) = one_at_a_time(one());
    let port = fixture::listen(&server, Options::default()).await;
    for tool in ["panic", "stuck", "fail", "nan", "no_such_tool"] {
        peer::post(port, &call(1, tool, json!({}))).await;
        wait_for_metric(port, RUNNING, 0).await;
    }
    // A modern client that closes its stream cancels the call, whether it is running or queued.
    let modern = peer::modern(1, "tools/call", json!({ "name": "gate", "arguments": {} }), json!({}));
    let headers = peer::modern_headers(&modern);
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let held = peer::send_http(port, "POST", &headers, &modern.to_string()).await;
    gate.entered().await;
    let waiting = peer::send_http(port, "POST", &headers, &modern.to_string()).await;
    wait_for_metric(port, WAITING, 1).await;
    drop(waiting);
    wait_for_metric(port, WAITING, 0).await;
    drop(held);
    gate.abandoned().await;
    wait_for_metric(port, RUNNING, 0).await;
    // A legacy client that disconnects does not cancel: its call keeps the permit until it is done.
    let held = peer::send_http(port, "POST", &[JSON], &call(1, "gate", json!({})).to_string()).await;
    gate.entered().await;
    drop(held);
    peer::assert_served(port).await;
    assert_eq!(metric_value(port, RUNNING).await, 1);
    gate.open();
    wait_for_metric(port, RUNNING, 0).await;
}

// === memory ===

fn little_memory() -> Limits {
    Limits { max_message_bytes: 4000, max_body_memory: 5000, request_read_timeout: MAX_WAIT, ..fixture::quick_limits() }
}

/// A call of at least this size.
fn large(id: i64, tool: &str, bytes: usize) -> Value {
    let mut call = call(id, tool, json!({}));
    call["params"]["_meta"] = json!({ "padding": "x".repeat(bytes) });
    call
}

#[tokio::test]
async fn s10_bodies_that_are_worked_on_share_their_memory() {
    let (server, gate) = one_at_a_time(little_memory());
    let port = fixture::listen(&server, Options::default()).await;
    let held = tokio::spawn(async move { peer::post(port, &large(1, "gate", 3000)).await });
    gate.entered().await;
    for path in ["/mcp", "/mcp/tools/call"] {
        let refused = http(port, "POST", path, &[JSON], &large(1, "old", 3000).to_string()).await;
        assert_eq!(refused.status, 503, "{path}");
        let error = &refused.json()["error"];
        assert_header(&refused, hint(error));
        assert!(error["message"].as_str().expect("words").contains("server.limits.max_body_memory"), "{error}");
    }
    assert_eq!(metric_value(port, &shed("body_memory")).await, 2);
    assert_eq!(peer::post(port, &large(1, "old", 500)).await.status, 200, "what fits is served");
    gate.open();
    assert_eq!(held.await.expect("no panic").status, 200);
    assert_eq!(peer::post(port, &large(1, "old", 3000)).await.status, 200, "its memory is free again");
}

#[tokio::test]
async fn s10_a_stream_keeps_the_memory_of_its_body_until_it_ends() {
    let (server, gate) = one_at_a_time(little_memory());
    let port = fixture::listen(&server, Options::default()).await;
    let mut body = peer::modern(1, "tools/call", json!({ "name": "gate", "arguments": {} }), json!({}));
    body["params"]["_meta"]["padding"] = "x".repeat(3000).into();
    let headers = peer::modern_headers(&body);
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let held = peer::send_http(port, "POST", &headers, &body.to_string()).await;
    gate.entered().await;
    assert_eq!(peer::post(port, &large(1, "old", 3000)).await.status, 503);
    drop(held);
    gate.abandoned().await;
    peer::eventually(async || peer::post(port, &large(1, "old", 3000)).await.status == 200).await;
}

#[tokio::test]
async fn s10_messages_of_sockets_share_it_too() {
    let (server, gate) = one_at_a_time(little_memory());
    let port = fixture::listen(&server, Options::default()).await;
    let mut socket = peer::websocket(port).await;
    peer::ws_send(&mut socket, &large(1, "gate", 3000)).await;
    gate.entered().await;
    peer::ws_send(&mut socket, &large(2, "old", 3000)).await;
    let refused = peer::ws_receive(&mut socket).await;
    assert_eq!(refused["id"], 2);
    hint(&refused["error"]);
    gate.open();
    assert_eq!(peer::ws_receive(&mut socket).await["id"], 1);
    peer::ws_send(&mut socket, &large(3, "old", 3000)).await;
    assert!(peer::ws_receive(&mut socket).await["result"].is_object());
}

#[tokio::test]
async fn s10_those_who_announce_much_and_send_nothing_take_nothing() {
    let (server, _) = one_at_a_time(little_memory());
    let port = fixture::listen(&server, Options::default()).await;
    let mut idle = Vec::new();
    for _ in 0..50 {
        let mut stream = peer::connect(port).await;
        let head = format!(
            "POST /mcp HTTP/1.1\r\nhost: localhost:{port}\r\ncontent-type: application/json\r\ncontent-length: 4000\r\n\r\n{{"
        );
        stream.write_all(head.as_bytes()).await.expect("writable");
        idle.push(stream);
    }
    assert_eq!(peer::post(port, &large(1, "old", 3000)).await.status, 200);
}

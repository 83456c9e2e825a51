//! `corbie tokens`, and token handling of a server.

use std::fs;

use serde_json::{Value, json};

use crate::fixture::{OperatorHome, call, start_with_client};
use crate::process::{request, wait_for};
use crate::websocket::{WebSocket, WebSocketFrame};

#[test]
fn s05_a_token_is_shown_once_and_kept_as_a_digest() {
    let operator = OperatorHome::new();
    let secret = operator.token("laptop --trust verified --expires-in 90d");
    assert!(secret.starts_with("corbie_"), "{secret}");
    let kept = fs::read_to_string(operator.folder().join("corbie/tokens.json")).unwrap();
    assert!(!kept.contains(&secret) && kept.contains("laptop"), "{kept}");
    for ended in [operator.run("tokens list"), operator.run("tokens list --json")] {
        assert!(ended.stdout.contains("laptop") && ended.stdout.contains("verified"), "{}", ended.stdout);
        assert!(!ended.stdout.contains(&secret) && !ended.stdout.contains("sha256"), "{}", ended.stdout);
    }
    let listed: Value = serde_json::from_str(&operator.run("tokens list --json").stdout).unwrap();
    assert_eq!(listed["tokens"][0]["expired"], false);
}

#[test]
fn mistakes_are_told_with_what_to_do() {
    let operator = OperatorHome::new();
    operator.token("laptop");
    for (arguments, told) in [
        ("tokens create laptop", "revoke it first"),
        ("tokens create la/ptop", "1 to 64 letters"),
        ("tokens create other --tool clasify_text", "did you mean `classify_text`"),
        ("tokens create other --tool knowledge_add", "`knowledge-add`"),
        ("tokens create other --tool nonsense-*", "corbie tools list"),
        ("tokens create other --expires-in 0s", "duration"),
        ("tokens create other --burst 4", "--rate-limit"),
        ("tokens revoke nobody", "corbie tokens list"),
    ] {
        let ended = operator.run(arguments);
        assert!(ended.code != Some(0) && ended.stderr.contains(told), "{arguments}: {}", ended.stderr);
        assert_eq!(ended.stdout, "", "{arguments}");
    }
    let ended = operator.run("tokens revoke laptop");
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(operator.run("tokens list").stdout.contains("corbie tokens create"), "says how to make one");
}

#[test]
fn s05_s06_a_token_of_the_file_lets_in_and_is_enough_for_other_addresses() {
    let operator = OperatorHome::new();
    let outside = || operator.corbie("serve").variable("CORBIE_SERVER__LISTEN", "0.0.0.0:0");
    let refused = outside().run("");
    assert!(refused.stderr.contains("corbie tokens create"), "{}", refused.stderr);
    let secret = operator.token("laptop");
    let mut server = outside().start();
    server.wait_for_log("listening");
    let (_server, client) = start_with_client(operator.server());
    let reply = call(client, &secret, "inspect_server", &json!({}));
    assert_eq!((reply.status, &reply.json()["structuredContent"]["caller"]), (200, &json!("token:laptop")));
    for wrong in ["", "corbie_", &secret[..secret.len() - 1], &format!("{secret}x"), &secret.to_uppercase()] {
        let reply = call(client, wrong, "inspect_server", &json!({}));
        assert_eq!((reply.status, &reply.json()["error"]["code"]), (401, &json!(-32001)), "{wrong:?}");
        assert!(reply.header("www-authenticate").is_some_and(|challenge| challenge.starts_with("Bearer")));
        assert!(wrong.len() < 9 || !reply.body.contains(wrong), "{}", reply.body);
    }
}

#[test]
fn m96_a_token_that_is_made_or_revoked_counts_at_once_also_on_open_sockets() {
    let operator = OperatorHome::new();
    operator.token("first");
    let (_server, client) = start_with_client(operator.server());
    let secret = operator.token("laptop");
    let status = |secret: &str| call(client, secret, "inspect_server", &json!({})).status;
    wait_for("the new token to be known", || (status(&secret) == 200).then_some(()));

    let bearer = format!("Bearer {secret}");
    let mut socket = WebSocket::connect_with(client, &[("Authorization", &bearer)]);
    socket.send(&request(1, "tools/list", json!({})));
    assert!(socket.message()["result"]["tools"].is_array());
    assert_eq!(operator.run("tokens revoke laptop").code, Some(0));
    wait_for("the token to be forgotten", || (status(&secret) == 401).then_some(()));
    socket.send(&request(2, "tools/list", json!({})));
    assert_eq!(socket.message()["error"]["code"], -32001);
    assert_eq!(socket.receive().unwrap(), WebSocketFrame::Close(Some(1008)));
}

#[test]
fn s05_a_token_that_is_over_is_refused() {
    let operator = OperatorHome::new();
    let secret = operator.token("short --expires-in 2s");
    operator.token("other");
    let (_server, client) = start_with_client(operator.server());
    wait_for("its end", || (call(client, &secret, "inspect_server", &json!({})).status == 401).then_some(()));
    assert!(operator.run("tokens list").stdout.contains("(expired)"));
}

#[test]
fn s09_a_token_has_a_rate_of_its_own() {
    let operator = OperatorHome::new();
    let (slow, fast) = (operator.token("slow --rate-limit 1 --burst 3"), operator.token("fast"));
    let (_server, client) = start_with_client(operator.server());
    let statuses: Vec<u16> = (0..6).map(|_| call(client, &slow, "inspect_server", &json!({})).status).collect();
    assert_eq!(statuses[..3], [200; 3]);
    assert!(statuses.contains(&429), "{statuses:?}");
    assert_eq!(call(client, &fast, "inspect_server", &json!({})).status, 200, "another is not held up");
}

#[test]
fn a_file_that_cannot_be_read_keeps_the_server_from_starting() {
    let operator = OperatorHome::new();
    fs::create_dir_all(operator.folder().join("corbie")).unwrap();
    fs::write(operator.folder().join("corbie/tokens.json"), "{").unwrap();
    let ended = operator.server().run("");
    assert!(ended.code == Some(1) && ended.stderr.contains("tokens.json"), "{}", ended.stderr);
}

#[test]
fn m96_streams_of_news_end_with_their_token() {
    let operator = OperatorHome::new();
    let secret = operator.token("laptop");
    let (_server, client) =
        start_with_client(operator.server().variable("CORBIE_SERVER__LIMITS__KEEP_ALIVE_INTERVAL", "100ms"));
    let bearer = format!("Bearer {secret}");
    let mut events = vec![("Authorization", bearer.as_str()), ("Accept", "text/event-stream")];
    let mut news = client.open("GET", "/mcp", &events, "").unwrap();
    assert_eq!(news.head.status, 200);
    events.extend([("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "subscriptions/listen")]);
    let listen = json!({ "notifications": { "toolsListChanged": true }, "_meta": crate::process::modern_meta() });
    let mut listening =
        client.open("POST", "/mcp", &events, &request(1, "subscriptions/listen", listen).to_string()).unwrap();
    assert!(listening.read_event().unwrap().is_some(), "acknowledged");
    assert_eq!(operator.run("tokens revoke laptop").code, Some(0));
    while news.read_chunk().unwrap().is_some() {}
    while listening.read_chunk().unwrap().is_some() {}
}

#[test]
fn m96_a_token_is_revoked_also_while_the_settings_have_mistakes() {
    let operator = OperatorHome::new();
    let secret = operator.token("laptop");
    let file = operator.folder().join("corbie.yaml");
    fs::write(&file, "server: {auth: bearer}\n").unwrap();
    let setup = operator.corbie("serve --port 0").argument("--config").argument(file.display().to_string());
    let (mut server, client) = start_with_client(setup);
    assert_eq!(call(client, &secret, "inspect_server", &json!({})).status, 200);
    fs::write(&file, "server: {auth: perhaps}\n").unwrap();
    server.wait_for_log("rejected the new settings");
    let revoke = operator.corbie("tokens revoke laptop --config").argument(file.display().to_string()).run("");
    assert!(revoke.code == Some(0) && revoke.stderr.contains("server.auth"), "it is told, and done: {}", revoke.stderr);
    wait_for("the token to go", || (call(client, &secret, "inspect_server", &json!({})).status == 401).then_some(()));
}

#[test]
fn s07_every_reply_tells_browsers_to_keep_guess_and_frame_nothing() {
    let operator = OperatorHome::new();
    let secret = operator.token("laptop");
    let (_server, client) = start_with_client(operator.server());
    let bearer = format!("Bearer {secret}");
    let known: &[(&str, &str)] = &[("Authorization", &bearer)];
    for (method, path, headers, status) in [
        ("GET", "/live", &[][..], 200),
        ("GET", "/metrics", known, 200),
        ("POST", "/mcp/ping", known, 200),
        ("POST", "/mcp", &[], 401),
        ("GET", "/v1/nothing", known, 404),
        ("GET", "/live", &[("Origin", "https://evil.example")], 403),
    ] {
        let reply = client.call(method, path, headers, "{}");
        assert_eq!(reply.status, status, "{method} {path}: {}", reply.body);
        for (name, value) in [
            ("x-content-type-options", "nosniff"),
            ("cache-control", "no-store"),
            ("content-security-policy", "default-src 'none'; frame-ancestors 'none'"),
            ("referrer-policy", "no-referrer"),
        ] {
            assert_eq!(reply.header(name), Some(value), "{method} {path}");
        }
    }
}

#[test]
fn s09_s10_what_is_no_message_counts_and_a_batch_counts_once_for_each() {
    let operator = OperatorHome::new();
    let secret = operator.token("slow --rate-limit 1 --burst 3");
    // The token is polled for until the server has read it, which is more often than an address may try otherwise.
    let (_server, client) =
        start_with_client(operator.server().variable("CORBIE_SERVER__RATE_LIMIT__PER_SECOND", 100_000));
    let bearer = format!("Bearer {secret}");
    let batch = json!([request(1, "ping", json!({})), request(2, "ping", json!({})), request(3, "ping", json!({}))]);
    let answers = client.call("POST", "/mcp", &[("Authorization", &bearer)], &batch.to_string()).json();
    assert!(answers.as_array().unwrap().iter().all(|answer| answer["result"].is_object()), "{answers}");

    let other = operator.token("other --rate-limit 1 --burst 3");
    let bearer = format!("Bearer {other}");
    wait_for("the new token", || (call(client, &other, "inspect_server", &json!({})).status == 200).then_some(()));
    let mut socket = WebSocket::connect_with(client, &[("Authorization", &bearer)]);
    let codes: Vec<Value> = (0..20)
        .map(|_| {
            socket.send(&json!("no message"));
            socket.message()["error"]["code"].clone()
        })
        .collect();
    assert!(codes.contains(&json!(-32002)), "{codes:?}");
}

#[test]
fn s09_health_is_no_place_to_guess_tokens() {
    let operator = OperatorHome::new();
    let secret = operator.token("laptop");
    let limit = json!({ "per_second": 1, "burst": 5 }).to_string();
    let (_server, client) = start_with_client(operator.server().variable("CORBIE_SERVER__RATE_LIMIT", limit));
    let health = |token: &str| client.call("GET", "/health", &[("Authorization", &format!("Bearer {token}"))], "");
    for _ in 0..20 {
        assert_eq!(health("guess").json()["tools_count"], Value::Null);
    }
    let valid = health(&secret);
    assert_eq!(valid.status, 200);
    assert!(valid.json()["tools_count"].is_u64(), "a valid token passes however many wrong ones were sent");
    assert_eq!(client.get("/health").status, 200, "a request without a token is answered as before");
}

//! Authentication.

use serde_json::json;

use crate::fixture::{ApiServer, CHAT_PATH, chat_request, expect_error, server_command, settings_for_each_format};
use crate::upstream::FakeUpstream;

const TOKEN: &str = "7d3194f79e645c42e4396dda38be04766810ec6a";

#[test]
fn with_a_token_every_path_is_401_in_openais_shape_without_it() {
    let upstream = FakeUpstream::start();
    let mut settings = settings_for_each_format(&upstream);
    settings["server"] = json!({ "token": TOKEN, "auth": "bearer" });
    let face = ApiServer::start(&settings);
    let chat = chat_request("openai/echo-small", "hello").to_string();
    let embed = json!({ "model": "auto", "input": "hello" }).to_string();
    let paths = [
        ("POST", CHAT_PATH, chat.as_str(), 200),
        ("POST", "/v1/embeddings", embed.as_str(), 200),
        ("GET", "/v1/models", "", 200),
        ("GET", "/v1/models/auto", "", 200),
        ("GET", "/v1/nowhere", "", 404),
    ];
    for (method, path, body, status) in paths {
        let call = |headers: &[(&str, &str)]| face.client.call(method, path, headers, body);
        let wrong = [
            None,
            Some("Bearer wrong"),
            Some("Bearer "),
            Some("Basic bWFyay0wODE1LXRva2Vu"),
            Some(TOKEN),
            Some("Bearer 7d3194f79e645c42e4396dda38be04766810ec6"),
        ];
        for given in wrong {
            let headers: Vec<(&str, &str)> = given.map(|given| ("Authorization", given)).into_iter().collect();
            let reply = call(&headers);
            assert_eq!(expect_error(&reply, 401)["type"], "authentication_error", "{method} {path} {given:?}");
            assert!(!reply.body.contains(TOKEN), "{reply:?}");
        }
        let reply = call(&[("Authorization", &format!("Bearer {TOKEN}"))]);
        assert_eq!(reply.status, status, "{method} {path}: {reply:?}");
    }
    let asked = upstream.requests_for("echo-small");
    assert_eq!(asked.len(), 1, "nobody is asked for strangers");
    assert!(!asked[0].to_string().contains(TOKEN), "the token stays here: {}", asked[0]);
}

#[test]
fn a_caller_who_is_not_trusted_cannot_spend_money() {
    let upstream = FakeUpstream::start();
    let face = ApiServer::from_command(server_command(
        "serve --port 0 --trust untrusted",
        &settings_for_each_format(&upstream),
    ));
    for (path, body) in [
        (CHAT_PATH, chat_request("openai/echo-small", "hello")),
        ("/v1/embeddings", json!({ "model": "auto", "input": "hello" })),
    ] {
        let reply = face.client.post(path, &body);
        assert_eq!(expect_error(&reply, 403)["type"], "permission_error", "{path}");
    }
    assert!(upstream.requests_for("echo-small").is_empty(), "nobody is asked");

    let verified = ApiServer::from_command(server_command(
        "serve --port 0 --trust verified",
        &settings_for_each_format(&upstream),
    ));
    assert_eq!(verified.chat(&chat_request("openai/echo-small", "hello")).status, 200);
}

#[test]
fn a_web_page_of_a_stranger_is_refused_in_openais_shape() {
    let upstream = FakeUpstream::start();
    let face = ApiServer::with_upstream(&upstream);
    let body = chat_request("openai/echo-small", "hello").to_string();
    let reply = face.client.call("POST", CHAT_PATH, &[("Origin", "https://evil.example")], &body);
    assert_eq!(expect_error(&reply, 403)["type"], "permission_error");
    assert!(upstream.requests_for("echo-small").is_empty(), "nobody is asked");
}

#[test]
fn callers_who_ask_too_often_are_told_so_in_openais_shape() {
    let upstream = FakeUpstream::start();
    let mut settings = settings_for_each_format(&upstream);
    settings["server"] = json!({ "rate_limit": { "per_second": 1, "burst": 2 } });
    let face = ApiServer::start(&settings);
    let asked = chat_request("openai/echo-small", "hello");
    let refused = (0..10).map(|_| face.chat(&asked)).find(|reply| reply.status != 200).unwrap();
    assert_eq!(expect_error(&refused, 429)["type"], "rate_limit_error");
    assert!(refused.header("retry-after").is_some(), "{refused:?}");
    assert_eq!(refused.header("x-should-retry"), None, "this one is the SDK's to try again");
}

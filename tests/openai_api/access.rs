//! Authentication.

use serde_json::json;

use crate::fixture::{CHAT, Face, error, question, setup, three};
use crate::upstream::Upstream;

const TOKEN: &str = "7d3194f79e645c42e4396dda38be04766810ec6a";

#[test]
fn with_a_token_every_path_is_401_in_openais_shape_without_it() {
    let upstream = Upstream::start();
    let mut settings = three(&upstream);
    settings["server"] = json!({ "token": TOKEN, "auth": "bearer" });
    let face = Face::start(&settings);
    let chat = question("openai/echo-small", "hello").to_string();
    let embed = json!({ "model": "auto", "input": "hello" }).to_string();
    let paths = [
        ("POST", CHAT, chat.as_str(), 200),
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
            assert_eq!(error(&reply, 401)["type"], "authentication_error", "{method} {path} {given:?}");
            assert!(!reply.body.contains(TOKEN), "{reply:?}");
        }
        let reply = call(&[("Authorization", &format!("Bearer {TOKEN}"))]);
        assert_eq!(reply.status, status, "{method} {path}: {reply:?}");
    }
    let asked = upstream.asked("echo-small");
    assert_eq!(asked.len(), 1, "nobody is asked for strangers");
    assert!(!asked[0].to_string().contains(TOKEN), "the token stays here: {}", asked[0]);
}

#[test]
fn a_caller_who_is_not_trusted_cannot_spend_money() {
    let upstream = Upstream::start();
    let face = Face::of(setup("serve --port 0 --trust untrusted", &three(&upstream)));
    for (path, body) in [
        (CHAT, question("openai/echo-small", "hello")),
        ("/v1/embeddings", json!({ "model": "auto", "input": "hello" })),
    ] {
        let reply = face.client.post(path, &body);
        assert_eq!(error(&reply, 403)["type"], "permission_error", "{path}");
    }
    assert!(upstream.asked("echo-small").is_empty(), "nobody is asked");

    let verified = Face::of(setup("serve --port 0 --trust verified", &three(&upstream)));
    assert_eq!(verified.chat(&question("openai/echo-small", "hello")).status, 200);
}

#[test]
fn a_web_page_of_a_stranger_is_refused_in_openais_shape() {
    let upstream = Upstream::start();
    let face = Face::of_upstream(&upstream);
    let body = question("openai/echo-small", "hello").to_string();
    let reply = face.client.call("POST", CHAT, &[("Origin", "https://evil.example")], &body);
    assert_eq!(error(&reply, 403)["type"], "permission_error");
    assert!(upstream.asked("echo-small").is_empty(), "nobody is asked");
}

#[test]
fn callers_who_ask_too_often_are_told_so_in_openais_shape() {
    let upstream = Upstream::start();
    let mut settings = three(&upstream);
    settings["server"] = json!({ "rate_limit": { "per_second": 1, "burst": 2 } });
    let face = Face::start(&settings);
    let asked = question("openai/echo-small", "hello");
    let refused = (0..10).map(|_| face.chat(&asked)).find(|reply| reply.status != 200).unwrap();
    assert_eq!(error(&refused, 429)["type"], "rate_limit_error");
    assert!(refused.header("retry-after").is_some(), "{refused:?}");
    assert_eq!(refused.header("x-should-retry"), None, "this one is the SDK's to try again");
}

//! JWKS retrieval, key rotation and unavailable keys.

use std::thread;

use serde_json::json;

use crate::fixture::{OAuthServer, claims, claims_with};
use crate::issuer::{Issuer, KEYS_PATH};
use crate::process::{call, wait_for};
use crate::signer::Signer;
use crate::websocket::{WebSocket, WebSocketFrame};

const UNKNOWN_KEY_MESSAGE: &str = "token is signed with an unknown key";

#[test]
fn s05_a_new_key_counts_at_once_and_an_old_one_no_more() {
    let (old, new) = (Signer::new("old", "ES256"), Signer::new("new", "EdDSA"));
    let issuer = Issuer::start(&[&old]);
    let served = OAuthServer::start(&issuer);
    let (first, second) = (old.token(&claims(&issuer)), new.token(&claims(&issuer)));
    assert_eq!(served.trust(&first), "VERIFIED");
    issuer.publish(&[&new]);
    assert_eq!(served.trust(&first), "VERIFIED", "nobody has asked for keys yet");
    assert_eq!(served.trust(&second), "VERIFIED", "a key that is not known is looked for");
    assert_eq!(served.rejection_message(&first), UNKNOWN_KEY_MESSAGE, "also a token that passed before");
    assert_eq!(issuer.request_count(KEYS_PATH), 2);
}

#[test]
fn s05_a_key_that_is_gone_ends_what_its_tokens_opened() {
    let (old, new) = (Signer::new("old", "ES256"), Signer::new("new", "ES256"));
    let issuer = Issuer::start(&[&old]);
    let served = OAuthServer::start(&issuer);
    let token = old.token(&claims(&issuer));
    let mut socket = WebSocket::connect_with(served.client, &[("Authorization", &format!("Bearer {token}"))]);
    socket.send(&call(1, "inspect_server", json!({})));
    assert_eq!(socket.message()["result"]["structuredContent"]["trust"], "VERIFIED");
    issuer.publish(&[&new]);
    assert_eq!(served.trust(&new.token(&claims(&issuer))), "VERIFIED");
    socket.send(&call(2, "inspect_server", json!({})));
    match socket.receive() {
        Ok(WebSocketFrame::Message(message)) => assert!(message.get("result").is_none(), "{message}"),
        Ok(WebSocketFrame::Close(_)) | Err(_) => {}
    }
}

#[test]
fn s05_a_flood_of_unknown_keys_is_no_flood_of_questions() {
    let key = Signer::new("one", "ES256");
    let issuer = Issuer::start(&[&key]);
    let served = OAuthServer::start(&issuer);
    let good = key.token(&claims(&issuer));
    thread::scope(|scope| {
        for number in 0..8 {
            let (served, key, issuer, good) = (served.caller, &key, &issuer, &good);
            scope.spawn(move || {
                for turn in 0..20 {
                    let token = key.token_with(json!({ "kid": format!("{number}-{turn}") }), &claims(issuer));
                    assert_eq!(served.rejection_message(&token), UNKNOWN_KEY_MESSAGE);
                    assert_eq!(served.trust(good), "VERIFIED");
                }
            });
        }
    });
    assert!(issuer.request_count(KEYS_PATH) <= 2, "{}", issuer.request_count(KEYS_PATH));
}

#[test]
fn s05_an_issuer_that_is_down_is_asked_again() {
    let key = Signer::new("one", "ES256");
    let issuer = Issuer::start(&[&key]);
    issuer.set_down(true);
    let mut served = OAuthServer::start(&issuer);
    let token = key.token(&claims(&issuer));
    assert!(served.unavailable_message(&token).contains("the issuer's keys are unavailable"));
    let line = served.server.wait_for_log("cannot fetch the issuer's JWKS");
    assert!(line.contains("WARN") && line.contains("status 503"), "{line}");
    issuer.set_down(false);
    wait_for("the issuer to be asked again", || (served.inspect(&token).status == 200).then_some(()));
    issuer.set_down(true);
    let other = key.token(&claims_with(&issuer, json!({ "sub": "bob" })));
    assert_eq!(served.trust(&other), "VERIFIED", "its keys are known");
    let unknown = key.token_with(json!({ "kid": "two" }), &claims(&issuer));
    assert_eq!(served.rejection_message(&unknown), UNKNOWN_KEY_MESSAGE);
    assert_eq!(served.trust(&other), "VERIFIED", "the old keys stay");
}

#[test]
fn s05_keys_are_found_where_issuers_have_their_metadata() {
    for (path, metadata) in [
        ("", "/.well-known/openid-configuration"),
        ("/realms/one", "/.well-known/oauth-authorization-server/realms/one"),
        ("/realms/one", "/realms/one/.well-known/openid-configuration"),
        ("/", "/.well-known/oauth-authorization-server"),
    ] {
        let key = Signer::new("one", "ES256");
        let issuer = Issuer::start_at(path, metadata, &[&key]);
        let served = OAuthServer::start(&issuer);
        assert_eq!(served.trust(&key.token(&claims(&issuer))), "VERIFIED", "{metadata}");
        assert_eq!(issuer.request_count(metadata), 1, "{metadata}");
    }
}

#[test]
fn s05_an_address_of_keys_in_the_settings_needs_no_metadata() {
    let key = Signer::new("one", "ES256");
    let issuer = Issuer::start_at("", "/nowhere", &[&key]);
    let without = OAuthServer::start(&issuer);
    assert!(without.unavailable_message(&key.token(&claims(&issuer))).contains("are unavailable"));
    let served = OAuthServer::with(&issuer, json!({ "jwks_url": format!("{}{KEYS_PATH}", issuer.url) }));
    assert_eq!(served.trust(&key.token(&claims(&issuer))), "VERIFIED");
    assert_eq!(issuer.request_count(KEYS_PATH), 1);
}

#[test]
fn s05_a_token_that_cannot_be_ours_asks_nobody() {
    let key = Signer::new("one", "ES256");
    let issuer = Issuer::start(&[&key]);
    let served = OAuthServer::start(&issuer);
    served.rejection_message(&key.token(&claims_with(&issuer, json!({ "iss": "https://evil.example" }))));
    served.rejection_message("garbage");
    assert_eq!(issuer.request_count(KEYS_PATH), 0);
}

#[test]
fn s05_an_odd_answer_is_no_answer() {
    let (key, own) = (Signer::new("one", "ES256"), Signer::new("mine", "ES256"));
    let (issuer, evil) = (Issuer::start(&[&key]), Issuer::start(&[&own]));
    let redirect = format!("HTTP/1.1 302 Found\r\nLocation: {}{KEYS_PATH}\r\nContent-Length: 0\r\n\r\n", evil.url);
    let page = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n<html>".to_owned();
    let padding = " ".repeat(1 << 20);
    let document = json!({ "keys": [key.jwk()] });
    let huge = format!("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{padding}{document}");
    let half = format!("HTTP/1.1 200 OK\r\nContent-Length: 9999\r\nConnection: close\r\n\r\n{document}");
    for (odd, why) in
        [(redirect, "status 302"), (page, "is invalid"), (huge, "larger than 1 MiB"), (half, "connection closed")]
    {
        issuer.respond_with_bytes(Some(odd));
        let mut served = OAuthServer::start(&issuer);
        for signer in [&key, &own] {
            assert!(served.unavailable_message(&signer.token(&claims(&issuer))).contains("are unavailable"), "{why}");
        }
        let line = served.server.wait_for_log("cannot fetch the issuer's JWKS");
        assert!(line.contains(why), "{line}");
        issuer.respond_with_bytes(None);
        wait_for("keys", || (served.inspect(&key.token(&claims(&issuer))).status == 200).then_some(()));
    }
    assert_eq!(evil.request_count(KEYS_PATH), 0, "nobody goes where a redirect points to");
}

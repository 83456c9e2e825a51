//! Discovery metadata and `WWW-Authenticate` hints for clients.

use serde_json::json;

use crate::fixture::{OAuthServer, RESOURCE, claims, claims_with};
use crate::issuer::{Issuer, KEYS_PATH};
use crate::process::{call, corbie};
use crate::signer::Signer;

const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

#[test]
fn s05_whoever_has_no_token_is_led_to_where_they_are_given_out() {
    let issuer = Issuer::start(&[]);
    let served = OAuthServer::start(&issuer);
    let reply = served.client.call("POST", "/mcp", &[], &call(1, "inspect_server", json!({})).to_string());
    assert_eq!(reply.status, 401);
    let place = "https://mcp.example.org/.well-known/oauth-protected-resource/mcp";
    let challenge = format!("Bearer resource_metadata=\"{place}\", scope=\"corbie:admin corbie:read corbie:write\"");
    assert_eq!(reply.header("www-authenticate"), Some(challenge.as_str()));
    for path in [WELL_KNOWN.to_owned(), format!("{WELL_KNOWN}/mcp"), format!("{WELL_KNOWN}/behind/a/proxy/mcp")] {
        let reply = served.client.get(&path);
        assert_eq!((reply.status, reply.header("content-type")), (200, Some("application/json")), "{path}");
        let document = json!({
            "resource": RESOURCE,
            "resource_name": "corbie",
            "authorization_servers": [issuer.url],
            "bearer_methods_supported": ["header"],
            "scopes_supported": ["corbie:admin", "corbie:read", "corbie:write"],
        });
        assert_eq!(reply.json(), document);
    }
    assert_eq!(served.client.get(&format!("{WELL_KNOWN}s")).status, 401, "another path");
    assert_eq!(served.client.get("/live").status, 200);
    assert_eq!(issuer.request_count(KEYS_PATH), 0, "nothing is fetched before a token comes");
}

#[test]
fn s05_without_an_authorization_server_there_is_no_document() {
    let mut server = corbie("serve --port 0").start();
    let client = server.client();
    assert_eq!(client.get(WELL_KNOWN).status, 404);
}

/// MCP clients read this header to request more scopes.
#[test]
fn m85_whoever_is_not_trusted_enough_is_told_which_scope_is_missing() {
    let key = Signer::new("one", "ES256");
    let issuer = Issuer::start(&[&key]);
    let served = OAuthServer::start(&issuer);
    let place = "resource_metadata=\"https://mcp.example.org/.well-known/oauth-protected-resource/mcp\"";
    let reads = key.token(&claims_with(&issuer, json!({ "scope": "corbie:read" })));
    let writes = key.token(&claims(&issuer));
    for (token, tool, arguments, scope) in [
        (&reads, "chat_completion", json!({ "messages": [{ "role": "user", "content": "hello" }] }), "corbie:write"),
        (&writes, "knowledge-clear", json!({ "confirm": true }), "corbie:admin"),
    ] {
        let reply = served.call(token, tool, arguments);
        assert_eq!(reply.status, 403, "{reply:?}");
        let challenge = format!("Bearer error=\"insufficient_scope\", {place}, scope=\"{scope}\"");
        assert_eq!(reply.header("www-authenticate"), Some(challenge.as_str()), "{tool}");
    }
    let bearer = format!("Bearer {reads}");
    let headers = [("Authorization", bearer.as_str())];
    let chat = json!({ "model": "auto", "messages": [{ "role": "user", "content": "hello" }] }).to_string();
    let reply = served.client.call("POST", "/v1/chat/completions", &headers, &chat);
    assert_eq!(reply.status, 403, "{reply:?}");
    assert!(reply.header("www-authenticate").is_some_and(|challenge| challenge.contains("corbie:write")), "{reply:?}");
    // JSON-RPC reports it in the body, as its clients expect.
    let body = call(1, "knowledge-clear", json!({ "confirm": true })).to_string();
    let reply = served.client.call("POST", "/mcp", &headers, &body);
    assert_eq!((reply.status, reply.header("www-authenticate")), (200, None), "{reply:?}");
    assert_eq!(reply.json()["error"]["code"], -32010, "{reply:?}");
}

#[test]
fn m85_whoever_has_the_highest_scope_or_no_scope_to_ask_for_is_told_of_none() {
    let key = Signer::new("one", "ES256");
    let issuer = Issuer::start(&[&key]);
    let served = OAuthServer::with(&issuer, json!({ "scopes": { "corbie:write": "verified" } }));
    let reply = served.call(&key.token(&claims(&issuer)), "knowledge-clear", json!({ "confirm": true }));
    assert_eq!((reply.status, reply.header("www-authenticate")), (403, None), "{reply:?}");
}

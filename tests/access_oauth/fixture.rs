//! The program with an issuer, and its responses to callers with tokens.

use serde_json::{Value, json};

use crate::http::{HttpClient, HttpResponse};
use crate::issuer::Issuer;
use crate::process::{TestProcess, corbie};
use crate::signer::unix_seconds;

pub(crate) const RESOURCE: &str = "https://mcp.example.org/mcp";

pub(crate) struct OAuthServer {
    pub(crate) server: TestProcess,
    pub(crate) caller: OAuthClient,
}

/// Callers of the program.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OAuthClient {
    pub(crate) client: HttpClient,
}

impl OAuthServer {
    pub(crate) fn start(issuer: &Issuer) -> OAuthServer {
        OAuthServer::with(issuer, json!({}))
    }

    /// With further settings of `server.oauth`.
    pub(crate) fn with(issuer: &Issuer, more: Value) -> OAuthServer {
        let scopes = json!({ "corbie:read": "untrusted", "corbie:write": "verified", "corbie:admin": "trusted" });
        let mut oauth = json!({ "issuer": issuer.url, "resource": RESOURCE, "scopes": scopes });
        oauth.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        // Tests send more wrong tokens than an address may send otherwise.
        let settings = json!({ "server": { "oauth": oauth, "rate_limit": { "per_second": 100_000 } } });
        let mut server = corbie("serve --port 0").file("corbie.json", &settings.to_string()).start();
        let callers = OAuthClient { client: server.client() };
        OAuthServer { server, caller: callers }
    }
}

impl std::ops::Deref for OAuthServer {
    type Target = OAuthClient;

    fn deref(&self) -> &OAuthClient {
        &self.caller
    }
}

impl OAuthClient {
    pub(crate) fn inspect(&self, token: &str) -> HttpResponse {
        self.call(token, "inspect_server", json!({}))
    }

    pub(crate) fn call(&self, token: &str, tool: &str, arguments: Value) -> HttpResponse {
        let body = json!({ "name": tool, "arguments": arguments }).to_string();
        self.client.call("POST", "/mcp/tools/call", &[("Authorization", &format!("Bearer {token}"))], &body)
    }

    /// Trust level of a valid token.
    #[track_caller]
    pub(crate) fn trust(&self, token: &str) -> String {
        let reply = self.inspect(token);
        assert_eq!(reply.status, 200, "{reply:?}");
        reply.json()["structuredContent"]["trust"].as_str().unwrap().to_owned()
    }

    /// The reply for a token that cannot be verified at present: not an authentication failure.
    #[track_caller]
    pub(crate) fn unavailable_message(&self, token: &str) -> String {
        let reply = self.inspect(token);
        assert_eq!((reply.status, reply.header("www-authenticate")), (503, None), "{reply:?}");
        assert!(reply.header("retry-after").is_some(), "{reply:?}");
        reply.json()["error"]["message"].as_str().unwrap().to_owned()
    }

    /// The reply for an invalid token, which reveals no details of the token.
    #[track_caller]
    pub(crate) fn rejection_message(&self, token: &str) -> String {
        let reply = self.inspect(token);
        assert_eq!(reply.status, 401, "{reply:?}");
        let challenge = reply.header("www-authenticate").unwrap();
        assert!(challenge.starts_with("Bearer error=\"invalid_token\", resource_metadata=\""), "{challenge}");
        for part in token.split('.').filter(|part| part.len() > 8) {
            assert!(!reply.body.contains(part) && !challenge.contains(part), "{reply:?}");
        }
        reply.json()["error"]["message"].as_str().unwrap().to_owned()
    }
}

/// Claims of a valid token.
pub(crate) fn claims(issuer: &Issuer) -> Value {
    json!({
        "iss": issuer.url, "aud": RESOURCE, "sub": "alice", "client_id": "app", "scope": "openid corbie:write",
        "iat": unix_seconds(-5), "exp": unix_seconds(600), "jti": "1",
    })
}

/// The same with other members; null removes a member.
pub(crate) fn claims_with(issuer: &Issuer, more: Value) -> Value {
    let mut claims = claims(issuer);
    let members = claims.as_object_mut().unwrap();
    members.extend(more.as_object().unwrap().clone());
    members.retain(|_, value| !value.is_null());
    claims
}

//! Every tool, at every trust level, over every transport, with every kind of token (V-10, M-85, M-95, S-13, X-16,
//!
//!
//! The expected outcome is derived from the annotations in `tools/list` and compared with the actual one.

use serde_json::{Map, Value, json};

use crate::fixture::OperatorHome;
use crate::http::HttpClient;
use crate::issuer::Issuer;
use crate::process::{TestProcess, call, modern_meta, request};
use crate::signer::{Signer, unix_seconds};
use crate::websocket::WebSocket;

/// The token of the settings.
const OPERATORS_OWN: &str = "6e00cd562cc2d88e238dfb81d9439de7ec843ee9";

const RESOURCE: &str = "https://mcp.example.org/mcp";
const LEVELS: [&str; 3] = ["untrusted", "verified", "trusted"];

/// Transport.
#[derive(Debug, Clone, Copy, PartialEq)]
enum CallTransport {
    Stdio,
    JsonRpc,
    Modern,
    Rest,
    WebSocket,
}

/// A kind of caller and its token.
struct CallerCase {
    name: &'static str,
    token: String,
    /// Prefix of the allowed tools; `None` allows all.
    allowed_tool: Option<&'static str>,
    /// Whether the server should accept the token.
    is_recognized: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum ProbeOutcome {
    /// The handler was reached, with any result.
    Executed,
    /// -32010.
    Forbidden,
    /// -32001.
    Unauthenticated,
}

/// A tool with harmless arguments that match its schema: destructive calls are not confirmed, files do not exist.
struct Probe {
    name: String,
    level: usize,
    arguments: Value,
}

fn probes(listed: &Value) -> Vec<Probe> {
    let tools = listed["tools"].as_array().unwrap();
    assert!(tools.len() >= 20, "{}", tools.len());
    tools
        .iter()
        .map(|tool| {
            let hints = &tool["annotations"];
            let level = match (hints["readOnlyHint"].as_bool(), hints["destructiveHint"].as_bool()) {
                (Some(true), _) => 0,
                (_, Some(true)) => 2,
                _ => 1,
            };
            // Some tools require more trust than their effect implies.
            let least = LEVELS.iter().position(|level| tool["metadata"]["trust"] == *level).unwrap_or_default();
            let level = least.max(level);
            let schema = &tool["inputSchema"];
            let required = schema["required"].as_array().cloned().unwrap_or_default();
            let argument = |name: &Value| {
                let name = name.as_str().unwrap();
                (name.to_owned(), sample_value(&schema["properties"][name], schema))
            };
            let mut arguments: Map<String, Value> = required.iter().map(argument).collect();
            let name = tool["name"].as_str().unwrap().to_owned();
            if name == "evaluate_categories" {
                // Without examples the tool trains for seconds, every time.
                arguments.insert("examples".into(), json!([{ "text": "a", "category": "none" }]));
            }
            Probe { name, level, arguments: arguments.into() }
        })
        .collect()
}

/// A value that matches a schema.
fn sample_value(schema: &Value, root: &Value) -> Value {
    if let Some(place) = schema["$ref"].as_str() {
        return sample_value(root.pointer(place.trim_start_matches('#')).unwrap(), root);
    }
    if let Some(first) = schema["enum"].as_array().and_then(|values| values.first()) {
        return first.clone();
    }
    for choice in ["anyOf", "oneOf"] {
        if let Some(first) = schema[choice].as_array().and_then(|schemas| schemas.first()) {
            return sample_value(first, root);
        }
    }
    let kind = schema["type"].as_str().or_else(|| schema["type"][0].as_str()).unwrap_or("string");
    match kind {
        "array" => json!([sample_value(&schema["items"], root)]),
        "object" => {
            let required = schema["required"].as_array().cloned().unwrap_or_default();
            let member = |name: &Value| {
                (name.as_str().unwrap().to_owned(), sample_value(&schema["properties"][name.as_str().unwrap()], root))
            };
            Value::Object(required.iter().map(member).collect())
        }
        "boolean" => json!(false),
        "integer" | "number" => schema.get("minimum").cloned().unwrap_or(json!(1)),
        _ => json!("00000000-0000-4000-8000-000000000000"),
    }
}

/// Two servers of one trust level: `open` accepts every connection, `asking` requires tokens.
struct LevelServers {
    stdio: TestProcess,
    open: HttpClient,
    authenticated: HttpClient,
    callers: Vec<CallerCase>,
    _running: (TestProcess, OperatorHome, Issuer),
}

fn servers(level: &str) -> LevelServers {
    let operator = OperatorHome::new();
    let token = |arguments: &str| operator.token(arguments);
    let kind = |name, token, only, known| CallerCase { name, token, allowed_tool: only, is_recognized: known };
    let own = token(&format!("own --trust {level}"));
    let narrow = token(&format!("narrow --tool knowledge-* --trust {level}"));
    let mut kinds = vec![
        kind("the operator's token", OPERATORS_OWN.to_owned(), None, true),
        kind("a token with a level of its own", own, None, true),
        kind("a token as any caller", token("plain"), None, true),
        kind("a token for some tools", narrow, Some("knowledge-"), true),
        kind("a token that was revoked", token("revoked"), None, false),
        kind("a token nobody made", "corbie_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA".to_owned(), None, false),
        kind("no token", String::new(), None, false),
    ];
    let signer = Signer::new("one", "ES256");
    let issuer = Issuer::start(&[&signer]);
    let claims = json!({
        "iss": issuer.url, "aud": RESOURCE, "sub": "alice", "client_id": "app", "scope": format!("corbie:{level}"),
        "iat": unix_seconds(-5), "exp": unix_seconds(600),
    });
    let other = |name: &str, value: Value| {
        let mut claims = claims.clone();
        claims[name] = value;
        signer.token(&claims)
    };
    kinds.push(kind("a token of the authorization server", signer.token(&claims), None, true));
    kinds.push(kind("one that has expired", other("exp", json!(unix_seconds(-3600))), None, false));
    kinds.push(kind("one for somebody else", other("aud", json!("https://other.example.org")), None, false));
    let scopes = json!({ "corbie:untrusted": "untrusted", "corbie:verified": "verified", "corbie:trusted": "trusted" });
    let oauth = json!({ "issuer": issuer.url, "resource": RESOURCE, "scopes": scopes });
    assert_eq!(operator.run("tokens revoke revoked").code, Some(0));
    let with = |arguments: &str| {
        let setup = operator.corbie(arguments).variable("CORBIE_TRUST__STDIO", level);
        setup.variable("CORBIE_TRUST__LOOPBACK", level).variable("MCP_API_KEY", OPERATORS_OWN)
    };
    let mut open = with("serve --stdio --port 0").start();
    // The matrix has more wrong tokens than an address may send otherwise.
    let server = json!({ "auth": "bearer", "oauth": oauth, "rate_limit": { "per_second": 100_000 } });
    let settings = json!({ "server": server }).to_string();
    let mut asking = with("serve --port 0").file("corbie.json", &settings).start();
    let (others, client) = ((asking.client(), operator, issuer), open.client());
    LevelServers {
        open: client,
        authenticated: others.0,
        stdio: open,
        callers: kinds,
        _running: (asking, others.1, others.2),
    }
}

fn outcome(reply: &Value) -> ProbeOutcome {
    match reply["error"]["code"].as_i64() {
        Some(-32010 | -31010) => ProbeOutcome::Forbidden,
        Some(-32001 | -31001) => ProbeOutcome::Unauthenticated,
        _ => ProbeOutcome::Executed,
    }
}

fn over_http(way: CallTransport, client: HttpClient, token: &str, probe: &Probe) -> ProbeOutcome {
    let bearer = format!("Bearer {token}");
    let mut headers: Vec<(&str, &str)> = Vec::new();
    if !token.is_empty() {
        headers.push(("Authorization", &bearer));
    }
    let mut params = json!({ "name": probe.name, "arguments": probe.arguments });
    let reply = match way {
        CallTransport::Rest => client.call("POST", "/mcp/tools/call", &headers, &params.to_string()),
        CallTransport::JsonRpc => client.call("POST", "/mcp", &headers, &request(1, "tools/call", params).to_string()),
        _ => {
            params["_meta"] = modern_meta();
            headers.extend([
                ("MCP-Protocol-Version", "2026-07-28"),
                ("Mcp-Method", "tools/call"),
                ("Mcp-Name", &probe.name),
            ]);
            client.call("POST", "/mcp", &headers, &request(1, "tools/call", params).to_string())
        }
    };
    let outcome = outcome(&reply.json());
    match (outcome, way) {
        (ProbeOutcome::Forbidden, CallTransport::Rest) => assert_eq!(reply.status, 403, "X-17"),
        (ProbeOutcome::Unauthenticated, _) => assert_eq!(reply.status, 401),
        _ => {}
    }
    outcome
}

fn assert_matrix(level: usize) {
    let mut servers = servers(LEVELS[level]);
    let probes = probes(&servers.open.post("/mcp/tools/list", &json!({})).json());
    for needed in 0..3 {
        assert!(probes.iter().any(|probe| probe.level == needed), "no tool of level {needed}");
    }
    let mut cells = 0;
    let mut check = |way: CallTransport, kind: &str, probe: &Probe, found: ProbeOutcome, expected: ProbeOutcome| {
        assert_eq!(found, expected, "{} over {way:?} with {kind}, {}", probe.name, LEVELS[level]);
        cells += 1;
    };
    let by_trust = |probe: &Probe| if level >= probe.level { ProbeOutcome::Executed } else { ProbeOutcome::Forbidden };
    let mut socket = WebSocket::connect(servers.open);
    for probe in &probes {
        let message = call(1, &probe.name, probe.arguments.clone());
        check(
            CallTransport::Stdio,
            "nothing",
            probe,
            outcome(&servers.stdio.send_and_receive(&message)),
            by_trust(probe),
        );
        socket.send(&message);
        check(CallTransport::WebSocket, "nothing", probe, outcome(&socket.message()), by_trust(probe));
        for way in [CallTransport::JsonRpc, CallTransport::Modern, CallTransport::Rest] {
            check(way, "nothing", probe, over_http(way, servers.open, "", probe), by_trust(probe));
        }
    }
    for kind in &servers.callers {
        let mut socket = kind.is_recognized.then(|| {
            let bearer = format!("Bearer {}", kind.token);
            WebSocket::connect_with(servers.authenticated, &[("Authorization", &bearer)])
        });
        for probe in &probes {
            let expected = match kind {
                CallerCase { is_recognized: false, .. } => ProbeOutcome::Unauthenticated,
                CallerCase { allowed_tool: Some(beginning), .. } if !probe.name.starts_with(beginning) => {
                    ProbeOutcome::Forbidden
                }
                _ => by_trust(probe),
            };
            if let Some(socket) = &mut socket {
                socket.send(&call(1, &probe.name, probe.arguments.clone()));
                check(CallTransport::WebSocket, kind.name, probe, outcome(&socket.message()), expected);
            }
            for way in [CallTransport::JsonRpc, CallTransport::Modern, CallTransport::Rest] {
                check(way, kind.name, probe, over_http(way, servers.authenticated, &kind.token, probe), expected);
            }
        }
    }
    // Stdio; four transports without a token; four each for five valid kinds of token; three each for five invalid
    // kinds.
    assert_eq!(cells, probes.len() * (1 + 4 + 5 * 4 + 5 * 3));
}

#[test]
fn v10_m95_s13_the_matrix_of_untrusted_callers() {
    assert_matrix(0);
}

#[test]
fn v10_m95_s13_the_matrix_of_verified_callers() {
    assert_matrix(1);
}

#[test]
fn v10_m85_x16_x17_the_matrix_of_trusted_callers() {
    assert_matrix(2);
}

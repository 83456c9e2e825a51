//! S-01, S-03, V-12: no secret leaks over any interface of a server with authentication: MCP, REST style, the
//! OpenAI-compatible API with and without streams, resources, metrics, and a JSON log. Wrong credentials are not echoed
//! either.

use std::path::Path;

use serde_json::{Value, json};

use crate::http::HttpClient;
use crate::process::{TestCommand, TestProcess, call, corbie, request};
use crate::upstream::{FORMATS, FakeUpstream, ScriptedServer};

/// Part of every secret.
const MARK: &str = "sk-marker";
/// The token that callers must send.
const TOKEN: &str = "sk-marker-0282d9b79f42c74c1550b20ff2dd16aafc3fe5d8";

/// Failures of every kind, by model name.
const FAULTS: [&str; 8] = ["leak", "leak-403", "leak-429", "leak-500", "status-403", "html", "error-mid", "stall"];

/// A classification server that echoes the received header and rejects the request.
fn echoing_classifier() -> ScriptedServer {
    ScriptedServer::start(|request, connection| {
        let body = format!("who is this? {}", request.head);
        let head = format!("HTTP/1.1 401 Unauthorized\r\nContent-Length: {}\r\n\r\n", body.len());
        let _ = std::io::Write::write_all(connection, format!("{head}{body}").as_bytes());
    })
}

fn command_with_secrets(upstream: &FakeUpstream, classifier: &ScriptedServer) -> TestCommand {
    let mut providers = json!({ "detect_ports": [] });
    for format in FORMATS {
        let base = upstream.base(format);
        // One provider per fault, so that no circuit breaker opens.
        for fault in FAULTS {
            let base_url = format!("{base}?key={MARK}-query");
            providers[format!("{format}-{fault}")] = json!({
                "type": format, "base_url": base_url, "api_key": format!("{MARK}-{format}"),
                "headers": { "x-gateway": "Bearer ${GATEWAY_KEY}" }, "timeout": "400ms",
            });
        }
    }
    let mcp_server = json!({
        "url": format!("http://127.0.0.1:{}/mcp?key={MARK}-classifier", classifier.port),
        "headers": { "Authorization": "Bearer ${CLASSIFIER_KEY}" },
        "max_retries": 0,
    });
    let settings = json!({
        "providers": providers,
        "classification": { "type": "mcp", "mcp_server": mcp_server },
        "router": { "timeout": "900ms", "failover": false },
        "server": { "auth": "bearer" },
        "log": { "level": "debug", "format": "json" },
    });
    corbie("serve --stdio --port 0")
        .file("corbie.json", &settings.to_string())
        .variable("MCP_API_KEY", TOKEN)
        .variable("GATEWAY_KEY", format!("{MARK}-gateway"))
        .variable("CLASSIFIER_KEY", format!("{MARK}-classifier"))
}

/// Responses to authenticated callers for requests of every kind.
fn responses_with_token(client: &HttpClient) -> Vec<String> {
    let headers = [("Authorization", format!("Bearer {TOKEN}")), ("Content-Type", "application/json".to_owned())];
    let headers = headers.each_ref().map(|(name, value)| (*name, value.as_str()));
    let post = |path: &str, body: Value| client.call("POST", path, &headers, &body.to_string()).body;
    let mut told = Vec::new();
    std::thread::scope(|scope| {
        let asked = FORMATS.iter().flat_map(|format| FAULTS.map(|fault| format!("{format}-{fault}/{fault}")));
        let asking: Vec<_> = asked
            .map(|model| {
                scope.spawn(move || {
                    let messages = json!([{ "role": "user", "content": "hello" }]);
                    let mut told = Vec::new();
                    for stream in [false, true] {
                        let body = json!({ "model": model, "messages": messages, "stream": stream });
                        told.push(post("/v1/chat/completions", body));
                    }
                    told.push(post("/v1/embeddings", json!({ "model": model, "input": "hello" })));
                    told.push(post("/mcp/completion/complete", json!({ "prompt": "hello", "model": model })));
                    let arguments = json!({ "prompt": "hello", "model": model });
                    told.push(post("/mcp", call(1, "chat_completion", arguments)));
                    told
                })
            })
            .collect();
        told.extend(asking.into_iter().flat_map(|one| one.join().unwrap()));
    });
    // Without a model, the classification server is called first.
    told.push(post("/mcp/completion/complete", json!({ "prompt": "hello" })));
    for path in ["/metrics", "/health", "/ready", "/v1/models", "/nowhere"] {
        told.push(client.call("GET", path, &headers, "").body);
    }
    told
}

/// Responses to callers with wrong or misplaced credentials.
fn responses_with_bad_credentials(client: &HttpClient) -> Vec<String> {
    let wrong = format!("Bearer {MARK}-wrong");
    let basic = format!("Basic {MARK}-basic");
    let mut told = Vec::new();
    for value in [wrong.as_str(), basic.as_str(), "Bearer", ""] {
        for path in ["/mcp", "/mcp/tools/call", "/v1/chat/completions", "/metrics", "/files"] {
            for headers in [vec![("Authorization", value)], vec![("x-api-key", value)], vec![("Cookie", value)]] {
                let reply = client.call("POST", path, &headers, "{}");
                told.push(format!("{:?} {}", reply.header("www-authenticate"), reply.body));
            }
        }
    }
    for path in ["/metrics", "/mcp", "/v1/models", "/health"] {
        told.push(client.get(&format!("{path}?token={MARK}-in-url&key={MARK}-in-url")).body);
    }
    told
}

/// Every resource and every read-only tool.
fn resource_and_tool_outputs(server: &mut TestProcess) -> Vec<String> {
    let mut told = Vec::new();
    for tool in ["list_models", "list_providers", "list_categories", "inspect_server", "list_registered_tools"] {
        told.push(server.send_and_receive(&call(tool, tool, json!({}))).to_string());
    }
    let listed = server.send_and_receive(&request(1, "resources/list", json!({})));
    let uris = listed["result"]["resources"].as_array().unwrap().iter().map(|resource| resource["uri"].clone());
    for uri in uris.chain([json!("corbie://decisions/1"), json!("corbie://metrics/tools"), json!("corbie://audit")]) {
        told.push(server.send_and_receive(&request(2, "resources/read", json!({ "uri": uri }))).to_string());
    }
    told.push(listed.to_string());
    told
}

/// S-03: internals that an error must not reveal.
fn leaks_internals(text: &str, folder: &Path) -> bool {
    let folder = folder.display().to_string();
    ["panicked", "stack backtrace", ".rs:", "RUST_BACKTRACE", "billing.py", folder.as_str()]
        .iter()
        .any(|inside| text.contains(inside))
}

#[test]
fn v12_s01_s03_no_face_tells_a_secret_or_what_is_inside_whatever_goes_wrong() {
    let (upstream, classifier) = (FakeUpstream::start(), echoing_classifier());
    let setup = command_with_secrets(&upstream, &classifier);
    let folder = setup.folder().to_owned();
    let mut server = setup.start();
    let client = HttpClient::v4(json_port(&mut server));
    let mut told = responses_with_token(&client);
    told.extend(responses_with_bad_credentials(&client));
    told.extend(resource_and_tool_outputs(&mut server));
    server.terminate();
    let ended = server.wait();
    let written = ended.stderr.clone();

    // Guards against a vacuous test: every secret was sent and every fault occurred.
    let sent = Value::from(upstream.requests()).to_string();
    for secret in ["openai", "anthropic", "google", "gateway", "query"] {
        assert!(sent.contains(&format!("{MARK}-{secret}")), "{secret} was not sent");
    }
    let shown = classifier.requests();
    assert!(shown.iter().any(|request| request.head.contains(&format!("Bearer {MARK}-classifier"))), "{shown:?}");
    for line in written.lines() {
        assert!(serde_json::from_str::<Value>(line).is_ok(), "{line}");
    }
    assert!(written.contains("\"debug\"") && written.contains("attempt failed"), "{written}");

    for text in &told {
        assert!(!leaks_internals(text, &folder), "{text}");
    }
    for text in told.iter().chain([&ended.stdout, &written]) {
        assert!(!text.contains(MARK), "{text}");
    }
}

/// The port from a JSON log.
fn json_port(server: &mut TestProcess) -> u16 {
    let line = server.wait_for_log("listening");
    let line: Value = serde_json::from_str(&line).unwrap();
    let url = line["fields"]["url"].as_str().unwrap();
    url.split(':').nth(2).and_then(|rest| rest.split('/').next()).and_then(|port| port.parse().ok()).unwrap()
}

/// S-02: keys come from variables and files, never from the command line, which every user of the machine can read.
#[test]
fn s02_no_flag_takes_a_key() {
    for command in ["--help", "serve --help", "ask --help", "providers --help", "config --help"] {
        let help = corbie(command).run("").stdout.to_lowercase();
        for word in ["--token", "--api-key", "--key", "--password", "--header"] {
            assert!(!help.contains(word), "{command}: {help}");
        }
    }
}

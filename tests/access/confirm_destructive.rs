//! `trust.confirm_destructive`: destructive calls of a verified caller need the user's consent (M-85, M-97).

use serde_json::{Value, json};

use crate::fixture::{OperatorHome, start_with_client};
use crate::process::{TestProcess, call, modern_meta, request};

const CLEAR: &str = "knowledge-clear";

fn confirmed() -> Value {
    json!({ "confirm": true, "confirmation_phrase": "DELETE ALL" })
}

/// A server on stdio with a verified caller, after the handshake.
fn start_initialized(ask: bool, capabilities: Value) -> (OperatorHome, TestProcess) {
    let operator = OperatorHome::new();
    let setup = operator.corbie("stdio").variable("CORBIE_TRUST__STDIO", "verified");
    let setup = if ask { setup.variable("CORBIE_TRUST__CONFIRM_DESTRUCTIVE", "true") } else { setup };
    let mut server = setup.start();
    let client = json!({ "name": "test", "version": "1" });
    let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": client });
    assert!(server.send_and_receive(&request(0, "initialize", hello))["result"].is_object());
    (operator, server)
}

/// The next message that is not a notification.
fn next_message(server: &mut TestProcess) -> Value {
    loop {
        let message = server.receive();
        if !message["method"].as_str().is_some_and(|method| method.starts_with("notifications/")) {
            return message;
        }
    }
}

fn send_and_receive(server: &mut TestProcess, message: &Value) -> Value {
    server.send(message);
    next_message(server)
}

fn answer_elicitation(server: &mut TestProcess, question: &Value, result: Value) -> Value {
    assert_eq!(question["method"], "elicitation/create", "{question}");
    let text = question["params"]["message"].as_str().unwrap();
    assert!(text.contains(CLEAR) && text.contains("destructive"), "{text}");
    send_and_receive(server, &json!({ "jsonrpc": "2.0", "id": question["id"], "result": result }))
}

#[test]
fn m85_the_person_decides() {
    let (_operator, mut server) = start_initialized(true, json!({ "elicitation": {} }));
    let yes = json!({ "action": "accept", "content": { "allow": true } });
    let question = send_and_receive(&mut server, &call(1, CLEAR, confirmed()));
    let done = answer_elicitation(&mut server, &question, yes);
    assert_eq!(done["result"]["structuredContent"]["success"], true, "{done}");
    for no in [
        json!({ "action": "decline" }),
        json!({ "action": "cancel" }),
        json!({ "action": "accept", "content": { "allow": false } }),
        json!({ "action": "accept", "content": {} }),
        json!({ "action": "accept" }),
    ] {
        let question = send_and_receive(&mut server, &call(2, CLEAR, confirmed()));
        let refused = answer_elicitation(&mut server, &question, no.clone());
        assert_eq!(refused["error"]["code"], -32010, "{no}: {refused}");
    }
    // Consent does not replace the confirmation: both gates must pass (S-13).
    let question = send_and_receive(&mut server, &call(3, CLEAR, json!({})));
    let done = answer_elicitation(&mut server, &question, json!({ "action": "accept", "content": { "allow": true } }));
    assert!(done.to_string().contains("confirmation_required"), "{done}");
}

#[test]
fn m97_nobody_is_asked_unless_the_operator_wants_it_and_the_client_can() {
    for (wanted, capabilities) in
        [(false, json!({ "elicitation": {} })), (true, json!({})), (true, json!({ "elicitation": { "url": {} } }))]
    {
        let (_operator, mut server) = start_initialized(wanted, capabilities);
        let refused = send_and_receive(&mut server, &call(1, CLEAR, confirmed()));
        assert_eq!(refused["error"]["code"], -32010, "{refused}");
    }
}

#[test]
fn m85_a_modern_client_is_asked_in_rounds_and_an_untrusted_one_never() {
    let operator = OperatorHome::new();
    let setup = |trust: &str| {
        operator
            .corbie("serve --port 0")
            .variable("CORBIE_TRUST__CONFIRM_DESTRUCTIVE", "true")
            .variable("CORBIE_TRUST__LOOPBACK", trust)
    };
    let (_server, client) = start_with_client(setup("verified"));
    let send = |client: crate::http::HttpClient, more: Value| {
        let mut meta = modern_meta();
        meta["io.modelcontextprotocol/clientCapabilities"] = json!({ "elicitation": { "form": {} } });
        let mut params = json!({ "name": CLEAR, "arguments": confirmed(), "_meta": meta });
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let headers = [
            ("MCP-Protocol-Version", "2026-07-28"),
            ("Mcp-Method", "tools/call"),
            ("Mcp-Name", CLEAR),
            ("Accept", "application/json, text/event-stream"),
        ];
        client.call("POST", "/mcp", &headers, &request(1, "tools/call", params).to_string()).json()
    };
    let asked = send(client, json!({}));
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    let requests = asked["result"]["inputRequests"].as_object().unwrap();
    let (key, question) = requests.iter().next().unwrap();
    assert_eq!(question["method"], "elicitation/create");
    let answers = json!({ key.as_str(): { "action": "accept", "content": { "allow": true } } });
    let done = send(client, json!({ "inputResponses": answers, "requestState": asked["result"]["requestState"] }));
    assert_eq!(done["result"]["structuredContent"]["success"], true, "{done}");

    let (_server, client) = start_with_client(setup("untrusted"));
    assert_eq!(send(client, json!({}))["error"]["code"], -31010);
}

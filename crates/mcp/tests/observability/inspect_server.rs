//! Output of `inspect_server`, and who may read it.

use std::time::Duration;

use corbie_mcp::transport::http::Options;
use corbie_mcp::transport::{Auth, Token};
use corbie_mcp::{AllowList, Permissions, TrustLevel};
use serde_json::{Value, json};

use crate::fixture::peer::{self, JSON, Stdio, TestTransport, call, json_of, request, request_over_stdio};
use crate::{fixture, used};

#[tokio::test]
async fn m88_an_inspection_tells_who_is_calling_and_what_is_in_force() {
    let grant = Permissions { tools: AllowList::names(["inspect_server", "echo*"]), collections: AllowList::All };
    let token = Token::new("agent", "s3cret", Some(TrustLevel::Verified)).permissions(grant);
    let auth = Auth::tokens([token]);
    let port = fixture::listen(&fixture::server(), Options { auth, ..Options::default() }).await;
    let headers = [JSON, ("authorization", "Bearer s3cret")];
    let reply = peer::http(port, "POST", "/mcp", &headers, &call(1, "inspect_server", json!({})).to_string()).await;
    let told = json_of(&reply.json());
    assert_eq!(
        (&told["caller"], &told["trust"], &told["via"]),
        (&json!("token:agent"), &json!("VERIFIED"), &json!("http"))
    );
    assert_eq!(told["permissions"], json!({ "tools": ["inspect_server", "echo*"], "collections": "all" }));
    assert_eq!(told["request_id"], reply.headers["x-request-id"].as_str());
    assert_eq!(told["limits"]["tool_timeout_seconds"], 5.0);
    assert_eq!(told["queues"]["requests_in_flight"], 1);
    assert_eq!(
        told["audit"],
        json!({ "recorded": 0, "entries": 0, "has_sink": false, "lost_entries": 0, "sink_failing": false })
    );
    assert!(told["started"].as_str().is_some_and(|time| time.ends_with('Z')), "{told}");
}

#[tokio::test]
async fn inspect_server_tells_how_the_last_minutes_went() {
    let server = used().await;
    request_over_stdio(&server, &request(1, "no/such/method", json!({}))).await;
    let told = json_of(&request_over_stdio(&server, &call(1, "inspect_server", json!({ "history": 120 }))).await);
    assert_eq!(told["history"]["seconds"], 5);
    let samples = told["history"]["samples"].as_array().expect("samples");
    let sum = |name: &str| samples.iter().map(|sample| sample[name].as_u64().expect("a number")).sum::<u64>();
    // Two valid, one invalid, one failing, one panicking, one rejected; the current call has not ended.
    assert_eq!((samples.len(), sum("requests"), sum("calls"), sum("call_errors")), (120, 7, 6, 4), "{told}");
    assert!(sum("errors") >= 2, "who is refused, and what is not there: {told}");
    for sample in samples {
        assert!(sample["at"].as_str().is_some_and(|at| at.ends_with('Z')), "{sample}");
        for share in ["p50_ms", "p95_ms"] {
            assert_eq!(sample[share].is_f64(), sample["requests"] != 0, "{sample}");
        }
    }
    let at =
        |number: usize| samples[number]["at"].as_str().map(humantime::parse_rfc3339).expect("text").expect("a time");
    assert_eq!(at(119).duration_since(at(0)).expect("the oldest first"), Duration::from_secs(5 * 119));
    let few = json_of(&request_over_stdio(&server, &call(1, "inspect_server", json!({ "history": 2.0 }))).await);
    assert_eq!(few["history"]["samples"].as_array().map(Vec::len), Some(2), "{few}");
    for none in [json!({}), json!({ "history": 0 })] {
        assert_eq!(json_of(&request_over_stdio(&server, &call(1, "inspect_server", none)).await).get("history"), None);
    }
    for wrong in [json!(121), json!(-1), json!("5")] {
        let refused = request_over_stdio(&server, &call(1, "inspect_server", json!({ "history": wrong }))).await;
        assert!(refused.to_string().contains("SchemaError"), "{refused}");
    }
}

#[tokio::test]
async fn requests_that_ask_for_it_are_not_in_the_history_but_in_the_metrics() {
    let server = fixture::server();
    let marked = |method: &str, params: Value| {
        let mut params = params;
        params["_meta"] = json!({ "corbie/excludeFromHistory": true });
        request(1, method, params)
    };
    for message in [
        marked("tools/call", json!({ "name": "echo", "arguments": { "text": "a" } })),
        marked("no/such/method", json!({})),
        call(1, "echo", json!({ "text": "a" })),
    ] {
        request_over_stdio(&server, &message).await;
    }
    let told = json_of(&request_over_stdio(&server, &call(1, "inspect_server", json!({ "history": 120 }))).await);
    let samples = told["history"]["samples"].as_array().expect("samples");
    let sum = |name: &str| samples.iter().map(|sample| sample[name].as_u64().expect("a number")).sum::<u64>();
    assert_eq!((sum("requests"), sum("calls"), sum("errors")), (1, 1, 0), "{told}");
    assert_eq!(told["audit"]["recorded"], 2);
}

#[tokio::test]
async fn m98_only_trusted_callers_read_the_audit_log() {
    let server = used().await;
    let told = json_of(&request_over_stdio(&server, &call(1, "inspect_server", json!({ "audit": 2 }))).await);
    let latest = told["audit"]["latest"].as_array().expect("entries");
    assert_eq!((latest.len(), &latest[0]["tool"], &latest[0]["outcome"]), (2, &json!("wipe"), &json!("blocked")));
    let without = json_of(&request_over_stdio(&server, &call(1, "inspect_server", json!({}))).await);
    assert_eq!(without["audit"]["latest"], Value::Null);
    let denied = TestTransport::Stdio
        .request(&server, TrustLevel::Verified, &call(1, "inspect_server", json!({ "audit": 2 })))
        .await;
    assert_eq!(denied["result"]["isError"], true, "{denied}");
    assert!(!denied.to_string().contains("wipe"), "{denied}");
    let too_many = request_over_stdio(&server, &call(1, "inspect_server", json!({ "audit": 101 }))).await;
    assert!(too_many.to_string().contains("SchemaError"), "{too_many}");
}

#[tokio::test]
async fn m73_an_agent_needs_nothing_but_tools() {
    let mut peer = Stdio::start(&fixture::server(), TrustLevel::Trusted);
    let discovered = json_of(&peer.call(&call(1, "list_registered_tools", json!({}))).await);
    let tools = discovered["tools"].as_array().expect("tools");
    let sums = tools.iter().find(|tool| tool["description"].as_str().is_some_and(|text| text.contains("two integers")));
    let name = &sums.expect("a tool that adds")["name"];
    let inspected = json_of(&peer.call(&call(2, "get_tool_schema", json!({ "name": name }))).await);
    assert_eq!(inspected["inputSchema"]["required"], json!(["a", "b"]));
    let name = name.as_str().expect("text");
    let executed = peer.call(&call(3, name, json!({ "a": 2, "b": 3 }))).await;
    assert_eq!((&executed["result"]["isError"], json_of(&executed)), (&json!(false), json!({ "sum": 5 })));
    peer.call(&call(4, name, json!({ "a": 2 }))).await;
    let learned = json_of(&peer.call(&call(5, "inspect_server", json!({}))).await)["tools"][name].take();
    assert_eq!((&learned["calls"], &learned["errors"]), (&json!(2), &json!(1)));
    assert!(learned["mean_ms"].as_f64().is_some_and(|mean| mean > 0.0));
}

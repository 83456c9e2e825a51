//! Tool call dispatch: order of checks, arguments, timeouts, panics, and the error dialects of tool families.

mod fixture;

use std::time::Duration;

use corbie_mcp::transport::Auth;
use corbie_mcp::transport::http::Options;
use corbie_mcp::{Arguments, Error, ErrorCode, Limits, Server, StateKey, Tool, ToolError, TrustLevel};
use fixture::peer::{self, Stdio, TestTransport, call, json_of, modern, request, request_over_stdio, text_of};
use fixture::{Gate, WipeCounter};
use serde_json::{Value, json};

fn families() -> Server {
    fixture::families(WipeCounter::default()).build().expect("valid")
}

// === every transport, no session ===

#[tokio::test]
async fn a01_every_tool_is_reachable_over_every_transport() {
    let server = families();
    let names: Vec<_> = server.registry().iter().map(|tool| tool.name().to_owned()).collect();
    for way in TestTransport::ALL {
        let listed = way.request(&server, TrustLevel::Trusted, &request(1, "tools/list", json!({}))).await;
        let listed = listed["result"]["tools"].as_array().expect("tools").iter();
        assert_eq!(listed.map(|tool| tool["name"].as_str().expect("name")).collect::<Vec<_>>(), names, "{way:?}");
        let answer = way.request(&server, TrustLevel::Trusted, &call(1, "echo", json!({ "text": "hi" }))).await;
        assert_eq!(text_of(&answer), "hi", "{way:?}");
    }
}

#[tokio::test]
async fn a13_a_call_needs_nothing_that_another_instance_remembers() {
    let key = || StateKey::from_secret(b"shared by all instances");
    let instance = || fixture::builder(WipeCounter::default()).state_key(key()).build().expect("valid");
    let ask_name = |more: Value| {
        let mut request = modern(1, "tools/call", json!({ "name": "ask_name" }), json!({ "elicitation": {} }));
        request["params"].as_object_mut().expect("params").extend(more.as_object().expect("object").clone());
        request
    };
    let asked = request_over_stdio(&instance(), &ask_name(json!({}))).await["result"].take();
    assert_eq!(asked["resultType"], "input_required");
    let answers = json!({ "name": { "action": "accept", "content": { "name": "Ada" } } });
    let again = ask_name(json!({ "requestState": asked["requestState"], "inputResponses": answers }));
    assert_eq!(text_of(&request_over_stdio(&instance(), &again).await), "Accept Ada");
}

// === the order of checks ===

#[tokio::test]
async fn m80_who_asks_is_checked_before_what_is_asked() {
    let options = Options { auth: Auth::bearer(["secret"]), ..Options::default() };
    let port = fixture::listen(&fixture::server(), options).await;
    let reply = peer::http(port, "POST", "/mcp", &[peer::JSON], "not even JSON").await;
    assert_eq!((reply.status, &reply.json()["error"]["code"]), (401, &json!(-32001)));
}

#[tokio::test]
async fn m80_x17_tool_then_schema_then_trust_then_the_tools_own_checks() {
    let wiped = WipeCounter::default();
    let server = fixture::families(wiped.clone()).build().expect("valid");
    let untrusted = TrustLevel::Untrusted;

    let unknown = TestTransport::Stdio.request(&server, untrusted, &call(1, "no_such_tool", json!({}))).await;
    assert_eq!(unknown["error"]["data"]["error_type"], "ToolNotFoundError");
    let schema = TestTransport::Stdio.request(&server, untrusted, &call(1, "knowledge-remove", json!({}))).await;
    assert_eq!(json_of(&schema)["error"], "missing_required_parameter");
    let trust = TestTransport::Stdio
        .request(&server, untrusted, &call(1, "knowledge-clear", json!({ "confirm": false })))
        .await;
    assert_eq!(trust["error"]["code"], -32010);
    let own = TestTransport::Stdio.request(&server, TrustLevel::Trusted, &call(1, "knowledge-clear", json!({}))).await;
    assert_eq!(json_of(&own)["error"], "confirmation_required");
    assert_eq!(wiped.count(), 0);
}

#[tokio::test]
async fn m80_m104_a_params_object_of_the_wrong_shape_is_refused_before_the_tool_is_looked_for() {
    for params in [json!({}), json!({ "name": 7 }), json!({ "name": null, "arguments": {} })] {
        let answer = request_over_stdio(&fixture::server(), &request(1, "tools/call", params.clone())).await;
        assert_eq!(answer["error"]["data"]["error_type"], "ValidationError", "{params}");
    }
}

// === arguments ===

fn picky() -> Server {
    let schema = json!({
        "type": "object",
        "properties": {
            "count": { "type": "integer", "minimum": 1, "maximum": 9 },
            "unit": { "enum": ["m", "kg"] },
            "name": { "type": "string", "minLength": 2, "maxLength": 3 },
            "flag": { "type": "boolean" },
            "tags": { "type": "array", "items": { "type": "string" }, "maxItems": 1 },
        },
        "required": ["count"],
    });
    let ran = Tool::builder("picky").input_schema(schema).run(async |_, _| "ran");
    Server::builder("s", "1").tool(ran).build().expect("valid")
}

#[tokio::test]
async fn m81_m83_m103_arguments_are_checked_before_the_tool_runs_and_never_bent() {
    for (arguments, keyword) in [
        (json!({}), "required"),
        (json!({ "count": "5" }), "type"),
        (json!({ "count": 5.5 }), "type"),
        (json!({ "count": true }), "type"),
        (json!({ "count": null }), "type"),
        (json!({ "count": 0 }), "minimum"),
        (json!({ "count": 10 }), "maximum"),
        (json!({ "count": 5, "unit": "mile" }), "enum"),
        (json!({ "count": 5, "name": "a" }), "minLength"),
        (json!({ "count": 5, "name": "abcd" }), "maxLength"),
        (json!({ "count": 5, "name": 7 }), "type"),
        (json!({ "count": 5, "flag": "true" }), "type"),
        (json!({ "count": 5, "tags": ["a", "b"] }), "maxItems"),
        (json!({ "count": 5, "tags": [1] }), "type"),
    ] {
        let answer = request_over_stdio(&picky(), &call(1, "picky", arguments.clone())).await;
        let error = json_of(&answer)["error"].take();
        let found = &error["details"]["violations"][0]["keyword"];
        assert_eq!((&error["type"], found), (&json!("SchemaError"), &json!(keyword)), "{arguments}");
    }
    let fits = json!({ "count": 9, "unit": "kg", "name": "äöü", "flag": false, "tags": ["a"] });
    assert_eq!(text_of(&request_over_stdio(&picky(), &call(1, "picky", fits)).await), "ran");
}

#[tokio::test]
async fn m104_arguments_that_are_no_object_are_a_validation_error() {
    for arguments in [json!([]), json!("text"), json!(7), json!(true)] {
        let error = &request_over_stdio(&picky(), &call(1, "picky", arguments.clone())).await["error"];
        let told = (&error["code"], &error["data"]["error_type"]);
        assert_eq!(told, (&json!(-32602), &json!("ValidationError")), "{arguments}");
    }
}

#[tokio::test]
async fn m104_a_call_without_a_name_or_with_another_type_of_name_is_a_validation_error() {
    for params in [json!({ "arguments": {} }), json!({ "name": 7 }), json!({ "name": null }), json!({}), json!(null)] {
        let mut request = request(1, "tools/call", params.clone());
        if params.is_null() {
            request.as_object_mut().expect("an object").remove("params");
        }
        let error = &request_over_stdio(&picky(), &request).await["error"];
        let told = (&error["code"], &error["data"]["error_type"]);
        assert_eq!(told, (&json!(-32602), &json!("ValidationError")), "{params}");
    }
}

// === error dialects of tool families ===

#[tokio::test]
async fn e16_x07_m82_m89_the_same_mistake_is_told_in_the_words_of_each_family() {
    let server = families();
    let told = async |tool: &str| {
        let answer = request_over_stdio(&server, &call(1, tool, json!({}))).await;
        assert_eq!(answer["result"]["isError"], true, "{tool}");
        json_of(&answer)
    };
    let error = told("classify_text").await;
    assert!(error.as_object().is_some_and(|all| all.len() == 1) && error["error"].is_string(), "{error}");
    let error = told("knowledge-search").await;
    let expected = json!({ "success": false, "error": "missing_required_parameter", "message": "`query` is missing" });
    assert_eq!(error, expected);
    let error = told("echo").await["error"].take();
    assert_eq!(error["type"], "SchemaError");
    assert!(error["message"].is_string() && error["details"].is_object(), "{error}");
}

/// HTTP status and body of a failing call to `classify_text`.
async fn classify(path: &str, body: Value) -> (u16, Value) {
    let port = fixture::listen(&families(), Options::default()).await;
    let reply = peer::http(port, "POST", path, &[peer::JSON], &body.to_string()).await;
    (reply.status, reply.json())
}

#[tokio::test]
async fn e16_x04_m89_the_style_of_the_request_decides_whether_a_classification_error_is_one() {
    for text in [json!("fail"), json!(7), Value::Null] {
        let params = json!({ "name": "classify_text", "arguments": { "text": text } });
        let (rest_status, rest) = classify("/mcp/tools/call", params.clone()).await;
        let bare = json!({ "id": 1, "method": "tools/call", "params": params });
        let (bare_status, bare) = classify("/mcp", bare).await;
        let (status, standard) = classify("/mcp", request(1, "tools/call", params.clone())).await;

        assert_eq!((rest_status, bare_status, status), (200, 200, 200));
        assert_eq!((&rest["isError"], &bare["result"]["isError"]), (&json!(false), &json!(false)), "{params}");
        assert_eq!(standard["result"]["isError"], true, "{params}");
        let said = rest["content"][0]["text"].as_str().expect("text");
        let error: Value = serde_json::from_str(said).expect("JSON");
        assert!(error["error"].is_string() && error.get("class").is_none(), "{error}");
        for other in [&bare, &standard] {
            assert_eq!(text_of(other), said, "the same text in every style");
        }
    }
}

#[tokio::test]
async fn e16_x04_an_unexpected_fault_of_a_classifier_is_an_internal_error_on_json_rpc() {
    let server = families();
    let panics = call(1, "classify_text", json!({ "text": "panic" }));
    for way in [TestTransport::Stdio, TestTransport::Http, TestTransport::WebSocket] {
        let answer = way.request(&server, TrustLevel::Trusted, &panics).await;
        assert_eq!(answer["error"]["code"], -32603, "{way:?}");
    }
    let rest = TestTransport::Rest.request(&server, TrustLevel::Trusted, &panics).await;
    assert_eq!((&rest["status"], &rest["result"]["isError"]), (&json!(200), &json!(false)));
}

#[tokio::test]
async fn e16_x05_a_knowledge_failure_is_always_a_result_object() {
    let server = families();
    for (arguments, error) in [
        (json!({}), "missing_required_parameter"),
        (json!({ "file_path": 7 }), "invalid_parameter"),
        (json!({ "file_path": "x".repeat(41) }), "invalid_parameter"),
        (json!({ "file_path": "doc.xyz" }), "unsupported_format"),
        (json!({ "file_path": "panic" }), "processing_error"),
    ] {
        for way in TestTransport::ALL {
            let answer = way.request(&server, TrustLevel::Trusted, &call(1, "knowledge-add", arguments.clone())).await;
            assert_eq!(answer["result"]["isError"], true, "{arguments} over {way:?}");
            let told = json_of(&answer);
            assert_eq!((&told["success"], &told["error"]), (&json!(false), &json!(error)), "{way:?}");
            assert!(told["message"].is_string());
        }
    }
}

#[tokio::test]
async fn x05_m82_arguments_the_handler_cannot_read_are_told_in_the_words_of_the_family_too() {
    #[derive(serde::Deserialize)]
    struct Small {
        #[expect(dead_code, reason = "read by serde alone")]
        size: u8,
    }
    let dialect = |failure: &corbie_mcp::FailedCall<'_>, _| {
        let text = format!("{} failed", failure.tool);
        Ok(corbie_mcp::CallResult { is_error: true, ..corbie_mcp::CallResult::text(text) })
    };
    let schema = json!({ "type": "object", "properties": { "size": { "type": "integer" } }, "required": ["size"] });
    let tool = Tool::builder("fill")
        .dialect(dialect)
        .input_schema(schema)
        .run(async |_, arguments: Arguments| -> Result<(), ToolError> { arguments.parse::<Small>().map(drop) });
    let server = Server::builder("s", "1").tool(tool).build().expect("valid");
    let answer = request_over_stdio(&server, &call(1, "fill", json!({ "size": 300 }))).await;
    assert_eq!(answer["result"]["content"][0]["text"], "fill failed", "{answer}");
}

#[tokio::test]
async fn x06_m102_an_unknown_tool_is_named_with_a_near_match_and_where_to_look() {
    let server = families();
    for way in TestTransport::ALL {
        let answer = way.request(&server, TrustLevel::Trusted, &call(1, "clasify_text", json!({}))).await;
        let error = &answer["error"];
        assert_eq!(error["code"], -32602, "{way:?}");
        assert_eq!(error["data"]["error_type"], "ToolNotFoundError", "{way:?}");
        let message = error["message"].as_str().expect("a message");
        for word in ["clasify_text", "classify_text", "tools/list"] {
            assert!(message.contains(word), "{word} is not in {message}");
        }
        assert_eq!(answer["status"] == 404, way == TestTransport::Rest, "{way:?}");
    }
}

#[tokio::test]
async fn x39_listing_and_classifying_are_two_plain_calls() {
    let mut peer = Stdio::start(&families(), TrustLevel::Untrusted);
    let listed = peer.call(&call(1, "list_categories", json!({}))).await;
    assert_eq!(json_of(&listed), json!({ "categories": ["math"] }));
    let classified = peer.call(&call(2, "classify_text", json!({ "text": "1 + 1" }))).await;
    assert_eq!(json_of(&classified), json!({ "class": 0 }));
}

// === timeouts, panics, values without a JSON form ===

#[test]
fn m84_m106_a_tool_has_thirty_seconds_unless_said_otherwise() {
    assert_eq!(Limits::default().tool_timeout, Duration::from_secs(30));
}

#[tokio::test]
async fn m84_m106_a_tool_out_of_time_is_stopped_whoever_set_the_limit() {
    let moment = Duration::from_millis(20);
    let patient = |gate: &Gate| gate.tool_within(Duration::from_secs(600));
    let stuck = || Tool::builder("gate").no_input().run(async |_, _| std::future::pending::<()>().await);
    let per_tool = Limits { tool_timeouts: [("gate".to_owned(), moment)].into(), ..Limits::default() };
    let gate = Gate::new();
    for (tool, limits) in [
        (gate.tool_within(moment), Limits::default()),
        (stuck(), Limits { tool_timeout: moment, ..Limits::default() }),
        (patient(&gate), per_tool),
    ] {
        let server = Server::builder("s", "1").limits(limits).tool(tool).build().expect("valid");
        let error = request_over_stdio(&server, &call(1, "gate", json!({}))).await["error"].take();
        assert_eq!((&error["code"], &error["data"]["error_type"]), (&json!(-32007), &json!("TimeoutError")));
    }
    gate.abandoned().await;
    gate.abandoned().await;
}

#[tokio::test]
async fn m86_a_panic_fails_its_call_alone() {
    let mut peer = Stdio::start(&fixture::server(), TrustLevel::Trusted);
    let answer = peer.call(&call(1, "panic", json!({}))).await;
    assert_eq!(
        (&answer["result"]["isError"], &json_of(&answer)["error"]["type"]),
        (&json!(true), &json!("InternalError"))
    );
    assert!(!answer.to_string().contains("secret"), "{answer}");
    assert_eq!(text_of(&peer.call(&call(2, "echo", json!({ "text": "still here" }))).await), "still here");
}

#[tokio::test]
async fn m87_m105_e14_a_result_that_json_cannot_say_is_an_error_not_silence() {
    for way in TestTransport::ALL {
        let error =
            way.request(&fixture::server(), TrustLevel::Trusted, &call(1, "nan", json!({}))).await["error"].take();
        let told = (&error["code"], &error["data"]["error_type"]);
        assert_eq!(told, (&json!(-32013), &json!("SerializationError")), "{way:?}");
    }
}

#[tokio::test]
async fn m89_is_error_tells_whether_the_tool_failed() {
    let says_so = Tool::builder("says_so").no_input().run(async |_, _| corbie_mcp::CallResult::error("no"));
    let server = fixture::builder(WipeCounter::default()).tool(says_so).build().expect("valid");
    for (tool, failed) in [("remember", false), ("fail", true), ("panic", true), ("says_so", true)] {
        assert_eq!(request_over_stdio(&server, &call(1, tool, json!({}))).await["result"]["isError"], failed, "{tool}");
    }
}

// === error codes ===

/// A server whose method `raise` and tool `raise` fail with this code.
fn raising(code: ErrorCode) -> Server {
    let error = move || Error::Other { code, message: "it broke; mend it".into(), error_type: "Broken", data: None };
    let tool = Tool::builder("raise").no_input().run(move |_, _| std::future::ready(Err::<(), _>(error())));
    let builder = Server::builder("s", "1").method("raise", move |_, _| std::future::ready(Err(error())));
    builder.tool(tool).build().expect("valid")
}

#[tokio::test]
async fn e06_e07_e08_e09_e10_e11_e12_e13_e14_x21_each_condition_has_its_number_in_each_era() {
    for (code, legacy, modern_number, rest_status) in [
        (ErrorCode::Application, -32000, -31000, 500),
        (ErrorCode::Authentication, -32001, -31001, 401),
        (ErrorCode::RateLimited, -32002, -31002, 429),
        (ErrorCode::ModelNotFound, -32003, -31003, 404),
        (ErrorCode::ProviderUnavailable, -32004, -31004, 503),
        (ErrorCode::Configuration, -32005, -31005, 503),
        (ErrorCode::Network, -32006, -31006, 502),
        (ErrorCode::Timeout, -32007, -31007, 504),
        (ErrorCode::TrustDenied, -32010, -31010, 403),
        (ErrorCode::ShuttingDown, -32012, -31012, 503),
        (ErrorCode::Serialization, -32013, -31013, 500),
    ] {
        let server = raising(code);
        for request in [request(1, "raise", json!({})), call(1, "raise", json!({}))] {
            let error = request_over_stdio(&server, &request).await["error"].take();
            let expected =
                json!({ "code": legacy, "message": "it broke; mend it", "data": { "error_type": "Broken" } });
            assert_eq!(error, expected, "{code:?}");
            let rest = TestTransport::Rest.request(&server, TrustLevel::Trusted, &request).await;
            assert_eq!((&rest["status"], &rest["error"]), (&json!(rest_status), &expected), "{code:?}");
        }
        let error = request_over_stdio(&server, &modern(1, "raise", json!({}), json!({}))).await["error"].take();
        assert_eq!((&error["code"], &error["data"]["legacyCode"]), (&json!(modern_number), &json!(legacy)), "{code:?}");
    }
}

#[tokio::test]
async fn e06_a_generic_error_carries_its_type_and_details() {
    let fails = async |_, _| {
        let data = Some(Box::new(serde_json::Map::from_iter([("details".to_owned(), json!({ "step": 3 }))])));
        Err(Error::Other { code: ErrorCode::Application, message: "no".into(), error_type: "OutOfInk", data })
    };
    let server = Server::builder("s", "1").method("print", fails).build().expect("valid");
    let error = request_over_stdio(&server, &request(1, "print", json!({}))).await["error"].take();
    assert_eq!(error["data"], json!({ "error_type": "OutOfInk", "details": { "step": 3 } }));
}

#[tokio::test]
async fn e08_too_many_requests_at_once_are_refused_not_queued() {
    let gate = Gate::new();
    let limits = Limits { max_in_flight: 1, ..fixture::quick_limits() };
    let server = fixture::builder(WipeCounter::default()).tool(gate.tool()).limits(limits).build().expect("valid");
    let mut peer = Stdio::start(&server, TrustLevel::Trusted);
    peer.send(&call(1, "gate", json!({})).to_string()).await;
    gate.entered().await;
    let refused = peer.call(&call(2, "gate", json!({}))).await;
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(2), &json!(-32002)));
    gate.open();
    assert_eq!(peer.receive().await["id"], 1);
}

#[tokio::test]
async fn m101_e12_a_broken_link_is_a_transport_error() {
    let fails = async |_, _| Err(Error::Transport("upstream.example refused the connection".into()));
    let server = Server::builder("s", "1").method("relay", fails).build().expect("valid");
    let error = request_over_stdio(&server, &request(1, "relay", json!({}))).await["error"].take();
    assert_eq!((&error["code"], &error["data"]["error_type"]), (&json!(-32006), &json!("TransportError")));
}

#[tokio::test]
async fn x21_an_unknown_resource_is_named_in_the_data() {
    for request in [
        request(1, "resources/read", json!({ "uri": "no://where" })),
        modern(1, "resources/read", json!({ "uri": "no://where" }), json!({})),
    ] {
        let error = request_over_stdio(&fixture::server(), &request).await["error"].take();
        assert_eq!(error["code"], -32602);
        assert_eq!(error["data"], json!({ "error_type": "ResourceNotFound", "uri": "no://where" }));
    }
}

#[tokio::test]
async fn x21_a_modern_peer_finds_the_old_number_beside_the_new() {
    let refused = TestTransport::Stdio
        .request(
            &fixture::server(),
            TrustLevel::Untrusted,
            &modern(1, "tools/call", json!({ "name": "wipe" }), json!({})),
        )
        .await;
    assert_eq!(refused["error"]["code"], -31010);
    assert_eq!(refused["error"]["data"]["legacyCode"], -32010);
}

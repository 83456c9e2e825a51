//! Tool registration: declared, derived and discovered tools; uniqueness, order and schemas.

mod fixture;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use corbie_mcp::transport::stdio;
use corbie_mcp::{
    Arguments, Effect, Json, Module, RegistrationError, RegistrationOutcome, Server, Tool, ToolError, TrustLevel,
    mcp_tool,
};
use fixture::WipeCounter;
use fixture::peer::{Stdio, call, initialize, json_of, request, request_over_stdio, text_of};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

fn tool(name: &str, property: &str) -> Result<Tool, RegistrationError> {
    let schema = json!({ "type": "object", "properties": { property: { "type": "string" } } });
    Tool::builder(name).description("A tool").module("birds").input_schema(schema).run(async |_, _| "done")
}

fn server_of(tools: impl IntoIterator<Item = Result<Tool, RegistrationError>>) -> Result<Server, RegistrationError> {
    tools.into_iter().fold(Server::builder("s", "1").builtins(), |builder, tool| builder.tool(tool)).build()
}

fn names(server: &Server) -> Vec<String> {
    server.registry().iter().map(|tool| tool.name().to_owned()).filter(|name| !name.contains("_tool")).collect()
}

async fn listed(server: &Server) -> Vec<Value> {
    let answer = request_over_stdio(server, &request(1, "tools/list", json!({}))).await;
    answer["result"]["tools"].as_array().expect("tools").clone()
}

// === one tool ===

#[tokio::test]
async fn m60_m61_m70_a_tool_is_listed_with_schema_metadata_and_hints() {
    let tool = Tool::builder("drop")
        .description("Drop it")
        .module("birds::nest")
        .effect(Effect::Destroys)
        .deprecated_in("2.0")
        .cache_ttl(Duration::from_secs(60))
        .input_schema(json!({ "type": "object", "properties": { "it": { "type": "string" } }, "required": ["it"] }))
        .run(async |_, _| ());
    let listed = listed(&server_of([tool]).expect("valid")).await;
    assert_eq!(
        listed.last().expect("listed"),
        &json!({
            "name": "drop",
            "description": "Drop it",
            "inputSchema": { "type": "object", "properties": { "it": { "type": "string" } }, "required": ["it"] },
            "annotations": { "readOnlyHint": false, "destructiveHint": true, "idempotentHint": false },
            "metadata": { "module": "birds::nest", "destructive": true, "deprecated_in": "2.0", "cache_ttl": 60 },
        })
    );
}

#[tokio::test]
async fn m61_metadata_has_its_defaults() {
    let listed = listed(&server_of([tool("plain", "a")]).expect("valid")).await;
    let expected = json!({ "module": "birds", "destructive": false, "deprecated_in": null, "cache_ttl": 300 });
    assert_eq!(listed.last().expect("listed")["metadata"], expected);
}

#[tokio::test]
async fn m60_m70_every_listed_tool_is_whole_and_its_hints_agree_with_its_metadata() {
    for tool in listed(&fixture::families(WipeCounter::default()).build().expect("valid")).await {
        assert!(tool["description"].is_string() && tool["inputSchema"]["properties"].is_object(), "{tool}");
        assert_eq!(tool["inputSchema"]["type"], "object", "{tool}");
        let (hints, metadata) = (&tool["annotations"], &tool["metadata"]);
        assert!(
            ["module", "destructive", "deprecated_in", "cache_ttl"].iter().all(|name| metadata.get(name).is_some())
        );
        assert_eq!(hints["destructiveHint"], metadata["destructive"], "{tool}");
        let (reads, destroys) = (hints["readOnlyHint"] == true, hints["destructiveHint"] == true);
        assert!(!(reads && destroys) && hints["idempotentHint"].is_boolean(), "{tool}");
    }
}

mod memory {
    use super::*;

    #[derive(Debug, Deserialize, JsonSchema)]
    pub(super) struct Put {
        /// Under which name
        pub(super) key: String,
        pub(super) times: Option<u8>,
    }

    /// Keep something.
    #[mcp_tool]
    pub(super) fn put(
        /// Under which name
        key: String,
        times: Option<u8>,
    ) -> String {
        format!("{key} {times:?}")
    }

    /// Keep something under another name.
    #[mcp_tool(name = "remember-me")]
    pub(super) fn keep() -> &'static str {
        "kept"
    }
}

#[test]
fn m62_names_are_module_and_function_unless_given() {
    assert_eq!(memory::put_tool().expect("valid").name(), "memory_put");
    assert_eq!(memory::keep_tool().expect("valid").name(), "remember-me");
}

#[tokio::test]
async fn m66_a_macro_a_type_and_a_written_schema_declare_the_same() {
    let typed = Tool::builder("typed").input::<memory::Put>().run(
        async |_, arguments: Arguments| -> Result<String, ToolError> {
            let memory::Put { key, times } = arguments.parse()?;
            Ok(format!("{key} {times:?}"))
        },
    );
    let written = json!({
        "type": "object",
        "properties": {
            "key": { "type": "string", "description": "Under which name" },
            "times": { "type": "integer", "minimum": 0, "maximum": 255 },
        },
        "required": ["key"],
    });
    let by_hand = Tool::builder("by_hand").input_schema(written.clone()).run(async |_, _| "a Some(2)");
    let server = server_of([memory::put_tool(), typed, by_hand]).expect("valid");
    for name in ["memory_put", "typed", "by_hand"] {
        assert_eq!(server.registry().get_tool_schema(name).expect("known"), written, "{name}");
        let answer = request_over_stdio(&server, &call(1, name, json!({ "key": "a", "times": 2 }))).await;
        assert_eq!(text_of(&answer), "a Some(2)", "{name}");
    }
}

// === rejected registrations ===

#[test]
fn m63_m107_v09_a_tool_without_a_schema_is_refused() {
    let bare = || Tool::builder("bare").run(async |_, _| ());
    assert_eq!(server_of([bare()]).expect_err("refused"), RegistrationError::NoSchema("bare".into()));
}

#[tokio::test]
async fn m63_x33_a_tool_that_takes_nothing_says_so() {
    let tool = Tool::builder("nothing").no_input().run(async |_, _| "ok");
    let server = server_of([tool]).expect("valid");
    assert_eq!(
        server.registry().get_tool_schema("nothing").expect("known"),
        json!({ "type": "object", "properties": {} })
    );
    assert_eq!(text_of(&request_over_stdio(&server, &call(1, "nothing", json!({}))).await), "ok");
}

#[test]
fn m64_x35_v09_the_same_tool_again_changes_nothing() {
    let server = server_of([tool("crow", "a"), tool("crow", "a")]).expect("the same twice is once");
    assert_eq!(server.register(tool("crow", "a").expect("valid")), Ok(RegistrationOutcome::Unchanged));
    assert_eq!(names(&server).iter().filter(|name| *name == "crow").count(), 1);
}

#[test]
fn m64_m107_x35_v09_another_schema_under_the_same_name_is_refused_and_the_first_stays() {
    let conflict = RegistrationError::Conflict { name: "crow".into() };
    assert_eq!(server_of([tool("crow", "a"), tool("crow", "b")]).expect_err("refused"), conflict);

    let server = server_of([tool("crow", "a")]).expect("valid");
    assert_eq!(server.register(tool("crow", "b").expect("valid")), Err(conflict.clone()));
    assert!(server.registry().get_tool_schema("crow").expect("still there")["properties"]["a"].is_object());
    assert_eq!(corbie_mcp::Error::from(conflict).error_type(), "RegistrationError");
}

#[test]
fn m65_m107_a_schema_that_is_none_is_refused() {
    for bad in [
        json!(true),
        json!([]),
        json!({}),
        json!({ "type": "array" }),
        json!({ "type": ["object", "null"] }),
        json!({ "type": "object", "properties": [] }),
        json!({ "type": "object", "properties": { "a": { "type": "text" } } }),
        json!({ "type": "object", "properties": { "a": { "minimum": "1" } } }),
        json!({ "type": "object", "required": "a" }),
        json!({ "type": "object", "properties": { "a": { "pattern": "(" } } }),
        json!({ "type": "object", "properties": { "a": { "$ref": "#/$defs/missing" } } }),
    ] {
        let refused = Tool::builder("bad").input_schema(bad.clone()).run(async |_, _| ());
        assert!(matches!(refused, Err(RegistrationError::InvalidSchema { which: "input", .. })), "{bad}");
    }
}

// === listing tools ===

#[tokio::test]
async fn m67_tools_and_schemas_can_be_asked_for_in_the_library_and_over_the_wire() {
    let server = fixture::server();
    let told = json_of(&request_over_stdio(&server, &call(1, "list_registered_tools", json!({}))).await);
    assert_eq!(told["tools"], json!(server.registry().list_registered_tools()));
    assert_eq!(told["count"], server.registry().len());

    let told = json_of(&request_over_stdio(&server, &call(1, "get_tool_schema", json!({ "name": "add" }))).await);
    assert_eq!(told["inputSchema"], server.registry().get_tool_schema("add").expect("known"));
    for tool in listed(&server).await.iter().take(2) {
        assert_eq!(tool["annotations"]["readOnlyHint"], true, "{tool}");
    }
}

#[tokio::test]
async fn m67_m102_the_schema_of_an_unknown_tool_is_a_tool_not_found_error() {
    let server = fixture::server();
    let error = server.registry().get_tool_schema("subtract").expect_err("unknown");
    assert_eq!(error.error_type(), "ToolNotFoundError");
    let answer = request_over_stdio(&server, &call(1, "get_tool_schema", json!({ "name": "subtract" }))).await;
    assert_eq!(answer["result"]["isError"], true);
    assert_eq!(json_of(&answer)["error"]["type"], "ToolNotFoundError");
}

#[tokio::test]
async fn m69_a_server_can_be_inspected() {
    let told = json_of(&request_over_stdio(&fixture::server(), &call(1, "inspect_server", json!({}))).await);
    for (member, value) in [
        ("name", json!("fixture")),
        ("version", json!("1.2.3")),
        ("protocol_version", json!("2025-06-18")),
        ("trust", json!("TRUSTED")),
        ("tools_count", json!(fixture::server().registry().len())),
        ("resources_count", json!(2)),
        ("prompts_count", json!(1)),
    ] {
        assert_eq!(told[member], value, "{member}");
    }
    assert!(told["uptime_seconds"].as_f64().is_some_and(|seconds| seconds >= 0.0));
    assert!(!told["capabilities"].is_null());
}

#[tokio::test]
async fn m72_the_order_is_that_of_registration_in_every_list() {
    let server = server_of(["z", "a", "m"].map(|name| tool(name, "a"))).expect("valid");
    let order = |tools: Vec<Value>| tools.iter().map(|tool| tool["name"].to_string()).collect::<Vec<_>>().join(" ");
    let first = order(listed(&server).await);
    assert!(first.ends_with(r#""z" "a" "m""#), "{first}");
    assert_eq!(order(listed(&server).await), first);
    server.unregister("a");
    server.register(tool("a", "a").expect("valid")).expect("added");
    assert!(order(listed(&server).await).ends_with(r#""z" "m" "a""#));
}

#[tokio::test]
async fn x15_names_are_listed_as_given_and_called_with_either_separator() {
    let server = server_of(["classify_text", "knowledge-add"].map(|name| tool(name, "a"))).expect("valid");
    for (typed, answered) in
        [("classify_text", true), ("classify-text", true), ("knowledge_add", true), ("knowledge.add", false)]
    {
        let answer = request_over_stdio(&server, &call(1, typed, json!({}))).await;
        assert_eq!(answer["result"].is_object(), answered, "{typed}");
    }
    let listed = listed(&server).await;
    assert!(listed.iter().all(|tool| tool["name"] != "classify-text" && tool["name"] != "knowledge_add"));
    assert!(listed.iter().any(|tool| tool["name"] == "knowledge-add"));
}

// === discovery ===

/// A module whose tools change with every scan, and the number of scans.
fn flock(scans: &Arc<AtomicUsize>) -> Module {
    let scans = scans.clone();
    Module::new("flock", move || {
        let scan = scans.fetch_add(1, Ordering::SeqCst) + 1;
        (1..=scan).map(|number| tool(&format!("bird{number}"), "a")).collect()
    })
}

#[tokio::test]
async fn m68_a16_a_module_that_fails_or_panics_does_not_take_the_others() {
    let server = Server::builder("s", "1")
        .builtins()
        .module(Module::new("broken", || Err(RegistrationError::NoSchema("egg".into()))))
        .module(Module::new("panics", || panic!("the nest fell")))
        .module(Module::new("half", || Ok(vec![tool("sparrow", "a")?, tool("sparrow", "b")?])))
        .module(Module::new("sound", || Ok(vec![tool("robin", "a")?])))
        .build()
        .expect("the server stands all the same");
    let found: Vec<_> =
        server.discover(false).modules.into_iter().map(|m| (m.module, m.tools, m.error.is_some())).collect();
    let expected = [("broken", 0, true), ("panics", 0, true), ("half", 1, true), ("sound", 1, false)]
        .map(|(m, n, e)| (m.into(), n, e));
    assert_eq!(found, expected);
    for name in ["sparrow", "robin", "inspect_server"] {
        assert_eq!(request_over_stdio(&server, &call(1, name, json!({}))).await["result"]["isError"], false, "{name}");
    }
}

#[tokio::test]
async fn m68_a15_a_scan_is_kept_until_it_is_stale_or_forced() {
    let scans = Arc::new(AtomicUsize::new(0));
    let server = Server::builder("s", "1").builtins().module(flock(&scans)).build().expect("valid");
    server.discover(false);
    request_over_stdio(&server, &call(1, "list_registered_tools", json!({}))).await;
    assert_eq!(scans.load(Ordering::SeqCst), 1, "a fresh scan is used again");
    server.discover(true);
    assert_eq!(scans.load(Ordering::SeqCst), 2, "a forced scan is made");
    request_over_stdio(&server, &call(1, "list_registered_tools", json!({ "refresh": true }))).await;
    assert_eq!(scans.load(Ordering::SeqCst), 3, "an agent can force one too");
}

#[test]
fn m68_a_stale_scan_is_made_anew() {
    let scans = Arc::new(AtomicUsize::new(0));
    let module = flock(&scans);
    let server = Server::builder("s", "1").module(module).discovery_ttl(Duration::ZERO).build().expect("valid");
    server.discover(false);
    assert_eq!(scans.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn x36_a_reload_is_seen_at_once_and_told() {
    let server = Server::builder("s", "1").module(flock(&Arc::default())).build().expect("valid");
    let mut peer = Stdio::start(&server, TrustLevel::Trusted);
    peer.call(&initialize("2025-11-25", json!({}))).await;
    assert_eq!(names(&server), ["bird1"]);
    server.discover(true);
    assert_eq!(peer.receive().await["method"], "notifications/tools/list_changed");
    let listed = peer.call(&request(1, "tools/list", json!({}))).await;
    assert_eq!(listed["result"]["tools"][1]["name"], "bird2");
}

#[tokio::test]
async fn a05_everything_is_registered_before_the_first_request_is_read() {
    let (mut near, far) = tokio::io::duplex(4096);
    let waiting = request(1, "tools/list", json!({}));
    near.write_all(format!("{waiting}\n").as_bytes()).await.expect("room");
    let module = Module::new("late", || Ok(vec![tool("from_a_module", "a")?]));
    let server = Server::builder("s", "1").tool(tool("declared", "a")).module(module).build().expect("valid");
    let (reader, writer) = tokio::io::split(far);
    let serving = async { stdio::serve_streams(&server, reader, writer, TrustLevel::Trusted).await };
    let answered = async {
        near.shutdown().await.expect("open");
        let mut answer = String::new();
        near.read_to_string(&mut answer).await.expect("readable");
        answer
    };
    let (served, answer) = tokio::join!(serving, answered);
    served.expect("no error");
    assert!(answer.contains("declared") && answer.contains("from_a_module"), "{answer}");
}

#[test]
fn a05_a_server_with_a_mistake_in_it_never_comes_to_be() {
    let refused = Server::builder("s", "1").tool(tool("good", "a")).tool(tool("bad name", "a")).build();
    assert!(matches!(refused, Err(RegistrationError::InvalidName { .. })));
}

#[tokio::test]
async fn m66_a_typed_result_declares_its_output() {
    #[derive(serde::Serialize, JsonSchema)]
    struct Sum {
        sum: i64,
    }
    let tool = Tool::builder("sum").no_input().output::<Json<Sum>>().run(async |_, _| Json(Sum { sum: 3 }));
    let server = server_of([tool]).expect("valid");
    let listed = listed(&server).await;
    assert_eq!(listed.last().expect("listed")["outputSchema"]["properties"]["sum"]["type"], "integer");
    let answer = request_over_stdio(&server, &call(1, "sum", json!({}))).await;
    assert_eq!(answer["result"]["structuredContent"], json!({ "sum": 3 }));
}

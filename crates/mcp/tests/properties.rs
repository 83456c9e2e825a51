//! Property tests: IDs, frames, arguments, registrations, names, pages.

mod fixture;

use std::sync::LazyLock;

use corbie_mcp::message::{self, DecodeLimits, Id, Incoming, Message};
use corbie_mcp::{Era, Limits, Registry, Server, Tool, TrustLevel};
use fixture::WipeCounter;
use fixture::peer::{Stdio, call, request};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

const DECODE_LIMITS: DecodeLimits = DecodeLimits { bare_allowed: true, max_batch: 100, max_depth: 128 };

/// Runs an exchange to completion.
fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(work)
}

fn any_id() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from)
    ]
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    let name = prop_oneof![Just("a".to_owned()), Just("b".to_owned()), Just("text".to_owned()), ".{0,4}"];
    leaf.prop_recursive(4, 32, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((name.clone(), inner), 0..4)
                .prop_map(|members| Value::Object(Map::from_iter(members))),
        ]
    })
}

/// No regression files: a failing case belongs into a regular test.
fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

// === messages ===

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn m01_an_id_comes_back_as_it_went_with_its_type(id in any_id()) {
        let frame = json!({ "jsonrpc": "2.0", "id": id, "method": "ping" }).to_string();
        let Incoming::Single(Ok(Message::Request(request))) = message::decode(frame.as_bytes(), DECODE_LIMITS) else {
            panic!("not read as a request: {frame}");
        };
        let kind_is_kept = matches!((&request.id, &id), (Id::Integer(_), Value::Number(_)) | (Id::String(_), Value::String(_)));
        prop_assert!(kind_is_kept);
        let answer: Value = serde_json::from_slice(&message::encode_result(&request.id, &json!({})).expect("JSON")).expect("JSON");
        prop_assert_eq!(&answer["id"], &id);
        prop_assert_eq!(serde_json::from_value::<Id>(json!(request.id)).expect("an id"), request.id);
    }

    #[test]
    fn e01_any_bytes_are_read_or_refused_with_an_answer(bytes in any::<Vec<u8>>()) {
        answerable(&bytes)?;
    }

    #[test]
    fn e02_any_json_is_read_or_refused_with_an_answer(value in any_json()) {
        answerable(value.to_string().as_bytes())?;
    }

    #[test]
    fn e02_any_envelope_is_read_or_refused_with_an_answer(
        members in prop::collection::vec(
            (prop::sample::select(vec!["jsonrpc", "id", "method", "params", "result", "error"]), any_json()), 0..6),
    ) {
        let envelope = Value::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect());
        answerable(envelope.to_string().as_bytes())?;
        answerable(json!([envelope, 7]).to_string().as_bytes())?;
    }
}

/// Every rejection can be encoded as JSON, with a code and a message.
fn answerable(frame: &[u8]) -> Result<(), TestCaseError> {
    let read = match message::decode(frame, DECODE_LIMITS) {
        Incoming::Single(one) => vec![one],
        Incoming::Batch(all) => all,
    };
    prop_assert!(!read.is_empty());
    for rejection in read.into_iter().filter_map(Result::err) {
        let reply = message::encode_error(rejection.id.as_ref(), &rejection.error.to_object(Era::Legacy));
        let reply: Value = serde_json::from_slice(&reply).expect("JSON");
        prop_assert!([-32700, -32600, -32602].map(Value::from).contains(&reply["error"]["code"]), "{}", reply);
        prop_assert!(reply["error"]["message"].as_str().is_some_and(|text| !text.is_empty()));
    }
    Ok(())
}

// === calls ===

static FIXTURE: LazyLock<Server> = LazyLock::new(|| fixture::families(WipeCounter::default()).build().expect("valid"));

proptest! {
    #![proptest_config(cases(128))]

    #[test]
    fn m81_m86_any_arguments_are_answered_and_the_server_goes_on(arguments in any_json()) {
        block_on(async {
            let mut peer = Stdio::start(&FIXTURE, TrustLevel::Trusted);
            for tool in ["add", "echo", "classify_text", "knowledge-clear", "get_tool_schema", "ask_name"] {
                let answer = peer.call(&call(1, tool, arguments.clone())).await;
                assert_eq!(answer["id"], 1);
                assert_ne!(answer["result"].is_object(), answer["error"].is_object(), "{tool}: {answer}");
            }
            assert_eq!(peer.call(&request(2, "ping", json!({}))).await["result"], json!({}));
        });
    }

    #[test]
    fn m31_any_params_of_any_method_are_answered(params in any_json(), method in prop::sample::select(vec![
        "initialize", "tools/list", "tools/call", "tools/cancel", "resources/list", "resources/read", "prompts/list",
        "prompts/get", "completion/complete", "logging/setLevel", "resources/subscribe", "server/discover",
    ])) {
        block_on(async {
            let mut peer = Stdio::start(&FIXTURE, TrustLevel::Trusted);
            let answer = peer.call(&request(1, method, params)).await;
            assert_ne!(answer["result"].is_object(), answer["error"].is_object(), "{method}: {answer}");
        });
    }
}

// === registration ===

/// A tool whose schema depends on a number.
fn tool(name: &str, schema: u8) -> Tool {
    let property = format!("p{schema}");
    let schema = json!({ "type": "object", "properties": { property: { "type": "string" } } });
    Tool::builder(name).input_schema(schema).run(async |_, _| ()).expect("valid")
}

/// Registers tools in order; rejected ones are skipped.
fn register<'a>(start: Registry, tools: impl IntoIterator<Item = &'a (String, u8)>) -> Registry {
    tools.into_iter().fold(start, |registry, (name, schema)| match registry.with(tool(name, *schema)) {
        Ok((next, _)) => next,
        Err(_) => registry,
    })
}

/// Eight names in two groups of four that differ only in separators.
const NAME: &str = "a[_-][xy][_-]b";

fn normalize_separators(name: &str) -> String {
    name.replace('-', "_")
}

proptest! {
    #![proptest_config(cases(64))]

    #[test]
    fn m64_v09_registering_everything_twice_is_registering_it_once(
        tools in prop::collection::vec(("[a-c]{1,2}", 0u8..2), 0..8),
    ) {
        let once = register(Registry::default(), &tools);
        let twice = register(once.clone(), &tools);
        prop_assert_eq!(twice.list_registered_tools(), once.list_registered_tools());
        for (name, _) in &tools {
            let first = tools.iter().find(|(other, _)| other == name).expect("it is there");
            let schema = once.get_tool_schema(name).expect("registered");
            prop_assert!(schema["properties"].get(format!("p{}", first.1)).is_some(), "the first registration is kept");
        }
    }

    #[test]
    fn x15_a_name_is_found_exactly_when_one_tool_can_be_meant(
        names in prop::collection::hash_set(NAME, 0..6),
        typed in NAME,
        gone in NAME,
    ) {
        let tools: Vec<_> = names.iter().map(|name| (name.clone(), 0)).collect();
        for (registry, names) in [
            (register(Registry::default(), &tools), names.iter().collect::<Vec<_>>()),
            (register(Registry::default(), &tools).without(&gone), names.iter().filter(|name| **name != gone).collect()),
        ] {
            let alike: Vec<_> = names.iter().filter(|name| normalize_separators(name) == normalize_separators(&typed)).collect();
            let meant = match alike.as_slice() {
                _ if names.contains(&&typed) => Some(typed.as_str()),
                [only] => Some(only.as_str()),
                _ => None,
            };
            prop_assert_eq!(registry.find(&typed).ok().map(|tool| tool.name()), meant);
        }
    }

    #[test]
    fn m22_m72_pages_of_any_size_hold_each_tool_once_in_order(count in 0usize..12, page_size in 1usize..15) {
        let names: Vec<_> = (0..count).map(|number| format!("tool{number}")).collect();
        prop_assert_eq!(listed(&names, page_size), names);
    }
}

#[test]
fn m22_pages_without_room_come_to_an_end_too() {
    let names = ["one".to_owned(), "two".to_owned()];
    assert_eq!(listed(&names, 0), names);
}

/// The names on all pages, in order.
fn listed(names: &[String], page_size: usize) -> Vec<String> {
    let builder = Server::builder("s", "1").limits(Limits { page_size, ..Limits::default() });
    let server = names.iter().fold(builder, |builder, name| builder.tool(Ok(tool(name, 0)))).build().expect("valid");
    block_on(async {
        let mut peer = Stdio::start(&server, TrustLevel::Trusted);
        let (mut listed, mut params) = (Vec::new(), json!({}));
        for _ in 0..=names.len() {
            let mut answer = peer.call(&request(1, "tools/list", params)).await;
            let page = answer["result"]["tools"].as_array().expect("tools").iter();
            listed.extend(page.map(|tool| tool["name"].as_str().expect("a name").to_owned()));
            match answer["result"]["nextCursor"].take() {
                Value::Null => return listed,
                cursor => params = json!({ "cursor": cursor }),
            }
        }
        panic!("{} tools do not end on pages of {page_size}", names.len());
    })
}

//! `#[mcp_tool]` end to end: the listed tool and the call.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use corbie_mcp::transport::stdio;
use corbie_mcp::{
    CallResult, Context, Error, FailedCall, Json, RequestStyle, Server, TaskSupport, Tool, ToolError, TrustLevel,
    mcp_tool,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;

// === tools/list ===

mod weather {
    use super::*;

    #[derive(Debug, Serialize, JsonSchema)]
    pub(crate) struct Forecast {
        /// One line per day
        lines: Vec<String>,
    }

    /// The weather of
    /// the coming days.
    ///
    /// Looks at most two weeks ahead.
    #[mcp_tool(title = "Forecast")]
    pub(crate) async fn forecast(
        /// City name, as people
        /// there write it
        #[arg(length(min = 1, max = 80))]
        city: String,
        #[arg(default = 3, range(min = 1, max = 14))] days: u32,
        unit: Option<char>,
        #[arg(rename = "wind-speed", default)] wind_speed: bool,
        #[arg(default = "en")] mut language: String,
        #[arg(range(min = -90.0))] latitude: Option<f64>,
        #[arg(length(max = 2))] tags: Option<Vec<String>>,
    ) -> Json<Forecast> {
        language.push('!');
        let lines =
            (1..=days).map(|day| format!("{city} {day} {unit:?} {wind_speed} {language} {latitude:?} {tags:?}"));
        Json(Forecast { lines: lines.collect() })
    }
}

#[test]
fn m60_a_function_is_listed_with_everything_it_says() {
    let tool = weather::forecast_tool().expect("a valid tool");
    assert_eq!(
        tool.listing(),
        json!({
            "name": "weather_forecast",
            "title": "Forecast",
            "description": "The weather of the coming days.\n\nLooks at most two weeks ahead.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "city": {
                        "description": "City name, as people there write it",
                        "type": "string",
                        "minLength": 1,
                        "maxLength": 80,
                    },
                    "days": { "type": "integer", "minimum": 1, "maximum": 14, "default": 3 },
                    "unit": { "type": "string", "minLength": 1, "maxLength": 1 },
                    "wind-speed": { "type": "boolean", "default": false },
                    "language": { "type": "string", "default": "en" },
                    "latitude": { "type": "number", "minimum": -90.0 },
                    "tags": { "type": "array", "items": { "type": "string" }, "maxItems": 2 },
                },
                "required": ["city"],
            },
            "outputSchema": {
                "type": "object",
                "properties": {
                    "lines": { "description": "One line per day", "type": "array", "items": { "type": "string" } },
                },
                "required": ["lines"],
            },
            "annotations": { "readOnlyHint": true, "destructiveHint": false, "idempotentHint": true },
            "metadata": { "module": "macros::weather", "destructive": false, "deprecated_in": null, "cache_ttl": 300 },
        })
    );
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Unit {
    Celsius,
    Kelvin,
}

/// Measures.
#[mcp_tool]
fn measure(unit: Option<Unit>) -> String {
    format!("{unit:?}")
}

#[test]
fn an_optional_choice_lists_its_words_and_no_null() {
    let schema = measure_tool().expect("a valid tool").input_schema().json().clone();
    let unit = json!({ "type": "string", "enum": ["celsius", "kelvin"] });
    assert_eq!(schema, json!({ "type": "object", "properties": { "unit": unit } }));
}

/// Rings.
#[mcp_tool]
async fn ring() {}

#[test]
fn m62_at_the_crate_root_the_function_name_stands_alone() {
    assert_eq!(ring_tool().expect("a valid tool").name(), "ring");
}

#[test]
fn m63_a_function_without_parameters_takes_an_empty_object() {
    assert_eq!(
        *ring_tool().expect("a valid tool").input_schema().json(),
        json!({ "type": "object", "properties": {} })
    );
    assert!(ring_tool().expect("a valid tool").output_schema().is_none());
}

/// Not shown, since `description` is given.
#[mcp_tool(name = "bell.ring-twice", description = "Rings two times", module = "tower", cache_ttl = 60, timeout = 5,
           deprecated_in = "1.2", task = optional)]
fn ring_twice() -> &'static str {
    "dong dong"
}

#[test]
fn m61_m62_what_the_attribute_says_is_kept_as_given() {
    let tool = ring_twice_tool().expect("a valid tool");
    assert_eq!(tool.name(), "bell.ring-twice");
    assert_eq!(tool.description(), "Rings two times");
    let metadata = json!({ "module": "tower", "destructive": false, "deprecated_in": "1.2", "cache_ttl": 60 });
    assert_eq!(tool.listing()["metadata"], metadata);
    assert_eq!(tool.meta().timeout, Some(std::time::Duration::from_secs(5)));
    assert_eq!(tool.meta().tasks, TaskSupport::Optional);
}

mod effects {
    use super::*;

    /// Reads.
    #[mcp_tool(read_only)]
    fn look() {}
    /// Changes.
    #[mcp_tool(effect = changes, idempotent)]
    fn paint() {}
    /// Destroys.
    #[mcp_tool(effect = destroys)]
    fn burn() {}
    /// Destroys.
    #[mcp_tool(destructive)]
    fn smash() {}

    #[test]
    fn m70_annotations_and_metadata_follow_the_effect() {
        let hints = |tool: Result<Tool, _>| {
            let listing: Value = Tool::listing(&tool.expect("a valid tool"));
            let hint = |name: &str| listing["annotations"][name].as_bool().expect("a hint");
            assert_eq!(listing["metadata"]["destructive"], hint("destructiveHint"));
            (hint("readOnlyHint"), hint("destructiveHint"), hint("idempotentHint"))
        };
        assert_eq!(hints(look_tool()), (true, false, true));
        assert_eq!(hints(paint_tool()), (false, false, true));
        assert_eq!(hints(burn_tool()), (false, true, false));
        assert_eq!(hints(smash_tool()), (false, true, false));
    }
}

// === tools/call ===

#[tokio::test]
async fn arguments_arrive_and_the_absent_ones_take_their_defaults() {
    let tool = weather::forecast_tool().expect("a valid tool");
    let arguments = json!({ "city": "Oslo", "days": 1, "unit": "K", "wind-speed": true, "language": "no",
                            "latitude": 59.9, "tags": ["a"] });
    assert_eq!(lines(call(tool, arguments).await), ["Oslo 1 Some('K') true no! Some(59.9) Some([\"a\"])"]);

    let tool = weather::forecast_tool().expect("a valid tool");
    let defaults = lines(call(tool, json!({ "city": "Rome" })).await);
    assert_eq!(defaults.len(), 3);
    assert_eq!(defaults[0], "Rome 1 None false en! None None");
}

#[tokio::test]
async fn arguments_the_function_does_not_name_are_ignored() {
    let answer =
        call(weather::forecast_tool().expect("a valid tool"), json!({ "city": "Rome", "days": 1, "hours": 24 })).await;
    assert_eq!(lines(answer).len(), 1);
    assert_eq!(text(call(ring_twice_tool().expect("a valid tool"), json!({ "loudly": true })).await), "dong dong");
}

#[tokio::test]
async fn m71_a_deprecated_tool_works_and_says_so() {
    let answer = call(ring_twice_tool().expect("a valid tool"), json!({})).await;
    assert!(answer["_meta"].to_string().contains("1.2"), "{answer}");
    assert_eq!(text(answer), "dong dong");
}

#[derive(Debug, Default)]
struct Counter {
    total: AtomicU32,
}

impl Counter {
    /// Adds to the total.
    #[mcp_tool(effect = changes)]
    async fn add(&self, amount: u32) -> Result<String, ToolError> {
        match amount {
            0 => Err(ToolError::new("NothingToAdd", "give an amount above 0")),
            _ => Ok(format!("{}", self.total.fetch_add(amount, Ordering::SeqCst) + amount)),
        }
    }

    /// Tells the total, from a thread that may block.
    #[mcp_tool(blocking)]
    pub(crate) fn total(&self, context: &Context) -> String {
        format!("{} for {}", self.total.load(Ordering::SeqCst), context.caller().identity)
    }
}

#[tokio::test]
async fn the_tools_of_a_struct_share_its_state() {
    let counter = Arc::new(Counter::default());
    assert_eq!(text(call(counter.add_tool().expect("a valid tool"), json!({ "amount": 2 })).await), "2");
    assert_eq!(text(call(counter.add_tool().expect("a valid tool"), json!({ "amount": 3 })).await), "5");
    assert_eq!(text(call(counter.total_tool().expect("a valid tool"), json!({})).await), "5 for stdio");
}

#[test]
fn m60_a_method_is_listed_like_a_function() {
    let tool = Arc::new(Counter::default()).add_tool().expect("a valid tool");
    assert_eq!(tool.name(), "add");
    let amount = json!({ "type": "integer", "minimum": 0 });
    let schema = json!({ "type": "object", "properties": { "amount": amount }, "required": ["amount"] });
    assert_eq!(*tool.input_schema().json(), schema);
}

#[tokio::test]
async fn a_failure_of_the_function_is_a_failure_of_the_call() {
    let answer = call(Arc::new(Counter::default()).add_tool().expect("a valid tool"), json!({ "amount": 0 })).await;
    assert_eq!(answer["isError"], true);
    assert!(text(answer).contains("give an amount above 0"));
}

fn blunt(_: &FailedCall<'_>, _: RequestStyle) -> Result<CallResult, Error> {
    Ok(CallResult::error("no"))
}

/// Fails, in few words.
#[mcp_tool(dialect = blunt)]
fn refuse() -> Result<(), ToolError> {
    Err(ToolError::new("Refused", "a long story"))
}

#[tokio::test]
async fn failures_are_put_in_the_dialect_of_the_tool() {
    assert_eq!(text(call(refuse_tool().expect("a valid tool"), json!({})).await), "no");
}

/// Sees the call it is part of.
#[mcp_tool]
async fn observe(before: u8, call: Context, after: u8) -> String {
    tokio::task::yield_now().await;
    format!("{before} {} {after}", call.caller().identity)
}

#[tokio::test]
async fn the_context_is_handed_over_and_not_a_property() {
    let tool = observe_tool().expect("a valid tool");
    let properties = tool.input_schema().json()["properties"].as_object().expect("an object");
    assert_eq!(properties.keys().collect::<Vec<_>>(), ["before", "after"]);
    assert_eq!(text(call(tool, json!({ "before": 1, "after": 2 })).await), "1 stdio 2");
}

/// The struct's own words are not the tool's.
#[derive(Debug, Deserialize, JsonSchema)]
struct Query {
    /// What to look for
    text: String,
    #[schemars(inner(length(min = 1)))]
    within: Option<Vec<String>>,
}

/// Finds things.
#[mcp_tool]
async fn find(context: &Context, #[args] query: Query) -> String {
    format!("{} {:?} {}", query.text, query.within, context.caller().trust)
}

#[tokio::test]
async fn one_struct_can_be_the_whole_input() {
    let tool = find_tool().expect("a valid tool");
    assert_eq!(
        *tool.input_schema().json(),
        json!({
            "type": "object",
            "properties": {
                "text": { "description": "What to look for", "type": "string" },
                "within": { "type": "array", "items": { "type": "string", "minLength": 1 } },
            },
            "required": ["text"],
        })
    );
    assert_eq!(text(call(tool, json!({ "text": "keys" })).await), "keys None trusted");
}

// === name collisions ===

mod crowded {
    #![allow(dead_code, non_camel_case_types)]
    use super::{call, json, text};
    use corbie_mcp::mcp_tool;

    enum Option {}
    enum Result {}
    enum String {}
    enum Arguments {}
    mod corbie_mcp_macros {}

    /// Takes parameters called like what the tool itself uses.
    #[mcp_tool]
    pub(crate) fn context(r#type: u8, arguments: u8, input: u8, tool: u8) -> ::std::string::String {
        format!("{} {arguments} {input} {tool}", r#type)
    }

    #[tokio::test]
    async fn the_users_own_names_are_left_alone() {
        let tool = context_tool().expect("a valid tool");
        assert_eq!(tool.name(), "crowded_context");
        assert_eq!(text(call(tool, json!({ "type": 1, "arguments": 2, "input": 3, "tool": 4 })).await), "1 2 3 4");
    }
}

/// The result of one `tools/call` by a fully trusted caller.
async fn call(tool: Tool, arguments: Value) -> Value {
    let params = json!({ "name": tool.name(), "arguments": arguments });
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let server = Server::builder("macros", "1.0.0").tool(Ok(tool)).build().expect("a server");
    let (writer, mut answers) = tokio::io::duplex(64 * 1024);
    let requests = format!("{request}\n");
    stdio::serve_streams(&server, requests.as_bytes(), writer, TrustLevel::Trusted).await.expect("served");
    let mut answer = Vec::new();
    answers.read_to_end(&mut answer).await.expect("an answer");
    let answer: Value = serde_json::from_slice(&answer).expect("JSON");
    assert!(answer["result"].is_object(), "no result in {answer}");
    answer["result"].clone()
}

fn text(answer: Value) -> String {
    answer["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text in {answer}")).to_owned()
}

fn lines(answer: Value) -> Vec<String> {
    let structured: Value = serde_json::from_str(&text(answer)).expect("JSON");
    serde_json::from_value(structured["lines"].clone()).expect("lines")
}

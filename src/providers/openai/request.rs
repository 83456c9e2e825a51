//! A chat, written as a request.

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderValue, Method, Uri};
use serde_json::{Map, Value, json};

use super::{effort, messages, parse, strict, turns};
use crate::providers::chat::{Format, Message, Protocol, Tool, ToolChoice};
use crate::providers::{Chat, Endpoint, Refuses, Request};

/// The body. A caller's own body of this protocol goes on as it came but for what has changed since it was read.
pub(super) fn body(chat: &Chat, refuses: Refuses) -> Map<String, Value> {
    let raw = chat.raw.as_ref().filter(|raw| raw.protocol == Protocol::OpenAi);
    let read = raw.and_then(|raw| Some((raw.body.clone(), parse::read(&raw.body).ok()?)));
    // Without a raw body, everything has changed from nothing.
    let (mut body, was) = read.unwrap_or_default();

    body.insert("model".into(), json!(chat.model));
    let came = body.get("messages").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    if let Some(messages) = changed_messages(&chat.messages, &was.messages, came) {
        body.insert("messages".into(), Value::Array(messages));
    }
    if chat.tools != was.tools {
        let tools = (!chat.tools.is_empty()).then(|| chat.tools.iter().map(tool).collect());
        put(&mut body, "tools", tools);
    }
    if chat.tool_choice != was.tool_choice {
        // A choice among no tools is refused.
        let choice = chat.tool_choice.as_ref().filter(|_| !chat.tools.is_empty());
        put(&mut body, "tool_choice", choice.map(tool_choice));
    }
    if chat.format != was.format {
        put(&mut body, "response_format", chat.format.as_ref().map(format));
    }
    put_max_tokens(&mut body, chat.max_tokens, was.max_tokens, refuses);
    if chat.temperature != was.temperature {
        put(&mut body, "temperature", chat.temperature.map(Value::from));
    }
    if chat.top_p != was.top_p {
        put(&mut body, "top_p", chat.top_p.map(Value::from));
    }
    if chat.seed != was.seed {
        put(&mut body, "seed", chat.seed.map(Value::from));
    }
    if chat.stop != was.stop {
        put(&mut body, "stop", (!chat.stop.is_empty()).then(|| json!(chat.stop)));
    }
    if chat.reasoning != was.reasoning || effort::is_refused(&body, refuses) {
        let word = chat.reasoning.and_then(|reasoning| effort::word(reasoning, refuses));
        put(&mut body, "reasoning_effort", word.map(Value::from));
    }
    put_stream(&mut body, chat.stream);
    if refuses.reasoning_with_tools && body.contains_key("tools") {
        // Some think unasked, and then refuse the tools.
        body.insert("reasoning_effort".into(), json!("none"));
    }
    leave_out_refused(&mut body, refuses);
    body
}

/// The request itself, to a path below the endpoint's.
pub(super) fn address(method: Method, endpoint: &Endpoint, path: &str, body: String) -> Request {
    let mut url = endpoint.base.clone();
    let path = format!("{}/{path}", url.path().trim_end_matches('/'));
    url.set_path(&path);

    let mut request = Request::new(Bytes::from(body));
    *request.method_mut() = method;
    // No address this adapter makes is refused; if one were, nothing would listen at the empty one.
    *request.uri_mut() = Uri::try_from(url.as_str()).unwrap_or_default();
    let headers = request.headers_mut();
    headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let key = endpoint.key.as_ref().map(|key| HeaderValue::try_from(format!("Bearer {}", key.expose())));
    if let Some(Ok(mut key)) = key {
        key.set_sensitive(true);
        headers.insert(AUTHORIZATION, key);
    }
    // The operator's go last, and instead of ours.
    for name in endpoint.headers.keys() {
        headers.remove(name);
    }
    headers.extend(endpoint.headers.iter().map(|(name, value)| (Some(name.clone()), value.clone())));
    request
}

/// The messages, if they are not those that came. Only changed turns are written anew: what came of the others may
/// say more than corbie understands.
fn changed_messages(turns: &[Message], were: &[Message], came: &[Value]) -> Option<Vec<Value>> {
    let front = turns.iter().zip(were).take_while(|(turn, was)| turn == was).count();
    if front == turns.len() && front == were.len() && !turns.is_empty() {
        return None;
    }
    let (turns, were_left) = (&turns[front..], &were[front..]);
    let back = turns.iter().rev().zip(were_left.iter().rev()).take_while(|(turn, was)| turn == was).count();

    let length = |turns: &[Message]| turns.iter().map(turns::length).sum::<usize>();
    let came_front = &came[..length(&were[..front])];
    let came_back = &came[came.len() - length(&were[were.len() - back..])..];
    // Some models refuse both words in one request.
    let system_role = if came.iter().any(|message| message["role"] == "developer") { "developer" } else { "system" };
    let anew = turns[..turns.len() - back].iter().flat_map(|turn| messages::write(turn, system_role));
    Some(came_front.iter().cloned().chain(anew).chain(came_back.iter().cloned()).collect())
}

fn put(body: &mut Map<String, Value>, name: &str, value: Option<Value>) {
    match value {
        Some(value) => body.insert(name.to_owned(), value),
        None => body.shift_remove(name),
    };
}

fn put_max_tokens(body: &mut Map<String, Value>, limit: Option<u32>, was: Option<u32>, refuses: Refuses) {
    let is_new = refuses.old_max_tokens || body.contains_key("max_completion_tokens");
    if limit != was {
        body.shift_remove("max_tokens");
        body.shift_remove("max_completion_tokens");
        let name = if is_new { "max_completion_tokens" } else { "max_tokens" };
        put(body, name, limit.map(Value::from));
    } else if refuses.old_max_tokens
        && let Some(limit) = body.shift_remove("max_tokens")
    {
        let new = body.entry("max_completion_tokens").or_insert(Value::Null);
        if new.is_null() {
            *new = limit;
        }
    }
}

fn put_stream(body: &mut Map<String, Value>, stream: bool) {
    if !stream {
        if body.get("stream") != Some(&Value::Bool(false)) {
            body.shift_remove("stream");
        }
        // Refused without `stream`.
        body.shift_remove("stream_options");
        return;
    }
    body.insert("stream".into(), Value::Bool(true));
    let options = body.entry("stream_options").or_insert_with(|| json!({}));
    if !options.is_object() {
        *options = json!({});
    }
    options["include_usage"] = Value::Bool(true);
}

fn leave_out_refused(body: &mut Map<String, Value>, refuses: Refuses) {
    let sampling = effort::refuses_sampling(body, refuses);
    let forced = body.get("tool_choice").is_some_and(|choice| choice == "required" || choice.is_object());
    let names = [
        (refuses.temperature || sampling, "temperature"),
        (refuses.top_p || sampling, "top_p"),
        (refuses.stop, "stop"),
        (refuses.seed, "seed"),
        (refuses.reasoning || refuses.reasoning_effort, "reasoning_effort"),
        (refuses.forced_tool && forced, "tool_choice"),
    ];
    for (_, name) in names.iter().filter(|(refused, _)| *refused) {
        body.shift_remove(*name);
    }
}

fn tool(tool: &Tool) -> Value {
    let mut function = json!({"name": tool.name});
    if let Some(description) = &tool.description {
        function["description"] = json!(description);
    }
    function["parameters"] = tool.schema.clone();
    json!({"type": "function", "function": function})
}

fn tool_choice(choice: &ToolChoice) -> Value {
    match choice {
        ToolChoice::Auto => json!("auto"),
        ToolChoice::None => json!("none"),
        ToolChoice::Required => json!("required"),
        ToolChoice::Tool(name) => json!({"type": "function", "function": {"name": name}}),
    }
}

fn format(format: &Format) -> Value {
    match format {
        Format::Json => json!({"type": "json_object"}),
        Format::Schema { name, schema } => {
            let name = if name.is_empty() { "answer" } else { name };
            let mut wanted = json!({"name": name, "schema": schema});
            if strict::takes(schema) {
                wanted["strict"] = Value::Bool(true);
            }
            json!({"type": "json_schema", "json_schema": wanted})
        }
    }
}

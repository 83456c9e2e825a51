//! Serializes a chat as a chat completion request.

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderValue, Method, Uri};
use serde_json::{Value, json};

use super::json_scan::LazyObject;
use super::{effort, messages, parse, parse_messages, strict_schema};
use crate::chat::{Message, Protocol, Reasoning, ResponseFormat, Tool, ToolChoice};
use crate::{Chat, Endpoint, HttpRequest, UnsupportedParameters};

/// The body. A client's original body of this protocol is passed on, with only the changed fields replaced.
pub(super) fn body(chat: &Chat, refuses: UnsupportedParameters) -> LazyObject {
    let raw = chat.raw.as_ref().filter(|raw| raw.protocol == Protocol::OpenAi);
    let read = raw.and_then(|raw| Some((&raw.body, parse::read(&raw.body).ok()?)));
    // Without a raw body, every field counts as changed.
    let (came, was) = read.map_or_else(Default::default, |(body, was)| (Some(body), was));
    let mut body = came.map(LazyObject::of).unwrap_or_default();

    body.set("model", &json!(chat.model));
    let came = came.and_then(|came| came.get("messages")?.as_array()).map(Vec::as_slice).unwrap_or_default();
    if let Some(messages) = changed_messages(&chat.messages, &was.messages, came) {
        body.set("messages", &Value::Array(messages));
    }
    if chat.tools != was.tools {
        let tools = (!chat.tools.is_empty()).then(|| chat.tools.iter().map(tool).collect());
        put(&mut body, "tools", tools);
    }
    if chat.tool_choice != was.tool_choice {
        // The API rejects a tool choice without tools.
        let choice = chat.tool_choice.as_ref().filter(|_| !chat.tools.is_empty());
        put(&mut body, "tool_choice", choice.map(tool_choice));
    }
    if chat.parallel_tool_calls != was.parallel_tool_calls {
        // The API rejects it without tools.
        let parallel = chat.parallel_tool_calls.filter(|_| !chat.tools.is_empty());
        put(&mut body, "parallel_tool_calls", parallel.map(Value::from));
    }
    if chat.format != was.format {
        put(&mut body, "response_format", chat.format.as_ref().map(format));
    }
    if chat.max_tokens != was.max_tokens {
        put_max_tokens(&mut body, chat.max_tokens, refuses);
    }
    if chat.temperature != was.temperature {
        put(&mut body, "temperature", chat.temperature.map(Value::from));
    }
    if chat.top_p != was.top_p {
        put(&mut body, "top_p", chat.top_p.map(Value::from));
    }
    if chat.frequency_penalty != was.frequency_penalty {
        put(&mut body, "frequency_penalty", chat.frequency_penalty.map(Value::from));
    }
    if chat.presence_penalty != was.presence_penalty {
        put(&mut body, "presence_penalty", chat.presence_penalty.map(Value::from));
    }
    if chat.n != was.n {
        put(&mut body, "n", chat.n.map(Value::from));
    }
    if chat.seed != was.seed {
        put(&mut body, "seed", chat.seed.map(Value::from));
    }
    if chat.stop != was.stop {
        put(&mut body, "stop", (!chat.stop.is_empty()).then(|| json!(chat.stop)));
    }
    if chat.reasoning != was.reasoning {
        put_reasoning(&mut body, chat.reasoning, refuses);
    }
    put_stream(&mut body, chat.stream);
    remove_unsupported(&mut body, refuses);
    body
}

/// The body of a passthrough request, with the provider's model name.
pub(super) fn passthrough_body(came: &LazyObject, model: &str, refuses: UnsupportedParameters) -> LazyObject {
    let mut body = came.clone();
    body.set("model", &json!(model));
    let stream = body.get("stream") == Some("true");
    put_stream(&mut body, stream);
    remove_unsupported(&mut body, refuses);
    body
}

/// The HTTP request to a path under the base URL.
pub(super) fn build_http_request(method: Method, endpoint: &Endpoint, path: &str, body: Bytes) -> HttpRequest {
    let mut url = endpoint.base.clone();
    let path = format!("{}/{path}", url.path().trim_end_matches('/'));
    url.set_path(&path);

    let mut request = HttpRequest::new(body);
    *request.method_mut() = method;
    // No URL built here is invalid; if one were, sending to the empty URI would fail.
    *request.uri_mut() = Uri::try_from(url.as_str()).unwrap_or_default();
    let headers = request.headers_mut();
    headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let key = endpoint.key.as_ref().map(|key| HeaderValue::try_from(format!("Bearer {}", key.expose())));
    if let Some(Ok(mut key)) = key {
        key.set_sensitive(true);
        headers.insert(AUTHORIZATION, key);
    }
    // The operator's headers override the defaults.
    for name in endpoint.headers.keys() {
        headers.remove(name);
    }
    headers.extend(endpoint.headers.iter().map(|(name, value)| (Some(name.clone()), value.clone())));
    request
}

/// The messages, if they changed. Only changed messages are serialized: the original ones may contain unsupported
/// fields.
fn changed_messages(turns: &[Message], were: &[Message], came: &[Value]) -> Option<Vec<Value>> {
    let front = turns.iter().zip(were).take_while(|(turn, was)| turn == was).count();
    if front == turns.len() && front == were.len() && !turns.is_empty() {
        return None;
    }
    let (turns, were_left) = (&turns[front..], &were[front..]);
    let back = turns.iter().rev().zip(were_left.iter().rev()).take_while(|(turn, was)| turn == was).count();

    let length = |turns: &[Message]| turns.iter().map(parse_messages::source_message_count).sum::<usize>();
    let came_front = &came[..length(&were[..front])];
    let came_back = &came[came.len() - length(&were[were.len() - back..])..];
    // Some models reject both roles in one request.
    let system_role = if came.iter().any(|message| message["role"] == "developer") { "developer" } else { "system" };
    let anew = turns[..turns.len() - back].iter().flat_map(|turn| messages::write(turn, system_role));
    Some(came_front.iter().cloned().chain(anew).chain(came_back.iter().cloned()).collect())
}

fn put(body: &mut LazyObject, name: &str, value: Option<Value>) {
    match value {
        Some(value) => body.set(name, &value),
        None => drop(body.remove(name)),
    }
}

fn put_max_tokens(body: &mut LazyObject, limit: Option<u32>, refuses: UnsupportedParameters) {
    let is_new = refuses.old_max_tokens || body.get("max_completion_tokens").is_some();
    body.remove("max_tokens");
    body.remove("max_completion_tokens");
    let name = if is_new { "max_completion_tokens" } else { "max_tokens" };
    put(body, name, limit.map(Value::from));
}

fn put_reasoning(body: &mut LazyObject, reasoning: Option<Reasoning>, refuses: UnsupportedParameters) {
    let word = reasoning.and_then(|reasoning| effort::effort_value(reasoning, refuses));
    put(body, "reasoning_effort", word.map(Value::from));
}

fn put_stream(body: &mut LazyObject, stream: bool) {
    if !stream {
        if body.get("stream") != Some("false") {
            body.remove("stream");
        }
        // The API rejects it without `stream`.
        body.remove("stream_options");
        return;
    }
    body.set_text("stream", "true".into());
    let options = body.get("stream_options").map(serde_json::from_str);
    let mut options = match options {
        Some(Ok(options @ Value::Object(_))) => options,
        _ => json!({}),
    };
    if options["include_usage"] != true {
        options["include_usage"] = Value::Bool(true);
        body.set("stream_options", &options);
    }
}

/// Drops or rewrites parameters that the model rejects.
fn remove_unsupported(body: &mut LazyObject, refuses: UnsupportedParameters) {
    if refuses == UnsupportedParameters::default() {
        return;
    }
    if refuses.old_max_tokens
        && let Some(limit) = body.remove("max_tokens")
        && body.get("max_completion_tokens").is_none_or(|new| new == "null")
    {
        body.set_text("max_completion_tokens", limit);
    }
    if effort::is_unsupported(body, refuses) {
        put_reasoning(body, effort::requested_effort(body).and_then(parse::reasoning), refuses);
    }
    if refuses.reasoning_with_tools && body.get("tools").is_some() {
        // Some models reason by default and then reject the tools.
        body.set_text("reasoning_effort", "\"none\"".into());
    }
    let sampling = effort::rejects_sampling(body, refuses);
    let forced = body.get("tool_choice").is_some_and(|choice| choice == "\"required\"" || choice.starts_with('{'));
    let names = [
        (refuses.temperature || sampling, "temperature"),
        (refuses.top_p || sampling, "top_p"),
        (refuses.stop, "stop"),
        (refuses.seed, "seed"),
        (refuses.reasoning || refuses.reasoning_effort, "reasoning_effort"),
        (refuses.forced_tool && forced, "tool_choice"),
    ];
    for (_, name) in names.iter().filter(|(refused, _)| *refused) {
        body.remove(name);
    }
}

fn tool(tool: &Tool) -> Value {
    let mut function = json!({"name": tool.name});
    if let Some(description) = &tool.description {
        function["description"] = json!(description);
    }
    function["parameters"] = tool.schema.clone();
    if tool.strict {
        function["strict"] = Value::Bool(true);
    }
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

fn format(format: &ResponseFormat) -> Value {
    match format {
        ResponseFormat::Json => json!({"type": "json_object"}),
        ResponseFormat::Schema { name, schema } => {
            let name = if name.is_empty() { "answer" } else { name };
            let mut wanted = json!({"name": name, "schema": schema});
            if strict_schema::is_supported(schema) {
                wanted["strict"] = Value::Bool(true);
            }
            json!({"type": "json_schema", "json_schema": wanted})
        }
    }
}

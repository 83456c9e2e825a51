//! Serializes a chat as a Messages API request body.

use serde_json::{Map, Value, json};

use super::{blocks, messages, parse, schema, thinking};
use crate::UnsupportedParameters;
use crate::chat::{Chat, Protocol, ResponseFormat, Tool, ToolChoice};

/// Instruction for JSON mode. The API has no such mode: structured output requires a schema that names every property.
const JSON_ONLY: &str = "Respond with a single JSON object only: no other text, no code fence.";

pub(super) fn body(chat: &Chat, refuses: UnsupportedParameters) -> Map<String, Value> {
    let built = build(chat, refuses);
    let raw = chat.raw.as_ref().filter(|raw| raw.protocol == Protocol::Anthropic);
    let mut body = match raw.map(|raw| (&raw.body, parse::chat(raw.body.clone()))) {
        Some((raw, Ok(before))) => update_original(raw.clone(), &before, chat, built, refuses),
        _ => built,
    };
    remove_unsupported(&mut body, refuses);
    body
}

/// Builds a body from the typed chat. The API has no `seed`.
fn build(chat: &Chat, refuses: UnsupportedParameters) -> Map<String, Value> {
    let plan = thinking::plan(chat, refuses);
    let mut body = Map::new();
    body.insert("model".into(), chat.model.as_str().into());
    body.insert("max_tokens".into(), plan.max_tokens.into());
    let mut system = messages::system(&chat.messages);
    if chat.format == Some(ResponseFormat::Json) {
        system.extend(blocks::text_block(JSON_ONLY));
    }
    if !system.is_empty() {
        body.insert("system".into(), system.into());
    }
    body.insert("messages".into(), messages::conversation(&chat.messages).into());
    if !chat.tools.is_empty() {
        body.insert("tools".into(), chat.tools.iter().map(tool).collect());
        if let Some(choice) = tool_choice(chat) {
            body.insert("tool_choice".into(), choice);
        }
    }
    let mut config = Map::new();
    if let Some(effort) = plan.effort {
        config.insert("effort".into(), effort.into());
    }
    if let Some(ResponseFormat::Schema { schema, .. }) = &chat.format {
        config.insert("format".into(), json!({"type": "json_schema", "schema": schema::to_supported(schema)}));
    }
    if !config.is_empty() {
        body.insert("output_config".into(), config.into());
    }
    if !plan.is_reasoning_enabled() {
        body.extend(sampling(chat, refuses));
    }
    if let Some(thinking) = plan.thinking {
        body.insert("thinking".into(), thinking);
    }
    // The API rejects whitespace-only stop sequences.
    let stop: Vec<&str> = chat.stop.iter().map(String::as_str).filter(|word| !word.trim().is_empty()).collect();
    if !stop.is_empty() {
        body.insert("stop_sequences".into(), stop.into());
    }
    if chat.stream {
        body.insert("stream".into(), true.into());
    }
    body
}

/// The client's original body, with only those fields replaced that have changed or that the model rejects.
fn update_original(
    mut body: Map<String, Value>,
    before: &Chat,
    chat: &Chat,
    built: Map<String, Value>,
    refuses: UnsupportedParameters,
) -> Map<String, Value> {
    let reasons = chat.reasoning != before.reasoning || thinking::is_unsupported(&body, refuses);
    let thinks = reasons && built.get("thinking").is_some_and(thinking::enables_reasoning);
    let replaced = [
        ("model", chat.model != before.model),
        ("stream", chat.stream != before.stream),
        ("max_tokens", chat.max_tokens != before.max_tokens || chat.max_tokens.is_none()),
        ("tools", chat.tools != before.tools),
        (
            "tool_choice",
            chat.tool_choice != before.tool_choice || chat.parallel_tool_calls != before.parallel_tool_calls,
        ),
        ("thinking", reasons),
        ("temperature", chat.temperature != before.temperature || thinks),
        ("top_p", chat.top_p != before.top_p || thinks),
        ("top_k", thinks),
        ("stop_sequences", chat.stop != before.stop),
    ];
    for (member, _) in replaced.into_iter().filter(|(_, replaced)| *replaced) {
        replace(&mut body, member, built.get(member));
    }
    for (member, _) in
        [("effort", reasons), ("format", chat.format != before.format)].iter().filter(|(_, replaced)| *replaced)
    {
        let value = built.get("output_config").and_then(|config| config.get(member)).cloned();
        let config = body.entry("output_config").or_insert_with(|| json!({}));
        if let Value::Object(config) = config {
            replace(config, member, value.as_ref());
        }
        drop_empty_config(&mut body);
    }
    replace_messages(&mut body, before, chat, &built);
    body
}

/// If system messages were only prepended, the client's messages remain unmodified, including their unsupported fields.
fn replace_messages(body: &mut Map<String, Value>, before: &Chat, chat: &Chat, built: &Map<String, Value>) {
    let (system, turns) = chat.messages.split_at(messages::leading_system(&chat.messages));
    let (system_before, turns_before) = before.messages.split_at(messages::leading_system(&before.messages));
    let added = system.strip_suffix(system_before).filter(|_| turns == turns_before);
    let Some(added) = added else {
        replace(body, "system", built.get("system"));
        replace(body, "messages", built.get("messages"));
        return;
    };
    let wants_json = chat.format == Some(ResponseFormat::Json) && before.format != chat.format;
    if added.is_empty() && !wants_json {
        return;
    }
    let mut blocks = messages::system(added);
    match body.get("system") {
        Some(Value::String(text)) => blocks.extend(blocks::text_block(text)),
        Some(Value::Array(own)) => blocks.extend(own.iter().cloned()),
        _ => {}
    }
    if wants_json {
        blocks.extend(blocks::text_block(JSON_ONLY));
    }
    body.insert("system".into(), blocks.into());
}

/// Newer models accept either `temperature` or `top_p` but reject both together. The maximum temperature is 1, compared
/// with 2 in other protocols.
fn sampling(chat: &Chat, refuses: UnsupportedParameters) -> Option<(String, Value)> {
    let temperature =
        chat.temperature.filter(|_| !refuses.temperature).map(|value| ("temperature", value.clamp(0.0, 1.0)));
    let top_p = || chat.top_p.filter(|_| !refuses.top_p).map(|value| ("top_p", value));
    temperature.or_else(top_p).map(|(member, value)| (member.to_owned(), value.into()))
}

fn remove_unsupported(body: &mut Map<String, Value>, refuses: UnsupportedParameters) {
    let left_out = [
        ("temperature", refuses.temperature),
        ("top_p", refuses.top_p),
        // Models support or reject `top_k` together with `top_p`.
        ("top_k", refuses.top_p),
        ("stop_sequences", refuses.stop),
        ("thinking", refuses.reasoning),
    ];
    for (member, _) in left_out.into_iter().filter(|(_, refused)| *refused) {
        body.shift_remove(member);
    }
    if refuses.forced_tool
        && let Some(Value::Object(choice)) = body.get_mut("tool_choice")
        && choice.get("type").is_some_and(|kind| kind == "any" || kind == "tool")
    {
        choice.insert("type".into(), "auto".into());
        choice.shift_remove("name");
    }
    if refuses.reasoning
        && let Some(Value::Object(config)) = body.get_mut("output_config")
    {
        config.shift_remove("effort");
        drop_empty_config(body);
    }
}

fn drop_empty_config(body: &mut Map<String, Value>) {
    if body.get("output_config").and_then(Value::as_object).is_some_and(Map::is_empty) {
        body.shift_remove("output_config");
    }
}

fn replace(body: &mut Map<String, Value>, member: &str, value: Option<&Value>) {
    match value {
        Some(value) => drop(body.insert(member.to_owned(), value.clone())),
        None => drop(body.shift_remove(member)),
    }
}

fn tool(tool: &Tool) -> Value {
    let mut schema = tool.schema.as_object().cloned().unwrap_or_default();
    schema.entry("type").or_insert_with(|| "object".into());
    let mut written = json!({"name": tool.name, "input_schema": schema});
    if tool.strict {
        // Strict tools are enforced like structured output, so the same schema restrictions apply.
        written["input_schema"] = schema::to_supported(&written["input_schema"]);
        written["strict"] = true.into();
    }
    if let Some(description) = &tool.description {
        written["description"] = description.as_str().into();
    }
    if let Some(control) = &tool.cache_control {
        written[blocks::CACHE_CONTROL] = control.clone();
    }
    written
}

/// The tool choice also carries the flag that disables parallel tool calls.
fn tool_choice(chat: &Chat) -> Option<Value> {
    let one_at_a_time = chat.parallel_tool_calls == Some(false);
    let mut written = match &chat.tool_choice {
        None if !one_at_a_time => return None,
        None | Some(ToolChoice::Auto) => json!({"type": "auto"}),
        Some(ToolChoice::None) => return Some(json!({"type": "none"})),
        Some(ToolChoice::Required) => json!({"type": "any"}),
        Some(ToolChoice::Tool(name)) => json!({"type": "tool", "name": name}),
    };
    if one_at_a_time {
        written["disable_parallel_tool_use"] = true.into();
    }
    Some(written)
}

//! Accepted differences between the requests of genai and ours, with reasons.

use serde_json::{Value, json};

use BodyChange::{At, Shape};

/// Transformations from genai's body to ours, in order. An unnecessary entry fails the run.
#[rustfmt::skip] // A table: cases, the reason, what changes.
pub(crate) static ACCEPTED_DIFFERENCES: &[AcceptedDifference] = &[
    // Equivalent representations.
    accept("openai/ anthropic/", "a stream is only sent if asked for", &[At("/stream", "false", "")]),
    accept("openai/tools openai/tool_named openai/tool_results", "tools are not strict unless they say so",
        &[At("/tools/*/function/strict", "false", "")]),
    accept("openai/tools", "a null is no description", &[At("/tools/*/function/description", "null", "")]),
    accept("google/parallel_calls google/forced_tool google/no_tool google/required_tool google/proofs",
        "a null is no description, and an empty schema says nothing of parameters",
        &[At("/tools/0/functionDeclarations/*/description", "null", ""),
          At("/tools/0/functionDeclarations/*/parametersJsonSchema", "{}", "")]),
    accept("google/image", "Google reads names in both spellings", &[Shape(|_, body| camel_case_names(body))]),
    accept("anthropic/", "a text alone is the same as a list with it", &[Shape(|_, body| list_texts(body))]),
    accept("openai/turns anthropic/conversation google/system_and_turns",
        "genai joins what the system says to one text; we keep its parts apart", &[Shape(split_system)]),
    accept("anthropic/conversation anthropic/results", "Anthropic joins turns of one role; we do so before it",
        &[Shape(|_, body| join_turns(body, "messages", "content"))]),
    accept("google/tool_results", "we join turns of one role; genai only those with results of tools",
        &[Shape(|_, body| join_turns(body, "contents", "parts"))]),
    accept("google/tool_results google/proofs",
        "Google has a name for the output of a tool, and takes all of the response for it where that is missing",
        &[Shape(|_, body| name_outputs(body))]),

    // Features that genai does not support.
    accept("openai/tool_results", "genai's tools give only text; so do OpenAI's, and our pictures come after them",
        &[At("/messages/4/content", r#""And in short?""#,
             r#"[{"type": "image_url", "image_url": {"url": "https://example.com/radar.png"}},
                 {"type": "text", "text": "And in short?"}]"#)]),
    accept("anthropic/results", "genai cannot say who called a tool, that it failed, or that it gave a picture",
        &[At("/messages/1/content/4/caller", "", r#"{"type": "direct"}"#),
          At("/messages/2/content/1/is_error", "", "true"),
          At("/messages/2/content/1/content/1", "", r#"{"type": "image",
              "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}"#)]),
    accept("google/tool_results", "genai cannot say that a tool failed, or that it gave a picture",
        &[At("/contents/2/parts/1/functionResponse/response",
             r#"{"output": "no station there"}"#, r#"{"error": "no station there"}"#),
          At("/contents/2/parts/2/functionResponse/parts", "", r#"[{"inlineData": {"mimeType": "image/png", "data":
          "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="}}]"#)]),
    accept("anthropic/image", "genai drops a picture that has only an address, which Anthropic takes",
        &[At("/messages/0/content/2", "",
             r#"{"type": "image", "source": {"type": "url", "url": "https://example.com/cat.jpg"}}"#)]),
    accept("google/image", "genai wants a type for every picture; we send none where the address tells none",
        &[At("/contents/0/parts/3/fileData/mimeType", r#""image/*""#, "")]),
    accept("google/proofs", "genai sends no thoughts back, only what proves them",
        &[At("/contents/1/parts/0", "", r#"{"text": "I need the tool.", "thought": true}"#),
          At("/contents/1/parts/1", "", r#"{"text": "And only once.", "thought": true,
              "thoughtSignature": "EiYKJGUyNDgzMGE3LTVjZDYtNDJmZS05OThiLWVlNTM5ZTcyYjljMw=="}"#)]),
    accept("openai/reasoning_effort", "this model refuses these settings, which only we are told",
        &[At("/temperature", "0.2", ""), At("/top_p", "0.5", ""), At("/seed", "1", ""), At("/stop", r#"["x"]"#, "")]),

    // Features that providers reject or do not know.
    accept("openai/tool_results", "thoughts are no part of OpenAI's messages, only of those of some who copy it",
        &[At("/messages/1/reasoning_content", r#""Two places.""#, "")]),
    accept("openai/tool_results", "genai quotes arguments that are no JSON; we return what the model wrote",
        &[At("/messages/1/tool_calls/1/function/arguments",
             r#""\"{\\\"place\\\": Linz\"""#, r#""{\"place\": Linz""#)]),
    accept("google/tool_results", "Google takes only objects for arguments; genai sends whatever the model wrote",
        &[At("/contents/1/parts/2/functionCall/args", r#""{\"place\": ""#, r#"{"arguments": "{\"place\": "}"#)]),
    accept("anthropic/conversation", "Anthropic refuses empty texts, and stop words of spaces",
        &[At("/messages/2/content/0", r#"{"type": "text", "text": ""}"#, ""),
          At("/stop_sequences", r#"["\n\n", "END"]"#, r#"["END"]"#)]),
    accept("anthropic/tools anthropic/tool_named", "Anthropic wants the schema of a tool to be that of an object",
        &[At("/tools/1/input_schema", "{}", r#"{"type": "object"}"#)]),
    accept("anthropic/schema", "Anthropic refuses these keywords; we tell the model of them, as its own SDK does",
        &[At("/output_config/format/schema/$schema", r#""https://json-schema.org/draft/2020-12/schema""#, ""),
          At("/output_config/format/schema/properties/name", r#"{"type": "string", "minLength": 1}"#,
             r#"{"type": "string", "description": "{minLength: 1}"}"#),
          At("/output_config/format/schema/properties/age",
             r#"{"type": "integer", "description": "In years.", "minimum": 0, "maximum": 150}"#,
             r#"{"type": "integer", "description": "In years.\n\n{minimum: 0, maximum: 150}"}"#),
          At("/output_config/format/schema/properties/pets/items",
             r#"{"oneOf": [{"type": "object", "properties": {"kind": {"enum": ["cat", "dog"]}},
                 "additionalProperties": true}, {"type": "null"}]}"#,
             r#"{"anyOf": [{"type": "object", "properties": {"kind": {"enum": ["cat", "dog"]}},
                 "additionalProperties": false}, {"type": "null"}]}"#)]),
    accept("anthropic/tool_required", "a model of Anthropic's that must call a tool may not think first",
        &[At("/thinking", r#"{"type": "adaptive", "display": "summarized"}"#, "")]),
    accept("anthropic/results", "Anthropic's adaptive thinking has no budget, which genai gives it",
        &[At("/thinking", r#"{"type": "adaptive", "budget_tokens": 2048, "display": "summarized"}"#,
             r#"{"type": "enabled", "budget_tokens": 2048, "display": "summarized"}"#)]),
    accept("google/limits", "Google takes seeds of 32 bits; we cut longer ones",
        &[At("/generationConfig/seed", "4294967338", "42")]),

    // Independent decisions of both.
    accept("anthropic/budget", "we ask to see thoughts that have a budget too",
        &[At("/thinking/display", "", r#""summarized""#)]),
    accept("anthropic/", "without a limit genai's is all that the model can write, and ours 16384 after the thinking",
        &[Shape(remove_default_limit)]),
    accept("openai/reasoning_effort", "few models know `max`, so we say the word below it to all",
        &[At("/reasoning_effort", r#""max""#, r#""xhigh""#)]),
    accept("openai/reasoning_effort", "genai keeps OpenAI from caching on its own; we let it",
        &[At("/prompt_cache_options", r#"{"mode": "explicit"}"#, "")]),
];

pub(crate) struct AcceptedDifference {
    cases: &'static str,
    pub(crate) why: &'static str,
    pub(crate) changes: &'static [BodyChange],
}

pub(crate) enum BodyChange {
    /// The path, with `*` for every item of a list; genai's value; our value. Empty means absent.
    At(&'static str, &'static str, &'static str),
    /// Receives the chat and genai's body.
    Shape(fn(&Value, &mut Value)),
}

impl AcceptedDifference {
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.cases.split_whitespace()
    }
}

const fn accept(cases: &'static str, why: &'static str, changes: &'static [BodyChange]) -> AcceptedDifference {
    AcceptedDifference { cases, why, changes }
}

/// Only if the number is a default of genai.
fn remove_default_limit(chat: &Value, body: &mut Value) {
    if chat["max_tokens"].is_null() && (body["max_tokens"] == 64_000 || body["max_tokens"] == 128_000) {
        body["max_tokens"] = json!(16_384 + body["thinking"]["budget_tokens"].as_u64().unwrap_or(0));
    }
}

/// In our spelling.
fn camel_case_names(body: &mut Value) {
    let names = ["inline_data inlineData", "file_data fileData", "mime_type mimeType", "file_uri fileUri"];
    let spelled = names.iter().filter_map(|names| names.split_once(' '));
    let text = spelled.fold(body.to_string(), |text, (snake, camel)| text.replace(snake, camel));
    *body = serde_json::from_str(&text).expect("other names are still names");
}

/// Splits what genai has joined: at empty lines, for Google at line ends.
fn split_system(_: &Value, body: &mut Value) {
    let split =
        |text: &Value, by| -> Vec<String> { text.as_str().unwrap_or_default().split(by).map(Into::into).collect() };
    let blocks = |texts: Vec<String>| texts.iter().map(|text| json!({"type": "text", "text": text})).collect();
    if let Some(google) = body.pointer_mut("/systemInstruction/parts") {
        *google = split(&google[0]["text"], "\n").iter().map(|text| json!({"text": text})).collect();
    } else if let Some(anthropic) = body.get_mut("system") {
        *anthropic = blocks(split(anthropic, "\n\n"));
    } else if let Some(openai) = body.pointer_mut("/messages/0/content") {
        *openai = blocks(split(openai, "\n\n"));
    }
}

/// Anthropic's texts, each in a list.
fn list_texts(body: &mut Value) {
    let list = |content: &mut Value| {
        if content.is_string() {
            *content = json!([{"type": "text", "text": content.take()}]);
        }
    };
    for message in items(&mut body["messages"]) {
        list(&mut message["content"]);
        items(&mut message["content"])
            .filter(|block| block["type"] == "tool_result")
            .for_each(|block| list(&mut block["content"]));
    }
}

/// Google's tool results under the documented name.
fn name_outputs(body: &mut Value) {
    for content in items(&mut body["contents"]) {
        for response in items(&mut content["parts"]).filter_map(|part| part.pointer_mut("/functionResponse/response")) {
            *response = json!({"output": response["content"].take()});
        }
    }
}

/// Merges consecutive turns of the same role.
fn join_turns(body: &mut Value, turns: &str, parts: &str) {
    let mut joined: Vec<Value> = Vec::new();
    for turn in items(&mut body[turns]) {
        match joined.last_mut().filter(|last| last["role"] == turn["role"]) {
            Some(last) => {
                let more: Vec<Value> =
                    items(&mut last[parts]).chain(items(&mut turn[parts])).map(Value::take).collect();
                last[parts] = more.into();
            }
            None => joined.push(turn.take()),
        }
    }
    body[turns] = joined.into();
}

fn items(list: &mut Value) -> std::slice::IterMut<'_, Value> {
    list.as_array_mut().map(|items| items.iter_mut()).unwrap_or_default()
}

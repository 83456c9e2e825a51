//! Serializes a [`Chat`] as a `generateContent` request body.
//!
//! The body starts as the client's original body if that used Google's protocol, and empty otherwise. Fields in which
//! the chat differs are then overwritten. One code path serves both cases, and unknown fields survive.

use serde_json::{Value, json};

use super::contents::{self, FunctionNames};
use super::fields::{Object, field, object, objects, remove, set};
use super::{parse, resource};
use crate::UnsupportedParameters;
use crate::chat::{Chat, ChatRole, Effort, Message, Protocol, Reasoning, ResponseFormat, Tool, ToolChoice};

/// Minimum thinking budget of Gemini 2.5 Pro, which cannot disable reasoning.
const MIN_BUDGET: u32 = 128;

pub(super) fn body(chat: &Chat, refuses: UnsupportedParameters) -> Object {
    let raw = chat.raw.as_ref().filter(|raw| raw.protocol == Protocol::Google);
    let mut body = raw.map(|raw| raw.body.clone()).unwrap_or_default();
    let before = parse::typed(&body);
    if field(&body, "model").is_some() {
        let (collection, model) = resource(&chat.model);
        set(&mut body, "model", format!("{collection}/{model}"));
    }
    instructions(chat, &before, &mut body);
    contents(chat, &before, &mut body);
    if chat.tools != before.tools {
        tools(&chat.tools, &mut body);
    }
    let forced = matches!(chat.tool_choice, Some(ToolChoice::Required | ToolChoice::Tool(_)));
    if chat.tool_choice != before.tool_choice
        || chat.tools.is_empty() != before.tools.is_empty()
        || refuses.forced_tool && forced
    {
        tool_choice(chat, refuses, &mut body);
    }
    settings(chat, &before, refuses, &mut body);
    body
}

/// System messages. Google has one field for them, ahead of the conversation.
fn instructions(chat: &Chat, before: &Chat, body: &mut Object) {
    let is_system = |message: &&Message| message.role == ChatRole::System;
    let now: Vec<&Message> = chat.messages.iter().filter(is_system).collect();
    if now == before.messages.iter().filter(is_system).collect::<Vec<_>>() {
        return;
    }
    let parts = contents::instructions(&now);
    if parts.is_empty() {
        remove(body, "systemInstruction");
        return;
    }
    let mut instructions = object(body, "systemInstruction").cloned().unwrap_or_default();
    set(&mut instructions, "parts", parts);
    set(body, "systemInstruction", instructions);
}

/// Conversation messages. Unchanged messages at both ends remain as the client wrote them.
fn contents(chat: &Chat, before: &Chat, body: &mut Object) {
    let is_turn = |message: &&Message| message.role != ChatRole::System;
    let now: Vec<&Message> = chat.messages.iter().filter(is_turn).collect();
    let was: Vec<&Message> = before.messages.iter().filter(is_turn).collect();
    if now == was && field(body, "contents").is_some() {
        return;
    }
    let same = |(now, was): &(&&Message, &&Message)| now == was;
    let head = now.iter().zip(&was).take_while(same).count();
    let (now, was) = (&now[head..], &was[head..]);
    let tail = now.iter().rev().zip(was.iter().rev()).take_while(same).count();
    let raw: Vec<Value> = objects(body, "contents").into_iter().cloned().map(Value::Object).collect();

    let mut contents = raw[..head].to_vec();
    contents.extend(contents::contents(&now[..now.len() - tail], &FunctionNames::of(&chat.messages), &chat.model));
    contents.extend_from_slice(&raw[raw.len() - tail..]);
    set(body, "contents", contents);
}

/// Replaces function declarations; Google's built-in tools in the client's request remain.
fn tools(tools: &[Tool], body: &mut Object) {
    let mut entries: Vec<Value> = Vec::new();
    for mut entry in objects(body, "tools").into_iter().cloned() {
        remove(&mut entry, "functionDeclarations");
        if !entry.is_empty() {
            entries.push(entry.into());
        }
    }
    if !tools.is_empty() {
        let declarations: Vec<Value> = tools.iter().map(declaration).collect();
        entries.push(json!({"functionDeclarations": declarations}));
    }
    match entries.is_empty() {
        true => drop(remove(body, "tools")),
        false => set(body, "tools", entries),
    }
}

fn declaration(tool: &Tool) -> Value {
    let mut declaration = json!({"name": tool.name});
    if let Some(description) = &tool.description {
        declaration["description"] = description.as_str().into();
    }
    if tool.schema.as_object().is_some_and(|schema| !schema.is_empty()) {
        declaration["parametersJsonSchema"] = tool.schema.clone();
    }
    declaration
}

/// The API rejects a tool choice without functions, so it is removed together with them.
fn tool_choice(chat: &Chat, refuses: UnsupportedParameters, body: &mut Object) {
    let calling = chat.tool_choice.as_ref().filter(|_| !chat.tools.is_empty()).map(|choice| match choice {
        ToolChoice::Auto => json!({"mode": "AUTO"}),
        ToolChoice::None => json!({"mode": "NONE"}),
        ToolChoice::Required | ToolChoice::Tool(_) if refuses.forced_tool => json!({"mode": "AUTO"}),
        ToolChoice::Required => json!({"mode": "ANY"}),
        ToolChoice::Tool(name) => json!({"mode": "ANY", "allowedFunctionNames": [name]}),
    });
    let mut config = object(body, "toolConfig").cloned().unwrap_or_default();
    match calling {
        Some(calling) => set(&mut config, "functionCallingConfig", calling),
        None => drop(remove(&mut config, "functionCallingConfig")),
    }
    match config.is_empty() {
        true => drop(remove(body, "toolConfig")),
        false => set(body, "toolConfig", config),
    }
}

/// All of `generationConfig`.
fn settings(chat: &Chat, before: &Chat, refuses: UnsupportedParameters, body: &mut Object) {
    let was = object(body, "generationConfig").cloned().unwrap_or_default();
    let mut config = was.clone();
    let mut put = |name: &str, now: Option<Value>, was: Option<Value>, refused: bool| match now {
        _ if refused => drop(remove(&mut config, name)),
        now if now == was => {}
        Some(value) => set(&mut config, name, value),
        None => drop(remove(&mut config, name)),
    };
    let stop = |chat: &Chat| (!chat.stop.is_empty()).then(|| chat.stop.clone().into());
    // Seeds of other protocols have more bits than Google's. A truncated seed is reproducible just the same.
    let seed = |chat: &Chat| chat.seed.map(|seed| Value::from(seed as i32));
    put("maxOutputTokens", chat.max_tokens.map(Value::from), before.max_tokens.map(Value::from), false);
    put("temperature", chat.temperature.map(Value::from), before.temperature.map(Value::from), refuses.temperature);
    put("topP", chat.top_p.map(Value::from), before.top_p.map(Value::from), refuses.top_p);
    let penalty = |now: Option<f64>, was: Option<f64>| {
        now.filter(|value| now == was || *value != 0.0 && accepts_penalties(&chat.model)).map(Value::from)
    };
    let (frequency, presence) = (before.frequency_penalty, before.presence_penalty);
    put("frequencyPenalty", penalty(chat.frequency_penalty, frequency), frequency.map(Value::from), false);
    put("presencePenalty", penalty(chat.presence_penalty, presence), presence.map(Value::from), false);
    put("seed", seed(chat), seed(before), refuses.seed);
    put("stopSequences", stop(chat), stop(before), refuses.stop);
    let thinking_now = chat.reasoning.map(|reasoning| thinking(reasoning, refuses));
    let thinking_before = before.reasoning.map(|reasoning| thinking(reasoning, UnsupportedParameters::default()));
    put("thinkingConfig", thinking_now, thinking_before, refuses.reasoning);
    if chat.format != before.format {
        format(chat.format.as_ref(), &mut config);
    }
    if config != was {
        set(body, "generationConfig", config);
    }
}

/// Current models take a level. A budget is sent if the request specifies one, and to models that take only budgets. No
/// level disables reasoning: the lowest level is the closest, and models that reject it get the next one.
fn thinking(reasoning: Reasoning, refuses: UnsupportedParameters) -> Value {
    let level = |effort| match effort {
        Effort::Minimal if refuses.reasoning_off => "LOW",
        Effort::Minimal => "MINIMAL",
        Effort::Low => "LOW",
        Effort::Medium => "MEDIUM",
        Effort::High | Effort::Max => "HIGH",
    };
    match reasoning {
        Reasoning::Off | Reasoning::Budget(0) if refuses.reasoning_effort => {
            json!({"thinkingBudget": if refuses.reasoning_off { MIN_BUDGET } else { 0 }})
        }
        Reasoning::Budget(0) if !refuses.reasoning_off && !refuses.reasoning_budget => json!({"thinkingBudget": 0}),
        Reasoning::Off | Reasoning::Budget(0) => json!({"thinkingLevel": level(Effort::Minimal)}),
        Reasoning::On => json!({"includeThoughts": true}),
        Reasoning::Effort(effort) if refuses.reasoning_effort => {
            json!({"includeThoughts": true, "thinkingBudget": effort.tokens()})
        }
        Reasoning::Effort(effort) => json!({"includeThoughts": true, "thinkingLevel": level(effort)}),
        Reasoning::Budget(tokens) if refuses.reasoning_budget => {
            json!({"includeThoughts": true, "thinkingLevel": level(Effort::of_tokens(tokens))})
        }
        Reasoning::Budget(tokens) => json!({"includeThoughts": true, "thinkingBudget": tokens}),
    }
}

/// Models after Gemini 2.0 reject every penalty except zero, which has no effect.
fn accepts_penalties(model: &str) -> bool {
    let (_, name) = resource(model);
    !name.starts_with("gemini-") || name.starts_with("gemini-1.") || name.starts_with("gemini-2.0")
}

fn format(format: Option<&ResponseFormat>, config: &mut Object) {
    for name in ["responseMimeType", "responseSchema", "responseJsonSchema"] {
        remove(config, name);
    }
    if format.is_some() {
        set(config, "responseMimeType", "application/json");
    }
    if let Some(ResponseFormat::Schema { schema, .. }) = format {
        set(config, "responseJsonSchema", schema.clone());
    }
}

//! Requests to known models contain only parameters they support.

use corbie::providers::capabilities;
use corbie::providers::chat::{Chat, ChatRole, Effort, Message, Reasoning, Tool, ToolChoice};
use serde_json::{Value, json};

use crate::protocol_fixture::{ANTHROPIC, GOOGLE, OPENAI, ProtocolFixture};

fn request_body(player: ProtocolFixture, chat: Chat) -> Value {
    player.request_body(&chat, capabilities::builtin_properties(player.protocol, &chat.model).unsupported_parameters())
}

fn chat(model: &str, reasoning: Option<Reasoning>) -> Chat {
    let messages = vec![Message::text(ChatRole::User, "Hello")];
    let stop = vec!["END".to_owned()];
    Chat { model: model.into(), messages, temperature: Some(0.5), stop, reasoning, ..Chat::default() }
}

fn with_tool(chat: Chat, choice: ToolChoice) -> Chat {
    let tools = vec![Tool {
        name: "look".into(),
        description: None,
        schema: json!({"type": "object"}),
        strict: false,
        cache_control: None,
    }];
    Chat { tools, tool_choice: Some(choice), ..chat }
}

/// The members of a body in which models differ.
fn members(body: &Value, names: &[&str]) -> Value {
    let found = names.iter().filter_map(|name| Some(((*name).to_owned(), body.get(name)?.clone())));
    Value::Object(found.collect())
}

const OFF: Option<Reasoning> = Some(Reasoning::Off);
const ON: Option<Reasoning> = Some(Reasoning::On);
const HIGH: Option<Reasoning> = Some(Reasoning::Effort(Effort::High));
const MAX: Option<Reasoning> = Some(Reasoning::Effort(Effort::Max));
const BUDGET: Option<Reasoning> = Some(Reasoning::Budget(4000));

#[test]
fn openai_gets_a_temperature_only_from_models_that_do_not_think() {
    let check = |model: &str, reasoning, expected: Value| {
        let body = request_body(OPENAI, chat(model, reasoning));
        assert_eq!(members(&body, &["temperature", "reasoning_effort", "stop"]), expected, "{model} {reasoning:?}");
    };
    let stop = json!(["END"]);
    check("gpt-4o", HIGH, json!({"temperature": 0.5, "stop": stop}));
    check("gpt-5-2025-08-07", None, json!({}));
    check("gpt-5", OFF, json!({"reasoning_effort": "low"}));
    check("gpt-5.1", None, json!({"temperature": 0.5}));
    check("gpt-5.1", HIGH, json!({"reasoning_effort": "high"}));
    check("gpt-5.1", MAX, json!({"reasoning_effort": "high"}));
    check("gpt-5.2", MAX, json!({"reasoning_effort": "xhigh"}));
    check("gpt-5.1", OFF, json!({"temperature": 0.5, "reasoning_effort": "none"}));
    check("gpt-5.6-terra", None, json!({"stop": stop}));
    check("gpt-5.6-terra", OFF, json!({"temperature": 0.5, "reasoning_effort": "none", "stop": stop}));
    check("gpt-6-astra", OFF, json!({"reasoning_effort": "low", "stop": stop}));
    check("mystery", HIGH, json!({"temperature": 0.5, "reasoning_effort": "high", "stop": stop}));
}

#[test]
fn openai_models_that_cannot_think_with_tools_are_told_not_to() {
    let effort = |model: &str, reasoning| {
        request_body(OPENAI, with_tool(chat(model, reasoning), ToolChoice::Auto)).get("reasoning_effort").cloned()
    };
    assert_eq!(effort("gpt-5.6-sol", None), Some(json!("none")));
    assert_eq!(effort("gpt-5.6-sol", HIGH), Some(json!("none")));
    assert_eq!(effort("gpt-5.1", HIGH), Some(json!("high")));
    assert_eq!(effort("gpt-5", None), None);
}

#[test]
fn openai_gets_a_limit_under_the_name_that_the_model_knows() {
    let limit = |model: &str| request_body(OPENAI, Chat { max_tokens: Some(9), ..chat(model, None) });
    let names = ["max_tokens", "max_completion_tokens"];
    assert_eq!(members(&limit("gpt-4o"), &names), json!({"max_tokens": 9}));
    assert_eq!(members(&limit("o3"), &names), json!({"max_completion_tokens": 9}));
}

#[test]
fn anthropic_models_think_in_the_way_they_take() {
    let check = |model: &str, reasoning, expected: Value| {
        let body = request_body(ANTHROPIC, chat(model, reasoning));
        assert_eq!(members(&body, &["temperature", "thinking", "output_config"]), expected, "{model} {reasoning:?}");
    };
    let adaptive = json!({"type": "adaptive", "display": "summarized"});
    let effort = |word: &str| json!({"effort": word});
    let budget = |tokens: u32| json!({"type": "enabled", "budget_tokens": tokens, "display": "summarized"});
    // Thinking is always on.
    check("claude-opus-5-5", None, json!({}));
    check("claude-opus-5-5", OFF, json!({}));
    check("claude-opus-5-5", BUDGET, json!({"thinking": adaptive, "output_config": effort("medium")}));
    check("claude-sonnet-5-5", OFF, json!({"thinking": {"type": "between_tools"}}));
    check("claude-opus-4-8", OFF, json!({}));
    check("claude-haiku-5-5", OFF, json!({"thinking": {"type": "disabled"}}));
    // Supports both a budget and an effort.
    check("claude-opus-4-6", BUDGET, json!({"thinking": budget(4000)}));
    check("claude-opus-4-6", HIGH, json!({"thinking": adaptive, "output_config": effort("high")}));
    // A budget only; the first model also accepts an effort.
    check("claude-opus-4-5", HIGH, json!({"thinking": budget(16_384), "output_config": effort("high")}));
    check("claude-opus-4-5", MAX, json!({"thinking": budget(24_576), "output_config": effort("high")}));
    check("claude-haiku-4-5-20251001", HIGH, json!({"thinking": budget(16_384)}));
    check("claude-haiku-4-5", ON, json!({"thinking": budget(8192)}));
    check("claude-haiku-4-5", None, json!({"temperature": 0.5}));
}

#[test]
fn anthropic_models_that_cannot_be_forced_to_a_tool_are_left_to_choose() {
    let choice = |model: &str| {
        let body = request_body(ANTHROPIC, with_tool(chat(model, ON), ToolChoice::Tool("look".into())));
        members(&body, &["tool_choice", "thinking"])
    };
    assert_eq!(
        choice("claude-opus-5-5"),
        json!({"tool_choice": {"type": "auto"}, "thinking": {"type": "adaptive", "display": "summarized"}})
    );
    // A model with a forced tool call may not think first.
    assert_eq!(choice("claude-opus-5"), json!({"tool_choice": {"type": "tool", "name": "look"}}));
}

#[test]
fn a_callers_own_request_is_changed_where_the_model_refuses_it() {
    let caller = json!({
        "model": "claude-opus-4-6", "max_tokens": 8000, "x_unknown": 1, "top_k": 5, "temperature": 1.0,
        "thinking": {"type": "enabled", "budget_tokens": 4000}, "tools": [{"name": "look", "input_schema": {}}],
        "tool_choice": {"type": "any", "disable_parallel_tool_use": true},
        "messages": [{"role": "user", "content": "Hello"}],
    });
    let mut chat = ANTHROPIC.parse_request(caller.as_object().unwrap().clone()).unwrap();
    assert_eq!(request_body(ANTHROPIC, chat.clone()), caller);

    chat.model = "claude-opus-5-5".into();
    let mut expected = caller;
    expected["model"] = json!("claude-opus-5-5");
    expected["thinking"] = json!({"type": "adaptive", "display": "summarized"});
    expected["output_config"] = json!({"effort": "medium"});
    expected["tool_choice"] = json!({"type": "auto", "disable_parallel_tool_use": true});
    let members = expected.as_object_mut().unwrap();
    members.shift_remove("top_k");
    members.shift_remove("temperature");
    assert_eq!(request_body(ANTHROPIC, chat), expected);
}

#[test]
fn google_models_think_by_levels_or_by_budgets() {
    let check = |model: &str, reasoning, expected: Value| {
        let body = request_body(GOOGLE, chat(model, reasoning));
        assert_eq!(body["generationConfig"]["thinkingConfig"], expected, "{model} {reasoning:?}");
        assert_eq!(body["generationConfig"]["temperature"], 0.5);
    };
    check("gemini-4-argon", OFF, json!({"thinkingLevel": "LOW"}));
    check("gemini-4-argon", HIGH, json!({"includeThoughts": true, "thinkingLevel": "HIGH"}));
    check("gemini-3.6-flash", OFF, json!({"thinkingLevel": "MINIMAL"}));
    check("gemini-2.5-flash", OFF, json!({"thinkingBudget": 0}));
    check("gemini-2.5-flash", HIGH, json!({"includeThoughts": true, "thinkingBudget": 16_384}));
    check("gemini-2.5-pro", OFF, json!({"thinkingBudget": 128}));
    check("gemini-2.5-pro", BUDGET, json!({"includeThoughts": true, "thinkingBudget": 4000}));
}

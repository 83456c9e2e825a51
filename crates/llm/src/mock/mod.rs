//! Mock provider: deterministic responses and failures on demand.
//!
//! For trying corbie without an API key and for provoking every error. Pure, like the adapters, but it answers
//! in-process: it sends nothing over the network.

mod minimal_json;

use std::time::Duration;

use super::chat::{ChatRole, ContentPart, Message, Reasoning, ResponseFormat, StopReason, Tool, ToolChoice, Usage};
use super::{Capabilities, Chat, Completion, Delta, Error, ModelInfo, NetworkError};

/// The model that answers directly.
const MODEL: &str = "mock";
/// The model that reasons first.
const REASONING_MODEL: &str = "mock-reasoner";
/// Prefix before an error code, with `-` for `_`: `mock-error-rate-limited`.
const ERROR_PREFIX: &str = "mock-error-";

/// Maximum number of prompt characters echoed.
const MAX_ECHO_CHARS: usize = 500;

/// The listed models. Failing models are not listed, so that clients do not select one by accident.
pub fn models() -> Vec<ModelInfo> {
    let model = |id: &str, thinks| ModelInfo {
        id: id.into(),
        capabilities: Capabilities {
            images: Some(false),
            tools: Some(true),
            reasoning: Some(thinks),
            structured_output: Some(true),
            ..Capabilities::default()
        },
        ..ModelInfo::default()
    };
    vec![model(MODEL, false), model(REASONING_MODEL, true)]
}

/// The response to a chat, or the error that the model name selects.
pub fn complete(chat: &Chat) -> Result<Completion, Error> {
    let thinks = match chat.model.as_str() {
        MODEL => false,
        REASONING_MODEL => chat.reasoning != Some(Reasoning::Off),
        model => return Err(failure(model)),
    };
    let mut left = chat.max_tokens.map_or(u64::MAX, u64::from);
    let mut parts = Vec::new();
    let mut usage = Usage { prompt: chat.messages.iter().map(count_message_tokens).sum(), ..Usage::default() };

    if thinks {
        let text =
            truncate_to_budget(&format!("The last thing said was: {}", last_user_text(&chat.messages)), &mut left);
        usage.reasoning = count_tokens(&text);
        usage.completion = usage.reasoning;
        parts.push(ContentPart::Reasoning { text, proof: None });
    }
    let stop = match forced_tool(chat) {
        Some(tool) => {
            let arguments = minimal_json::minimal_value(&tool.schema);
            usage.completion += count_tokens(&tool.name) + count_tokens(&arguments.to_string());
            parts.push(ContentPart::ToolCall { id: "call_0".into(), name: tool.name.clone(), arguments, proof: None });
            StopReason::Tools
        }
        None => {
            let whole = answer(chat);
            let text = truncate_to_budget(&whole, &mut left);
            usage.completion += count_tokens(&text);
            let stop = if text == whole { StopReason::Finished } else { StopReason::Length };
            parts.push(ContentPart::Text { text });
            stop
        }
    };
    Ok(Completion { id: "mock-completion".into(), model: chat.model.clone(), parts, stop, usage, raw: None })
}

/// The same response as a stream, word by word.
pub fn deltas(chat: &Chat) -> Result<Vec<Delta>, Error> {
    let Completion { id, model, parts, stop, usage, .. } = complete(chat)?;
    let mut deltas = vec![Delta::Started { id, model }];
    for part in parts {
        match part {
            ContentPart::Text { text } => deltas.extend(words(&text).map(|word| Delta::Text { text: word.into() })),
            ContentPart::Reasoning { text, .. } => {
                deltas.extend(words(&text).map(|word| Delta::Reasoning { text: word.into() }));
            }
            ContentPart::ToolCall { id, name, arguments, .. } => {
                deltas.push(Delta::ToolCall { index: 0, id, name });
                deltas.push(Delta::Arguments { index: 0, json: arguments.to_string() });
            }
            // The mock produces no media and runs no tools.
            ContentPart::Image { .. }
            | ContentPart::File { .. }
            | ContentPart::Audio { .. }
            | ContentPart::ToolResult { .. }
            | ContentPart::CacheMark { .. }
            | ContentPart::Unread { .. } => {}
        }
    }
    deltas.extend([Delta::Stopped { stop }, Delta::Used { usage }]);
    Ok(deltas)
}

fn failure(model: &str) -> Error {
    match model.strip_prefix(ERROR_PREFIX) {
        Some("authentication") => Error::Authentication,
        Some("rate-limited") => Error::RateLimited { retry_after: Some(Duration::from_secs(1)), quota: false },
        Some("quota-exhausted") => Error::RateLimited { retry_after: None, quota: true },
        Some("unavailable") => Error::Unavailable { status: 503, retry_after: None },
        Some("bad-request") => Error::BadRequest { kind: "mock_error".into() },
        Some("network") => Error::Network(NetworkError::Refused),
        Some("timeout") => Error::Timeout,
        Some("invalid-response") => Error::InvalidResponse("response is not JSON"),
        Some("truncated") => Error::Truncated,
        // `mock-error-model-not-found`, and every unknown model.
        _ => Error::ModelNotFound,
    }
}

fn answer(chat: &Chat) -> String {
    match &chat.format {
        Some(ResponseFormat::Json) => "{}".into(),
        Some(ResponseFormat::Schema { schema, .. }) => minimal_json::minimal_value(schema).to_string(),
        None => match last_user_text(&chat.messages).as_str() {
            "Hello, world!" => "Hi! How can I help you today?".into(),
            "" => "You said nothing.".into(),
            said => format!("You said: {said}"),
        },
    }
}

/// The tool that the model is required to call.
fn forced_tool(chat: &Chat) -> Option<&Tool> {
    match chat.tool_choice.as_ref()? {
        ToolChoice::Required => chat.tools.first(),
        ToolChoice::Tool(name) => chat.tools.iter().find(|tool| tool.name == *name),
        ToolChoice::Auto | ToolChoice::None => None,
    }
}

/// The last user or tool text, limited to the echoed length.
fn last_user_text(messages: &[Message]) -> String {
    let users = messages.iter().rev().filter(|message| message.role == ChatRole::User);
    let last = users.map(|message| texts(&message.parts)).find(|text| !text.is_empty());
    last.unwrap_or_default().chars().take(MAX_ECHO_CHARS).collect()
}

fn count_message_tokens(message: &Message) -> u64 {
    count_tokens(&texts(&message.parts))
}

fn texts(parts: &[ContentPart]) -> String {
    let texts = parts.iter().map(|part| match part {
        ContentPart::Text { text } => text.clone(),
        ContentPart::ToolResult { content, .. } => texts(content),
        _ => String::new(),
    });
    // Tool results are joined with newlines, as if they were separate messages.
    let between = if matches!(parts, [ContentPart::ToolResult { .. }, ..]) { "\n" } else { "" };
    texts.collect::<Vec<_>>().join(between)
}

/// Counts tokens: one per word, plus one for trailing punctuation. `Hello, world!` has three.
fn count_tokens(text: &str) -> u64 {
    text.split_whitespace().count() as u64 + mark(text)
}

/// 1 if the text ends with punctuation, else 0.
fn mark(text: &str) -> u64 {
    u64::from(text.trim_end().ends_with(|end: char| end.is_ascii_punctuation()))
}

/// Truncates a text to the remaining token budget.
fn truncate_to_budget(text: &str, left: &mut u64) -> String {
    let (mut end, mut tokens) = (0, 0);
    for word in words(text) {
        let (longer, more) = (end + word.len(), tokens + u64::from(!word.trim().is_empty()));
        if more + mark(&text[..longer]) > *left {
            break;
        }
        (end, tokens) = (longer, more);
    }
    let taken = &text[..end];
    *left -= count_tokens(taken);
    taken.to_owned()
}

/// The words of a text, each with its trailing whitespace.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive(char::is_whitespace)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn chat(model: &str, prompt: &str) -> Chat {
        Chat { model: model.into(), messages: vec![Message::text(ChatRole::User, prompt)], ..Chat::default() }
    }

    fn tool(name: &str) -> Tool {
        let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
        Tool { name: name.into(), description: None, schema, strict: false, cache_control: None }
    }

    #[test]
    fn the_example_of_the_specification_has_its_answer_and_its_counts() {
        let completion = complete(&chat("mock", "Hello, world!")).unwrap();
        assert_eq!(
            (completion.text().as_str(), &completion.stop),
            ("Hi! How can I help you today?", &StopReason::Finished)
        );
        assert_eq!((completion.usage.prompt, completion.usage.completion), (3, 8));
        assert_eq!(complete(&chat("mock", "Hello, world!")).unwrap(), completion);
    }

    #[test]
    fn any_other_prompt_comes_back_up_to_a_length() {
        assert_eq!(complete(&chat("mock", "Is it cold?")).unwrap().text(), "You said: Is it cold?");
        assert_eq!(complete(&chat("mock", "")).unwrap().text(), "You said nothing.");
        let long = complete(&chat("mock", &"é".repeat(600))).unwrap();
        assert_eq!(long.text(), format!("You said: {}", "é".repeat(500)));
    }

    #[test]
    fn what_a_tool_gave_is_the_last_thing_said() {
        let result = |text: &str| ContentPart::ToolResult {
            id: "call_0".into(),
            name: None,
            content: vec![ContentPart::Text { text: text.into() }],
            is_error: false,
        };
        let mut chat = chat("mock", "What time is it?");
        let before = complete(&chat).unwrap().usage.prompt;
        chat.messages.push(Message { role: ChatRole::User, parts: vec![result("It is noon."), result("It rains.")] });
        let completion = complete(&chat).unwrap();
        assert_eq!(completion.text(), "You said: It is noon.\nIt rains.");
        assert_eq!(completion.usage.prompt - before, 6);
    }

    #[test]
    fn a_limit_cuts_the_answer_and_is_the_reason_to_stop() {
        let limited = |limit| {
            let chat = Chat { max_tokens: Some(limit), ..chat("mock", "Hello, world!") };
            let completion = complete(&chat).unwrap();
            (completion.text(), completion.stop, completion.usage.completion)
        };
        assert_eq!(limited(8), ("Hi! How can I help you today?".into(), StopReason::Finished, 8));
        assert_eq!(limited(3), ("Hi! How can ".into(), StopReason::Length, 3));
        assert_eq!(limited(0), (String::new(), StopReason::Length, 0));
    }

    #[test]
    fn a_forced_tool_is_called_with_arguments_that_fit() {
        let forced = |choice| Chat { tools: vec![tool("one"), tool("two")], tool_choice: choice, ..chat("mock", "Go") };
        let called = |choice| match complete(&forced(choice)).unwrap() {
            Completion { parts, stop: StopReason::Tools, .. } => match &parts[..] {
                [ContentPart::ToolCall { name, arguments, .. }] => Some((name.clone(), arguments.clone())),
                _ => None,
            },
            _ => None,
        };
        assert_eq!(called(Some(ToolChoice::Required)), Some(("one".into(), json!({"city": ""}))));
        assert_eq!(called(Some(ToolChoice::Tool("two".into()))), Some(("two".into(), json!({"city": ""}))));
        assert_eq!((called(Some(ToolChoice::Auto)), called(None)), (None, None));
    }

    #[test]
    fn a_format_is_kept() {
        let text = |format| complete(&Chat { format: Some(format), ..chat("mock", "Go") }).unwrap().text();
        assert_eq!(text(ResponseFormat::Json), "{}");
        assert_eq!(text(ResponseFormat::Schema { name: "place".into(), schema: tool("").schema }), r#"{"city":""}"#);
    }

    #[test]
    fn the_reasoner_thinks_unless_told_not_to() {
        let thought = |reasoning| {
            let completion = complete(&Chat { reasoning, ..chat("mock-reasoner", "Why?") }).unwrap();
            let thinks = matches!(completion.parts[0], ContentPart::Reasoning { .. });
            assert_eq!(thinks, completion.usage.reasoning > 0);
            assert_eq!(completion.text(), "You said: Why?");
            thinks
        };
        assert!(thought(None) && thought(Some(Reasoning::On)) && !thought(Some(Reasoning::Off)));
    }

    #[test]
    fn every_failure_can_be_made_to_happen() {
        let kinds = [
            "authentication",
            "rate_limited",
            "quota_exhausted",
            "model_not_found",
            "unavailable",
            "bad_request",
            "network",
            "timeout",
            "invalid_response",
            "truncated",
        ];
        for kind in kinds {
            let chat = chat(&format!("mock-error-{}", kind.replace('_', "-")), "Hello");
            assert_eq!(complete(&chat).unwrap_err().kind(), kind);
            assert_eq!(deltas(&chat), Err(complete(&chat).unwrap_err()));
        }
        assert_eq!(complete(&chat("gpt-5", "Hello")), Err(Error::ModelNotFound));
    }

    #[test]
    fn pieces_put_together_are_the_answer() {
        let required = Chat {
            tools: vec![tool("one")],
            tool_choice: Some(ToolChoice::Required),
            ..chat("mock-reasoner", "Two  spaces,\nand a line.")
        };
        for chat in [chat("mock", "Hello, world!"), chat("mock-reasoner", "Two  spaces,\nand a line."), required] {
            let completion = complete(&chat).unwrap();
            let (mut text, mut thought, mut arguments) = (String::new(), String::new(), String::new());
            let (mut stop, mut usage) = (None, None);
            for delta in deltas(&chat).unwrap() {
                match delta {
                    Delta::Started { id, model } => {
                        assert_eq!((id, model), (completion.id.clone(), chat.model.clone()))
                    }
                    Delta::Text { text: more } => text += &more,
                    Delta::Reasoning { text: more } => thought += &more,
                    Delta::Arguments { json, .. } => arguments += &json,
                    Delta::Stopped { stop: why } => stop = Some(why),
                    Delta::Used { usage: all } => usage = Some(all),
                    Delta::ToolCall { .. } | Delta::Proof { .. } => {}
                }
            }
            let thoughts = completion.parts.iter().filter_map(|part| match part {
                ContentPart::Reasoning { text, .. } => Some(text.as_str()),
                _ => None,
            });
            assert_eq!((text, thought), (completion.text(), thoughts.collect()));
            assert_eq!((stop, usage), (Some(completion.stop.clone()), Some(completion.usage)));
            assert_eq!(arguments.is_empty(), completion.stop != StopReason::Tools);
        }
    }
}

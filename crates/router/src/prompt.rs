//! Changes a routed chat: the category's system prompt and the reasoning effort (C-63). No I/O.

use super::decide::Decision;
use corbie_config::router::SystemPrompt;
use corbie_llm::Chat;
use corbie_llm::chat::{ChatRole, ContentPart, Effort, Message, Reasoning};

/// Inserts the category's system prompt as configured.
pub fn with_system_prompt(chat: &mut Chat, decision: &Decision, how: SystemPrompt) {
    let has_own = chat.messages.iter().any(|message| message.role == ChatRole::System);
    let Some(prompt) = decision.system_prompt.as_ref().filter(|prompt| !prompt.trim().is_empty()) else { return };
    if how == SystemPrompt::Before || (how == SystemPrompt::IfNone && !has_own) {
        chat.messages.insert(0, Message::text(ChatRole::System, prompt));
    }
}

/// Inserts passages before the last user message. They are untrusted content. They get the role `user`, and the message
/// instructs the model not to follow instructions in them.
pub fn with_passages(chat: &mut Chat, passages: &str) {
    let last = chat.messages.iter().rposition(|message| message.role == ChatRole::User);
    chat.messages.insert(last.unwrap_or(chat.messages.len()), Message::text(ChatRole::User, passages));
}

/// Reasoning effort for a routed model. An effort set by the caller is kept. A model with unknown capabilities gets
/// none, because it may reject the parameter.
pub fn reasoning(asked: Option<Reasoning>, use_reasoning: bool, can_think: bool, effort: Effort) -> Option<Reasoning> {
    let wanted = if use_reasoning { Reasoning::Effort(effort) } else { Reasoning::Off };
    asked.or(can_think.then_some(wanted))
}

/// The text to classify: the last user message.
pub fn last_user_text(chat: &Chat) -> String {
    let last = chat.messages.iter().rev().filter(|message| message.role == ChatRole::User);
    let texts = |message: &Message| {
        let text = |part: &ContentPart| match part {
            ContentPart::Text { text } => Some(text.clone()),
            _ => None,
        };
        message.parts.iter().filter_map(text).collect::<Vec<_>>().join("\n")
    };
    last.map(texts).find(|text| !text.trim().is_empty()).unwrap_or_default()
}

/// Whether a user message contains anything but text, such as an image or a tool result.
pub fn has_non_text_content(chat: &Chat) -> bool {
    let says = |part: &ContentPart| !matches!(part, ContentPart::Text { .. } | ContentPart::CacheMark { .. });
    chat.messages.iter().any(|message| message.role == ChatRole::User && message.parts.iter().any(says))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chat(messages: &[(ChatRole, &str)]) -> Chat {
        let messages = messages.iter().map(|(role, text)| Message::text(*role, *text)).collect();
        Chat { messages, ..Chat::default() }
    }

    fn systems(chat: &Chat) -> Vec<String> {
        let text = |message: &Message| match &message.parts[0] {
            ContentPart::Text { text } => text.clone(),
            other => panic!("{other:?}"),
        };
        chat.messages.iter().filter(|message| message.role == ChatRole::System).map(text).collect()
    }

    #[test]
    fn c63_the_categorys_prompt_goes_before_the_callers_and_not_instead() {
        let decision = Decision { system_prompt: Some("You know law.".into()), ..Decision::default() };
        let own = [(ChatRole::System, "Be brief."), (ChatRole::User, "hi")];
        for (how, messages, expected) in [
            (SystemPrompt::Before, &own[..], &["You know law.", "Be brief."][..]),
            (SystemPrompt::Before, &own[1..], &["You know law."]),
            (SystemPrompt::IfNone, &own[..], &["Be brief."]),
            (SystemPrompt::IfNone, &own[1..], &["You know law."]),
            (SystemPrompt::Off, &own[..], &["Be brief."]),
        ] {
            let mut chat = chat(messages);
            with_system_prompt(&mut chat, &decision, how);
            assert_eq!(systems(&chat), expected, "{how:?}");
        }
    }

    #[test]
    fn c63_reasoning_follows_the_category_where_the_model_takes_it() {
        let of = |asked, wanted, can_think| reasoning(asked, wanted, can_think, Effort::Medium);
        assert_eq!(of(None, true, true), Some(Reasoning::Effort(Effort::Medium)));
        assert_eq!(of(None, false, true), Some(Reasoning::Off));
        assert_eq!((of(None, true, false), of(None, false, false)), (None, None));
        assert_eq!(of(Some(Reasoning::Off), true, true), Some(Reasoning::Off));
    }

    #[test]
    fn the_last_words_of_the_person_are_classified() {
        let chat = chat(&[
            (ChatRole::System, "s"),
            (ChatRole::User, "first"),
            (ChatRole::Assistant, "a"),
            (ChatRole::User, "last"),
        ]);
        assert_eq!(last_user_text(&chat), "last");
        assert_eq!(last_user_text(&Chat::default()), "");
    }
}

//! Signed fields in OpenAI messages, which OpenAI itself does not have.
//!
//! OpenAI rejects unknown message fields, so they are removed from its requests. A compatible server gets fields that
//! the requested model signed, and fields without a signer, since the server may have written them. Responses of
//! compatible servers contain the signer of each field.

use std::sync::LazyLock;

use memchr::memmem::{self, Finder};
use serde_json::{Map, Value};

use super::{parse_messages, reasoning_details};
use crate::Chat;
use crate::chat::Protocol;
use crate::signer::{SIGNED_BY, Signer};

/// Message fields that OpenAI never writes. The last two are LiteLLM's.
const REASONING_FIELDS: [&str; 5] =
    [reasoning_details::FIELD, "reasoning_content", "reasoning", THINKING_BLOCKS, PROVIDER_FIELDS];
/// Thinking blocks of Anthropic, each with a signature.
const THINKING_BLOCKS: &str = "thinking_blocks";
/// An object of a message or a tool call, with signatures of Google among others.
const PROVIDER_FIELDS: &str = "provider_specific_fields";
/// Lists whose objects may be signed.
const SIGNED_LISTS: [&str; 3] = ["tool_calls", reasoning_details::FIELD, THINKING_BLOCKS];
/// A field of tool calls, and of reasoning details, that OpenAI never writes.
const SIGNATURE_FIELD: &str = "extra_content";
/// Fields of a reasoning detail that hold a signature or encrypted reasoning, as OpenRouter writes them.
const SIGNATURES: [&str; 2] = ["signature", "data"];

/// Whether the body may contain a field that OpenAI does not have. A fast substring scan that message text cannot
/// trigger, since quotes in it are escaped.
pub(super) fn may_contain_foreign(body: &[u8]) -> bool {
    REASONING_FIELDS.iter().chain([&SIGNATURE_FIELD]).any(|name| has(body, name))
}

/// Whether a request may contain a field that names its signer. The same kind of scan.
pub(super) fn may_name_signer(body: &[u8]) -> bool {
    has(body, SIGNED_BY)
}

/// Whether a response, or an event of one, may contain a signed field. The same kind of scan.
pub(super) fn may_be_signed(body: &[u8]) -> bool {
    static SIGNED: LazyLock<[Finder<'static>; 4]> = LazyLock::new(|| {
        [SIGNATURE_FIELD, reasoning_details::FIELD, THINKING_BLOCKS, PROVIDER_FIELDS]
            .map(|name| Finder::new(&format!("\"{name}\"")).into_owned())
    });
    SIGNED.iter().any(|name| name.find(body).is_some())
}

fn has(body: &[u8], name: &str) -> bool {
    memmem::find(body, format!("\"{name}\"").as_bytes()).is_some()
}

/// The chat without fields that the receiver does not take: fields of other models than `own` or, without it, all that
/// OpenAI does not have. `None` if there are none.
pub(super) fn strip_foreign(chat: &Chat, own: Option<&Signer>) -> Option<Chat> {
    let raw = chat.raw.as_ref().filter(|raw| raw.protocol == Protocol::OpenAi)?;
    let came = raw.body.get("messages")?.as_array()?;
    let may_be_foreign = |message: &Value| {
        let mut calls = message["tool_calls"].as_array().into_iter().flatten();
        REASONING_FIELDS.iter().any(|name| message.get(name).is_some())
            || calls.any(|call| call.get(SIGNATURE_FIELD).is_some() || call.get(PROVIDER_FIELDS).is_some())
    };
    if !came.iter().any(may_be_foreign) {
        return None;
    }
    let mut cleaned = came.clone();
    for message in cleaned.iter_mut().filter_map(Value::as_object_mut) {
        match own {
            None => strip_message(message),
            Some(own) => retain_own_signatures(message, own),
        }
    }
    if cleaned == *came {
        return None;
    }
    let (were, are) = (parse_messages::read(came).ok()?, parse_messages::read(&cleaned).ok()?);
    let mut chat = chat.clone();
    chat.raw.as_mut()?.body.insert("messages".into(), cleaned.into());
    // The typed messages must match the stripped raw messages; otherwise they would be serialized again. Messages that
    // the router has added match none.
    let mut pairs = were.iter().zip(are).peekable();
    for message in &mut chat.messages {
        if let Some((_, is)) = pairs.next_if(|(was, _)| *was == message) {
            *message = is;
        }
    }
    Some(chat)
}

/// Names the signer in the messages or deltas of a response.
pub(super) fn sign(body: &mut Map<String, Value>, signer: &Signer) {
    for choice in body.get_mut("choices").and_then(Value::as_array_mut).into_iter().flatten() {
        let Some(choice) = choice.as_object_mut() else { continue };
        for message in ["message", "delta"] {
            if let Some(Value::Object(message)) = choice.get_mut(message) {
                sign_message(message, signer);
            }
        }
    }
}

fn sign_message(message: &mut Map<String, Value>, signer: &Signer) {
    if let Some(Value::Object(proof)) = message.get_mut(PROVIDER_FIELDS) {
        signer.tag(proof);
    }
    for call in objects(message, "tool_calls") {
        for name in [SIGNATURE_FIELD, PROVIDER_FIELDS] {
            if let Some(Value::Object(proof)) = call.get_mut(name) {
                signer.tag(proof);
            }
        }
    }
    for block in objects(message, THINKING_BLOCKS).filter(|block| is_signed(block)) {
        signer.tag(block);
    }
    for detail in objects(message, reasoning_details::FIELD) {
        if let Some(Value::Object(proof)) = detail.get_mut(SIGNATURE_FIELD) {
            signer.tag(proof);
        }
        // Only signed details: clients join the pieces of a streamed detail, and its signature is in one of them.
        if is_signed(detail) {
            signer.tag(detail);
        }
    }
}

fn is_signed(detail: &Map<String, Value>) -> bool {
    SIGNATURES.iter().any(|name| detail.get(*name).and_then(Value::as_str).is_some_and(|text| !text.is_empty()))
}

/// Drops the signatures and the reasoning of a message that another model wrote.
fn retain_own_signatures(message: &mut Map<String, Value>, own: &Signer) {
    let mut foreign = false;
    if let Some(Value::Object(proof)) = message.get_mut(PROVIDER_FIELDS) {
        foreign |= is_foreign(proof, own);
    }
    for signed in SIGNED_LISTS {
        for entry in objects(message, signed) {
            foreign |= is_foreign(entry, own);
            for name in [SIGNATURE_FIELD, PROVIDER_FIELDS] {
                if let Some(Value::Object(proof)) = entry.get_mut(name) {
                    foreign |= is_foreign(proof, own);
                }
            }
        }
    }
    if foreign {
        strip_message(message);
    }
}

/// Whether an object names another signer. Removes the own name.
fn is_foreign(signed: &mut Map<String, Value>, own: &Signer) -> bool {
    signed.contains_key(SIGNED_BY) && !own.untag(signed)
}

/// Drops everything that OpenAI does not have.
fn strip_message(message: &mut Map<String, Value>) {
    message.retain(|name, _| !REASONING_FIELDS.contains(&name.as_str()));
    objects(message, "tool_calls")
        .for_each(|call| call.retain(|name, _| name != SIGNATURE_FIELD && name != PROVIDER_FIELDS));
}

fn objects<'a>(
    message: &'a mut Map<String, Value>,
    name: &str,
) -> impl Iterator<Item = &'a mut Map<String, Value>> + use<'a> {
    let list = message.get_mut(name).and_then(Value::as_array_mut);
    list.into_iter().flatten().filter_map(Value::as_object_mut)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn litellm_message() -> Value {
        json!({
            "role": "assistant",
            "content": "hi",
            "thinking_blocks": [{ "type": "thinking", "thinking": "hm", "signature": "SIGNATURE" }],
            "provider_specific_fields": { "thought_signatures": ["SIGNATURE"] },
            "tool_calls": [{ "id": "1", "provider_specific_fields": { "thought_signature": "SIGNATURE" } }],
        })
    }

    #[test]
    fn signatures_in_the_form_of_litellm_do_not_reach_another_model() {
        let (opus, sonnet) = (Signer::new("lite", "claude-opus"), Signer::new("lite", "claude-sonnet"));
        let mut response = json!({ "choices": [{ "message": litellm_message() }] });
        assert!(may_be_signed(response.to_string().as_bytes()));
        sign(response.as_object_mut().unwrap(), &opus);
        let message = response["choices"][0]["message"].clone();

        let mut returned = message.clone();
        retain_own_signatures(returned.as_object_mut().unwrap(), &opus);
        assert_eq!(returned, litellm_message());

        let mut moved = message;
        retain_own_signatures(moved.as_object_mut().unwrap(), &sonnet);
        assert_eq!(moved, json!({ "role": "assistant", "content": "hi", "tool_calls": [{ "id": "1" }] }));
    }

    #[test]
    fn each_signed_field_alone_is_recognized() {
        let (opus, sonnet) = (Signer::new("lite", "claude-opus"), Signer::new("lite", "claude-sonnet"));
        for field in ["thinking_blocks", "provider_specific_fields", "tool_calls"] {
            let mut response = json!({ "choices": [{ "delta": { field: litellm_message()[field] } }] });
            assert!(may_be_signed(response.to_string().as_bytes()), "{field}");
            sign(response.as_object_mut().unwrap(), &opus);
            let mut delta = response["choices"][0]["delta"].take();
            retain_own_signatures(delta.as_object_mut().unwrap(), &sonnet);
            assert!(!delta.to_string().contains("SIGNATURE"), "{field}: {delta}");
        }
    }
}

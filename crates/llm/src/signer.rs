//! Binds signatures of reasoning to the model that made them.
//!
//! Anthropic and Google sign reasoning and tool calls, and some compatible servers pass such signatures on. A model
//! accepts only its own: another model of the same provider rejects the whole request. Clients carry the signatures from
//! one request to the next, so every proof they receive names its signer, and a request holds only proofs of the model it
//! goes to.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::chat::{Chat, ContentPart, Delta, Message};

/// The field of a signed object that names its signers, the outermost first: a provider may be another corbie, which has
/// added the model behind it. The field never reaches a provider.
pub(super) const SIGNED_BY: &str = "signed_by";

/// A model of a provider, as it appears in proofs: `provider/model`. The model is the name that the provider receives,
/// since the name it reports may differ (`claude-opus-5-20260101` for `claude-opus-5`) and is unknown before a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signer(String);

impl Signer {
    pub fn new(provider: &str, model: &str) -> Signer {
        Signer(format!("{provider}/{}", model.strip_prefix("models/").unwrap_or(model)))
    }

    /// Names this model as the signer of a proof.
    pub(super) fn tag(&self, signed: &mut Map<String, Value>) {
        let mut signers = vec![Value::from(self.0.as_str())];
        if let Some(Value::Array(inner)) = signed.shift_remove(SIGNED_BY) {
            signers.extend(inner);
        }
        signed.insert(SIGNED_BY.into(), signers.into());
    }

    /// Whether this model signed a proof. Removes its name. A proof without signers is from before they were recorded,
    /// and may be of any model.
    pub(super) fn untag(&self, signed: &mut Map<String, Value>) -> bool {
        let Some(Value::Array(signers)) = signed.get_mut(SIGNED_BY) else { return false };
        if signers.first().and_then(Value::as_str) != Some(&self.0) {
            return false;
        }
        signers.remove(0);
        if signers.is_empty() {
            signed.shift_remove(SIGNED_BY);
        }
        true
    }

    pub(super) fn tag_parts(&self, parts: &mut [ContentPart]) {
        let proofs = parts.iter_mut().filter_map(proof).filter_map(Option::as_mut);
        proofs.filter_map(Value::as_object_mut).for_each(|proof| self.tag(proof));
    }

    pub(super) fn tag_deltas(&self, deltas: &mut [Delta]) {
        for delta in deltas {
            if let Delta::Proof { proof: Value::Object(proof), .. } = delta {
                self.tag(proof);
            }
        }
    }

    /// The chat without reasoning and proofs that other models signed.
    pub(super) fn without_foreign_proofs<'a>(&self, chat: Cow<'a, Chat>) -> Cow<'a, Chat> {
        let has_proof = |part: &ContentPart| match part {
            ContentPart::Reasoning { proof, .. } | ContentPart::ToolCall { proof, .. } => proof.is_some(),
            _ => false,
        };
        if !chat.messages.iter().flat_map(|message| &message.parts).any(has_proof) {
            return chat;
        }
        let mut chat = chat.into_owned();
        chat.messages.iter_mut().for_each(|message| self.retain_own_proofs(message));
        Cow::Owned(chat)
    }

    fn retain_own_proofs(&self, message: &mut Message) {
        message.parts.retain_mut(|part| {
            let Some(signed) = proof(part).filter(|proof| proof.is_some()) else { return true };
            if signed.as_mut().and_then(Value::as_object_mut).is_some_and(|proof| self.untag(proof)) {
                return true;
            }
            *signed = None;
            // A call is kept without its proof. Reasoning is worth nothing to another model.
            matches!(part, ContentPart::ToolCall { .. })
        });
    }
}

fn proof(part: &mut ContentPart) -> Option<&mut Option<Value>> {
    match part {
        ContentPart::Reasoning { proof, .. } | ContentPart::ToolCall { proof, .. } => Some(proof),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::ChatRole;
    use serde_json::json;

    fn reasoning(signers: &[&str]) -> ContentPart {
        ContentPart::Reasoning { text: "hm".into(), proof: Some(json!({"signature": "s", SIGNED_BY: signers})) }
    }

    fn call(proof: Option<Value>) -> ContentPart {
        ContentPart::ToolCall { id: "1".into(), name: "f".into(), arguments: json!({}), proof }
    }

    fn kept(signer: &Signer, parts: Vec<ContentPart>) -> Vec<ContentPart> {
        let messages = vec![Message { role: ChatRole::Assistant, parts }];
        signer.without_foreign_proofs(Cow::Owned(Chat { messages, ..Chat::default() })).messages[0].parts.clone()
    }

    #[test]
    fn a_model_gets_back_what_it_signed_and_nothing_that_another_did() {
        let signer = Signer::new("anthropic", "opus");
        let unsigned = ContentPart::Reasoning { text: "plain".into(), proof: None };
        let own = ContentPart::Reasoning { text: "hm".into(), proof: Some(json!({"signature": "s"})) };
        let parts = vec![
            reasoning(&["anthropic/opus"]),
            reasoning(&["anthropic/sonnet"]),
            reasoning(&["other/opus"]),
            reasoning(&[]),
            ContentPart::Reasoning { text: "old".into(), proof: Some(json!({"signature": "s"})) },
            unsigned.clone(),
            call(Some(json!({"google": {}, SIGNED_BY: ["anthropic/sonnet"]}))),
            call(Some(json!("no object"))),
            call(None),
        ];
        assert_eq!(kept(&signer, parts), [own, unsigned, call(None), call(None), call(None)]);
    }

    #[test]
    fn signers_of_a_provider_that_is_a_gateway_itself_survive() {
        let (outer, inner) = (Signer::new("house", "any"), Signer::new("google", "models/gemini-3"));
        let mut parts = vec![call(Some(json!({"google": {"thought_signature": "s"}})))];
        inner.tag_parts(&mut parts);
        let from_inner = parts.clone();
        outer.tag_parts(&mut parts);
        assert_eq!(kept(&inner, parts.clone()), [call(None)], "the inner gateway is not the outer one's model");
        assert_eq!(kept(&outer, parts), from_inner);
        assert_eq!(kept(&inner, from_inner), [call(Some(json!({"google": {"thought_signature": "s"}})))]);
    }
}

//! The request: a conversation of about a kilobyte, typical for applications.

use serde_json::json;

use super::gateways::Gateway;

/// Shape of the response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ResponseShape {
    Full,
    /// Events back to back.
    Burst,
    /// At least a millisecond between events.
    Paced,
}

const SYSTEM_PROMPT: &str = "You are the assistant of a small company that sells garden tools over the internet. Answer in \
    the language of the customer, in a friendly tone and in few sentences. Never promise a date of delivery, never \
    tell prices that are not in the catalogue, and hand over to a person when a customer asks for one or is angry. \
    If you do not know something, say so.";
const HISTORY: [(&str, &str); 3] = [
    ("user", "Hello! I bought a spade from you last week, and it is really good. May I ask something else?"),
    ("assistant", "I am glad to hear that the spade serves you well! Of course, ask whatever you like."),
    ("user", "It has nothing to do with spades. I have a list of small questions from my children."),
];

/// The bytes of a request, head and body.
pub(super) fn request_bytes(gateway: Gateway, shape: ResponseShape, port: u16, upstream: u16) -> Vec<u8> {
    let mut messages = vec![json!({ "role": "system", "content": SYSTEM_PROMPT })];
    messages.extend(HISTORY.map(|(role, content)| json!({ "role": role, "content": content })));
    messages.push(json!({ "role": "assistant", "content": "How nice. I am curious, go ahead!" }));
    messages.push(json!({ "role": "user", "content": question(shape) }));
    let mut body = json!({
        "model": gateway.model(shape), "messages": messages, "temperature": 0.7, "max_tokens": 256, "user": "customer-4711",
    });
    if shape != ResponseShape::Full {
        body["stream"] = true.into();
        body["stream_options"] = json!({ "include_usage": true });
    }
    let body = body.to_string();
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nuser-agent: bench\r\naccept: */*\r\n\
         authorization: Bearer sk-bench\r\ncontent-type: application/json\r\n{}content-length: {}\r\n\r\n",
        gateway.headers(upstream),
        body.len()
    );
    [head.as_bytes(), body.as_bytes()].concat()
}

/// The last message. With `auto`, its category selects the model with spaced events; the word-based early exit decides
/// both prompts.
pub(super) fn question(shape: ResponseShape) -> &'static str {
    match shape {
        ResponseShape::Full | ResponseShape::Burst => "what is the square root of 144",
        ResponseShape::Paced => "what started the french revolution",
    }
}

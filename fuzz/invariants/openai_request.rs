//! Invariants of the OpenAI-compatible API: an accepted request can be sent to every provider, and only the model name
//! changes.

use bytes::Bytes;
use corbie::providers::embeddings::EmbeddingRequest;
use corbie::providers::openai::{self, RawChatRequest};
use corbie::providers::{Endpoint, HttpRequest, UnsupportedParameters, anthropic, google, mock};
use http::HeaderMap;
use serde_json::{Map, Value};

const MODEL: &str = "another/model";

pub(super) fn check_invariants(bytes: &[u8]) {
    check_embedding_request(bytes);
    let Ok(received) = RawChatRequest::read(Bytes::copy_from_slice(bytes)) else { return };
    assert_eq!(received.bytes(), bytes);
    assert!(str::from_utf8(bytes).is_ok(), "what goes on as it came is text");
    let endpoint = endpoint();
    check_forwarded(bytes, &received.to_provider_request(MODEL, &endpoint, UnsupportedParameters::default()));

    let Ok(chat) = received.chat() else { return };
    assert_eq!(chat.stream, received.stream);
    assert_eq!(
        Some(&chat.model).filter(|model| !model.is_empty()),
        received.model.as_ref().filter(|model| !model.is_empty())
    );
    // The body is forwarded unchanged and parses to the same request.
    let sent =
        object(openai::request(&chat, &endpoint, UnsupportedParameters::default()).body()).expect("an object is sent");
    let again = openai::parse(sent).expect("what we send can be read");
    assert_eq!(again.messages, chat.messages);
    assert_eq!(again.tools, chat.tools);
    let _ = (
        openai::official_request(&chat, &endpoint, UnsupportedParameters::default()),
        mock::complete(&chat),
        mock::deltas(&chat),
    );
    for request in [
        anthropic::request(&chat, &endpoint, UnsupportedParameters::default()),
        google::request(&chat, &endpoint, UnsupportedParameters::default()),
    ] {
        match request {
            Ok(request) => drop(object(request.body()).expect("an object is sent")),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}

/// Every member comes from the caller, except the model, the stream usage option, and a null.
fn check_forwarded(bytes: &[u8], request: &HttpRequest) {
    // Input nested too deeply to parse is forwarded unchanged.
    let Some(mut came) = object(bytes) else { return };
    let mut sent = object(request.body()).expect("an object is sent");
    came.insert("model".to_owned(), MODEL.into());
    came.retain(|name, value| name != "stream" || !value.is_null());
    for body in [&mut came, &mut sent] {
        body.remove("stream_options");
    }
    assert_eq!(sent, came);
}

fn check_embedding_request(bytes: &[u8]) {
    let Some(body) = object(bytes) else { return };
    let embed = EmbeddingRequest { model: MODEL.to_owned(), body };
    let _ = (embed.texts().map(|texts| texts.len()), embed.encoding());
    let _ = openai::embed_request(&embed, &endpoint());
    let _ = google::embed_requests(&embed, &endpoint());
}

fn object(bytes: &[u8]) -> Option<Map<String, Value>> {
    serde_json::from_slice(bytes).ok()
}

fn endpoint() -> Endpoint {
    Endpoint { base: "http://provider.example/v1".parse().expect("an address"), key: None, headers: HeaderMap::new() }
}

//! Invariants of provider responses: each is an answer or an error, and an answer keeps its meaning when it is
//! forwarded.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use corbie::providers::chat::ContentPart;
use corbie::providers::openai::{self, Encoder, passthrough_event};
use corbie::providers::provider::StreamDecoder;
use corbie::providers::{Completion, Delta, Error, ModelInfo, ResponseHead, SseParser, anthropic, google};
use http::{HeaderMap, HeaderValue, StatusCode};
use serde_json::Value;

use super::stream_assembly::{AssembledResponse, decode_stream};

/// Longer than any error message of the program.
const MAX_ERROR_LEN: usize = 1000;

/// The first byte selects the provider, the second the operation, the third the status.
pub(super) fn check_invariants(bytes: &[u8]) {
    let Some(([who, what, status], body)) = bytes.split_first_chunk::<3>() else { return };
    let status = [200, 200, 200, 400, 404, 429, 500, 529][usize::from(status % 8)];
    let mut headers = HeaderMap::new();
    // An invalid header value is skipped.
    if let Some(Ok(value)) = body.split(|byte| *byte == b'\n').next().map(HeaderValue::from_bytes) {
        headers.insert("retry-after", value);
    }
    let status = StatusCode::from_u16(status).expect("a status");
    let head = ResponseHead {
        status,
        headers: &headers,
        received_at: SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000),
    };
    match what % 4 {
        0 => check_response(who % 3, head, body),
        1 => check_stream(who % 3, body),
        2 => check_models(who % 3, head, body),
        _ => check_embeddings(who % 3, head, body),
    }
}

fn check_response(who: u8, head: ResponseHead<'_>, body: &[u8]) {
    let answer = match who {
        0 => openai::response(head, body),
        1 => anthropic::response(head, body),
        _ => google::response(head, body),
    };
    assert!(answer.is_err() || head.status.is_success(), "no answer comes with a status of failure");
    if who == 0
        && let Some(usage) = openai::passthrough_usage(head, body)
    {
        assert!(str::from_utf8(body).is_ok(), "what goes on as it came is text");
        // Unused numbers may be too large to parse.
        assert!(
            answer.as_ref().is_ok_and(|read| read.usage == usage) || serde_json::from_slice::<Value>(body).is_err()
        );
    }
    match answer {
        Ok(answer) => check_rendered(&answer),
        Err(error) => check_error(&error),
    }
}

/// A caller of the OpenAI-compatible API gets the same answer.
fn check_rendered(answer: &Completion) {
    let written = openai::render(answer, "the model", 7);
    let headers = HeaderMap::new();
    let head = ResponseHead { status: StatusCode::OK, headers: &headers, received_at: SystemTime::UNIX_EPOCH };
    let again = openai::response(head, written.to_string().as_bytes()).expect("what we wrote can be read");
    assert_eq!(again.text(), answer.text());
    assert_eq!(again.usage, answer.usage);
    assert_eq!(tool_call_names(&again), tool_call_names(answer));
    assert_eq!(again.model, "the model");
}

/// Names of the called tools, in order. Calls without a name may be dropped.
fn tool_call_names(answer: &Completion) -> Vec<&str> {
    answer
        .parts
        .iter()
        .filter_map(|part| match part {
            ContentPart::ToolCall { name, .. } if !name.is_empty() => Some(name.as_str()),
            _ => None,
        })
        .collect()
}

fn decoder(who: u8) -> StreamDecoder {
    match who {
        0 => StreamDecoder::OpenAi(openai::OpenAiDecoder::default()),
        1 => StreamDecoder::Anthropic(anthropic::AnthropicDecoder::default()),
        _ => StreamDecoder::Google(google::GoogleDecoder::default()),
    }
}

fn check_stream(who: u8, body: &[u8]) {
    if who == 0 {
        check_passthrough_events(body);
    }
    let mut reading = decoder(who);
    let deltas = match decode_stream(body, &mut reading) {
        Ok(deltas) => deltas,
        Err(error) => return check_error(&error),
    };
    let mut gathered = AssembledResponse::from_deltas(&deltas);
    // The stream forwarded to a caller of the OpenAI-compatible API has the same content.
    let mut written = Vec::new();
    let mut encoder = Encoder::new("the model", 7, true);
    deltas.iter().for_each(|delta| encoder.delta(delta, &mut written));
    if gathered.stop.is_none() {
        return;
    }
    encoder.end(&mut written);
    let mut reading = decoder(0);
    let again =
        AssembledResponse::from_deltas(&decode_stream(&written, &mut reading).expect("what we wrote can be read"));
    assert!(reading.is_complete() && reading.is_finished());
    assert_eq!(again.text, gathered.text);
    assert_eq!(again.reasoning, gathered.reasoning);
    gathered.calls.retain(|_, (name, _)| !name.is_empty());
    let calls = |gathered: AssembledResponse| gathered.calls.into_values().collect::<Vec<_>>();
    assert_eq!(calls(again), calls(gathered));
}

/// Events passed through without parsing must not contain a stop, usage or an error, which the program has to handle.
fn check_passthrough_events(body: &[u8]) {
    let length = passthrough_event::passthrough_len(body);
    assert!(length <= body.len());
    assert!(passthrough_event::count_events(&body[..length]) > 0 || length == 0);
    let mut reading = decoder(0);
    for event in SseParser::default().push(&body[..length]).expect("no event is larger than an input") {
        // An event that is not JSON is forwarded as it is.
        let Ok(deltas) = reading.event(&event) else { continue };
        let known = |delta: &Delta| matches!(delta, Delta::Used { .. } | Delta::Stopped { .. });
        assert!(!deltas.iter().any(known), "{event:?}");
    }
}

fn check_models(who: u8, head: ResponseHead<'_>, body: &[u8]) {
    let page = match who {
        0 => openai::models_response(head, body),
        1 => anthropic::models_response(head, body),
        _ => google::models_response(head, body),
    };
    match page {
        Ok((models, _)) => {
            assert!(head.status.is_success());
            assert!(models.iter().all(|ModelInfo { id, .. }| !id.is_empty()), "every model has a name");
        }
        Err(error) => check_error(&error),
    }
}

fn check_embeddings(who: u8, head: ResponseHead<'_>, body: &[u8]) {
    let result = match who {
        2 => google::embed_response(head, body).map(drop),
        _ => openai::embed_response(head, &Bytes::copy_from_slice(body)).map(drop),
    };
    match result {
        Ok(()) => assert!(head.status.is_success()),
        Err(error) => check_error(&error),
    }
}

/// Error messages are bounded and on one line, for any provider response.
fn check_error(error: &Error) {
    let text = error.to_string();
    assert!(!text.is_empty() && text.len() < MAX_ERROR_LEN && !text.contains('\n'), "{text}");
    assert!(!error.kind().is_empty());
    let _ = (error.is_retryable(), error.allows_failover(), error.retry_after(), error.parameter());
}

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
//! Google's protocol, played from files: what we send for a chat, and what we make of an answer.
//!
//! In `providers/google`, `<case>.caller.json` is a request in this protocol that becomes `<case>.typed.json`,
//! `<case>.chat.json` becomes `<case>.request.json`, `<case>.response.json` becomes `<case>.completion.json`, and
//! `<case>.stream.txt` becomes `<case>.deltas.json`. `CORBIE_BLESS=1` rewrites what we make; read the difference
//! before you keep it.

#[path = "providers/google/errors.rs"]
mod errors;
#[path = "providers/google/same_protocol.rs"]
mod same_protocol;
#[path = "providers/google/wire.rs"]
mod wire;

use std::fs;
use std::path::PathBuf;

use corbie::config::secret::Secret;
use corbie::providers::chat::{Chat, Message, Part, Role};
use corbie::providers::{Completion, Delta, Endpoint, Error, Events, Head, Refuses, google};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde::Serialize;
use serde_json::{Value, json};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/providers/google")
}

/// The cases that have a file with this ending, and the bytes of it.
fn cases(ending: &str) -> Vec<(String, Vec<u8>)> {
    let files = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    let name = |path: &PathBuf| path.file_name()?.to_str()?.strip_suffix(ending).map(str::to_owned);
    let mut cases: Vec<_> = files.filter_map(|path| Some((name(&path)?, fs::read(&path).unwrap()))).collect();
    cases.sort();
    assert!(!cases.is_empty(), "no {ending}");
    cases
}

fn check(file: &str, made: impl Serialize) {
    let made = serde_json::to_string_pretty(&made).unwrap() + "\n";
    let path = folder().join(file);
    if std::env::var_os("CORBIE_BLESS").is_some() {
        fs::write(path, made).unwrap();
    } else {
        assert_eq!(made, fs::read_to_string(path).unwrap(), "{file}");
    }
}

fn endpoint(base: &str) -> Endpoint {
    Endpoint { base: base.parse().unwrap(), key: Some(Secret::new("AIza-secret")), headers: HeaderMap::new() }
}

/// When answers come: 2015-10-21 07:28:00, a Wednesday.
fn moment() -> std::time::SystemTime {
    std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_445_412_480)
}

fn sent(chat: &Chat, refuses: Refuses) -> Value {
    let request = google::request(chat, &endpoint("https://generativelanguage.googleapis.com"), refuses);
    serde_json::from_slice(request.body()).unwrap()
}

fn answered(status: u16, headers: &[(&'static str, &'static str)], body: &[u8]) -> Result<Completion, Error> {
    let pairs = headers.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
    google::response(
        Head { status: StatusCode::from_u16(status).unwrap(), headers: &pairs.collect(), at: moment() },
        body,
    )
}

/// The deltas of a stream, and whether it came to its end.
fn played<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Result<(Vec<Delta>, bool), Error> {
    let (mut events, mut decoder, mut deltas) = (Events::default(), google::Decoder::default(), Vec::new());
    for piece in pieces {
        for event in events.push(piece).unwrap() {
            deltas.extend(decoder.event(&event)?);
        }
    }
    Ok((deltas, decoder.is_complete()))
}

#[test]
fn a_chat_becomes_its_request() {
    for (case, chat) in cases(".chat.json") {
        let chat: Chat = serde_json::from_slice(&chat).unwrap();
        check(&format!("{case}.request.json"), sent(&chat, Refuses::default()));
    }
}

#[test]
fn a_response_becomes_its_completion() {
    for (case, body) in cases(".response.json") {
        let completion = answered(200, &[], &body).unwrap();
        let raw = Value::Object(completion.raw.clone().unwrap().body);
        assert_eq!(raw, serde_json::from_slice::<Value>(&body).unwrap());
        check(&format!("{case}.completion.json"), completion);
    }
}

#[test]
fn a_stream_becomes_its_deltas_wherever_it_is_cut() {
    for (case, bytes) in cases(".stream.txt") {
        let (deltas, complete) = played([bytes.as_slice()]).unwrap();
        assert!(complete, "{case}");
        check(&format!("{case}.deltas.json"), &deltas);
        for cut in 0..bytes.len() {
            let (first, second) = bytes.split_at(cut);
            assert_eq!(played([first, second]).unwrap(), (deltas.clone(), true), "{case} cut at {cut}");
        }
    }
}

#[test]
fn a_stream_without_a_reason_for_its_end_is_not_complete() {
    for (case, bytes) in cases(".stream.txt") {
        let reason = ["\"finishReason\"", "\"blockReason\""];
        let text = std::str::from_utf8(&bytes).unwrap();
        let end = reason.iter().find_map(|reason| text.find(*reason)).unwrap();
        for cut in 0..end {
            assert!(!played([&bytes[..cut]]).unwrap().1, "{case} cut at {cut}");
        }
    }
    // A reason that more text follows was none.
    let event = |reason: &str| format!("data: {{\"candidates\":[{{\"content\":{{}}{reason}}}]}}\n\n");
    let stream = event(",\"finishReason\":\"STOP\"") + &event("");
    assert!(!played([stream.as_bytes()]).unwrap().1);
}

#[test]
fn an_answer_goes_back_to_the_model_part_by_part_as_it_came() {
    for (case, body) in cases(".response.json") {
        let completion = answered(200, &[], &body).unwrap();
        let mut body: Value = serde_json::from_slice(&body).unwrap();
        let Some(came) = body.pointer_mut("/candidates/0/content/parts").map(Value::take) else { continue };
        let messages =
            vec![Message::text(Role::User, "Go."), Message { role: Role::Assistant, parts: completion.parts.clone() }];
        let chat = Chat { model: "gemini-2.5-flash".into(), messages, ..Chat::default() };
        let mut went = sent(&chat, Refuses::default())["contents"][1]["parts"].take();
        // Where the answer had no ids and no arguments, we have made some.
        for (went, came) in went.as_array_mut().unwrap().iter_mut().zip(came.as_array().unwrap()) {
            if let Some(call) = went.get_mut("functionCall").and_then(Value::as_object_mut) {
                call.retain(|name, _| came["functionCall"].get(name).is_some());
            }
        }
        assert_eq!(went, came, "{case}");
    }
}

#[test]
fn calls_without_ids_get_the_same_ids_from_an_answer_and_from_its_stream() {
    let body = fs::read(folder().join("calls_without_ids.response.json")).unwrap();
    let ids = |part: &Part| match part {
        Part::ToolCall { id, .. } => Some(id.clone()),
        _ => None,
    };
    let whole: Vec<_> = answered(200, &[], &body).unwrap().parts.iter().filter_map(ids).collect();
    let stream = fs::read(folder().join("calls_without_ids.stream.txt")).unwrap();
    let pieces = played([stream.as_slice()]).unwrap().0.into_iter().filter_map(|delta| match delta {
        Delta::ToolCall { id, .. } => Some(id),
        _ => None,
    });
    assert_eq!(whole, pieces.collect::<Vec<_>>());
    assert_ne!(whole[0], whole[1]);
}

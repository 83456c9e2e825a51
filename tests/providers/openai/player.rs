//! Plays the files of this folder, and stands in for the network.

use std::fs;
use std::path::PathBuf;

use corbie::config::secret::Secret;
use corbie::providers::openai::{self, Decoder};
use corbie::providers::{Completion, Delta, Endpoint, Error, Events, Head, ModelInfo, Refuses, Request};
use http::{HeaderMap, HeaderValue, StatusCode};
use serde::Serialize;
use serde_json::{Map, Value};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/providers/openai");

pub(crate) fn endpoint() -> Endpoint {
    let mut headers = HeaderMap::new();
    headers.insert("x-team", HeaderValue::from_static("red"));
    Endpoint { base: "https://api.openai.com/v1".parse().unwrap(), key: Some(Secret::new("sk-secret")), headers }
}

/// When answers come: 2015-10-21 07:28:00, a Wednesday.
pub(crate) fn moment() -> std::time::SystemTime {
    std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_445_412_480)
}

pub(crate) fn refuses(case: &str) -> Refuses {
    match case {
        "reasoning_effort" => Refuses {
            temperature: true,
            top_p: true,
            stop: true,
            seed: true,
            old_max_tokens: true,
            ..Refuses::default()
        },
        _ => Refuses::default(),
    }
}

pub(crate) fn caller() -> Map<String, Value> {
    serde_json::from_str(&fs::read_to_string(file("caller", ".caller.json")).unwrap()).unwrap()
}

pub(crate) fn body(request: &Request) -> Value {
    serde_json::from_slice(request.body()).unwrap()
}

pub(crate) fn respond(status: u16, headers: &[(&'static str, &'static str)], body: &[u8]) -> Result<Completion, Error> {
    let headers: HeaderMap = headers
        .iter()
        .map(|(name, value)| (http::HeaderName::from_static(name), HeaderValue::from_static(value)))
        .collect();
    openai::response(Head { status: StatusCode::from_u16(status).unwrap(), headers: &headers, at: moment() }, body)
}

pub(crate) fn list_models(status: u16, body: &[u8]) -> Result<(Vec<ModelInfo>, Option<String>), Error> {
    let head = Head { status: StatusCode::from_u16(status).unwrap(), headers: &HeaderMap::new(), at: moment() };
    openai::models_response(head, body)
}

pub(crate) fn play(pieces: &[&[u8]]) -> Result<(Vec<Delta>, bool), Error> {
    let (mut events, mut decoder, mut deltas) = (Events::default(), Decoder::default(), Vec::new());
    for piece in pieces {
        for event in events.push(piece).unwrap() {
            deltas.extend(decoder.event(&event)?);
        }
    }
    Ok((deltas, decoder.is_complete()))
}

pub(crate) fn file(case: &str, ending: &str) -> PathBuf {
    PathBuf::from(format!("{FOLDER}/{case}{ending}"))
}

/// The cases that have such a file, with its text.
pub(crate) fn files(ending: &str) -> Vec<(String, String)> {
    let names = fs::read_dir(FOLDER).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut cases: Vec<String> = names.filter_map(|name| name.strip_suffix(ending).map(str::to_owned)).collect();
    assert!(!cases.is_empty(), "no {ending}");
    cases.sort();
    cases.into_iter().map(|case| (case.clone(), fs::read_to_string(file(&case, ending)).unwrap())).collect()
}

pub(crate) fn compare(case: &str, ending: &str, found: &impl Serialize) {
    let found = serde_json::to_value(found).unwrap();
    let path = file(case, ending);
    if std::env::var_os("CORBIE_BLESS").is_some() {
        fs::write(&path, format!("{found:#}\n")).unwrap();
    }
    let expected =
        fs::read_to_string(&path).unwrap_or_else(|_| panic!("{case}{ending} is missing; set CORBIE_BLESS=1"));
    assert_eq!(found, serde_json::from_str::<Value>(&expected).unwrap(), "{case}{ending}");
}

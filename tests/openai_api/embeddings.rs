//! Embeddings of the built-in model. Those of providers have a separate file.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::fixture::{ApiServer, expect_error, server_command, with_members};
use crate::http::HttpResponse;

const DIMENSIONS: usize = 384;

/// The built-in model.
pub(crate) const BUILTIN_MODEL: &str = "all-MiniLM-L6-v2-int8";

pub(crate) fn embed(face: &ApiServer, body: &Value) -> HttpResponse {
    face.client.post("/v1/embeddings", body)
}

#[track_caller]
fn vectors(reply: &HttpResponse) -> Vec<Vec<f32>> {
    assert_eq!(reply.status, 200, "{reply:?}");
    let body = reply.json();
    assert_eq!(body["object"], "list");
    assert!(body["model"].is_string() && body["usage"]["prompt_tokens"].as_u64() > Some(0), "{:?}", body["usage"]);
    assert_eq!(body["usage"]["prompt_tokens"], body["usage"]["total_tokens"]);
    let data = body["data"].as_array().unwrap();
    data.iter()
        .enumerate()
        .map(|(index, entry)| {
            assert_eq!((&entry["object"], &entry["index"]), (&json!("embedding"), &json!(index)));
            let vector = decode_vector(&entry["embedding"]);
            assert_eq!(vector.len(), DIMENSIONS);
            vector
        })
        .collect()
}

pub(crate) fn decode_vector(embedding: &Value) -> Vec<f32> {
    match embedding {
        Value::String(base64) => {
            let bytes = STANDARD.decode(base64).unwrap();
            bytes.chunks_exact(4).map(|four| f32::from_le_bytes(four.try_into().unwrap())).collect()
        }
        listed => serde_json::from_value(listed.clone()).unwrap(),
    }
}

#[test]
fn vectors_are_the_same_as_numbers_and_as_base64_and_keep_the_order_of_the_texts() {
    let face = ApiServer::from_command(server_command("serve --port 0", &json!({})));
    let texts = ["a cat on a mat", "the price of copper in 1970", "зима"];
    let list = json!({ "model": "auto", "input": texts });
    let plain = vectors(&embed(&face, &list));
    let float = vectors(&embed(&face, &with_members(list.clone(), json!({ "encoding_format": "float" }))));
    let base64 = embed(&face, &with_members(list, json!({ "encoding_format": "base64" })));
    assert!(base64.json()["data"][0]["embedding"].is_string());
    assert_eq!(plain, float);
    assert_eq!(float, vectors(&base64), "not a bit is lost in either form");
    assert_eq!(plain.len(), 3);

    // Texts embedded in one batch may differ in the last bits from the same texts alone.
    let likeness = |one: &[f32], other: &[f32]| one.iter().zip(other).map(|(a, b)| a * b).sum::<f32>();
    for (index, text) in texts.iter().enumerate() {
        let alone = vectors(&embed(&face, &json!({ "model": "auto", "input": text })));
        assert_eq!(alone.len(), 1);
        let nearest = (0..3).max_by(|a, b| likeness(&alone[0], &plain[*a]).total_cmp(&likeness(&alone[0], &plain[*b])));
        assert_eq!(nearest, Some(index), "{text}");
        assert!(likeness(&alone[0], &plain[index]) > 0.99, "{text}");
    }
    let own =
        vectors(&embed(&face, &json!({ "model": "auto", "input": "hello", "dimensions": DIMENSIONS, "user": "me" })));
    assert_eq!(own.len(), 1);
}

#[test]
fn what_cannot_be_embedded_is_400_and_names_the_member() {
    let face = ApiServer::from_command(server_command("serve --port 0", &json!({})));
    let cases = [
        (json!({ "model": 7, "input": "hello" }), "model"),
        (json!({ "model": "auto" }), "input"),
        (json!({ "model": "auto", "input": [] }), "input"),
        (json!({ "model": "auto", "input": [1, 2, 3] }), "input"),
        (json!({ "model": "auto", "input": vec!["a"; 2049] }), "input"),
        (json!({ "model": "auto", "input": "hello", "encoding_format": "hex" }), "encoding_format"),
        (json!({ "model": "auto", "input": "hello", "dimensions": 12 }), "dimensions"),
    ];
    for (body, param) in cases {
        let error = expect_error(&embed(&face, &body), 400);
        assert_eq!((&error["param"], &error["type"]), (&json!(param), &json!("invalid_request_error")));
    }
    assert_eq!(
        expect_error(&face.client.call("POST", "/v1/embeddings", &[], "{"), 400)["type"],
        "invalid_request_error"
    );
}

#[test]
fn the_model_inside_goes_by_its_own_name_by_auto_and_by_none() {
    let face = ApiServer::from_command(server_command("serve --port 0", &json!({})));
    let own = vectors(&embed(&face, &json!({ "model": BUILTIN_MODEL, "input": "hello" })));
    assert_eq!(own, vectors(&embed(&face, &json!({ "model": "auto", "input": "hello" }))));
    assert_eq!(own, vectors(&embed(&face, &json!({ "model": null, "input": "hello" }))));
    assert_eq!(own, vectors(&embed(&face, &json!({ "input": "hello" }))));
}

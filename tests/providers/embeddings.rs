//! Golden tests of embedding requests and responses.
//!
//! `<case>.embed.json` becomes `<case>.embed_requests.json`, and `<case>.vectors.json` the caller's
//! `<case>.embedded.json`.

use corbie::providers::chat::Protocol;
use corbie::providers::embeddings::{EmbeddingBatch, EmbeddingRequest, Encoding, merge_batches, serialize_response};
use corbie::providers::{Error, HttpRequest, google, openai};
use serde_json::{Map, Value, json};

use crate::protocol_fixture::{GOOGLE, OPENAI, ProtocolFixture, head};

fn embed(body: &[u8]) -> EmbeddingRequest {
    let body: Map<String, Value> = serde_json::from_slice(body).unwrap();
    // Like in the router: the caller's model name may have a provider prefix.
    let model = body["model"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
    EmbeddingRequest { model, body }
}

fn requests(player: &ProtocolFixture, embed: &EmbeddingRequest) -> Result<Vec<HttpRequest>, Error> {
    match player.protocol {
        Protocol::Google => google::embed_requests(embed, &player.endpoint()),
        _ => Ok(vec![openai::embed_request(embed, &player.endpoint())]),
    }
}

fn read(player: &ProtocolFixture, status: u16, body: &[u8]) -> Result<EmbeddingBatch, Error> {
    let headers = http::HeaderMap::new();
    match player.protocol {
        Protocol::Google => google::embed_response(head(status, &headers), body),
        _ => openai::embed_response(head(status, &headers), &body.to_vec().into()).map(EmbeddingBatch::Passthrough),
    }
}

#[test]
fn a_wish_becomes_its_requests() {
    for player in [OPENAI, GOOGLE] {
        for (case, body) in player.cases(".embed.json") {
            let written = |request: &HttpRequest| {
                let body: Value = serde_json::from_slice(request.body()).unwrap();
                json!({"method": request.method().as_str(), "address": request.uri().to_string(), "body": body})
            };
            let requests = requests(&player, &embed(&body)).unwrap();
            player.check(&format!("{case}.embed_requests.json"), requests.iter().map(written).collect::<Vec<_>>());
        }
    }
}

#[test]
fn an_answer_becomes_the_callers() {
    for player in [OPENAI, GOOGLE] {
        for (case, body) in player.cases(".vectors.json") {
            let wish = embed(player.text(&format!("{case}.embed.json")).as_bytes());
            let embedded = merge_batches(&wish, vec![read(&player, 200, &body).unwrap()]).unwrap();
            if player.protocol == Protocol::OpenAi {
                assert_eq!(embedded.body, body, "{case}: not a byte is another");
            }
            let made: Value = serde_json::from_slice(&embedded.body).unwrap();
            player.check(&format!("{case}.embedded.json"), json!({"body": made, "usage": embedded.usage}));
        }
    }
}

#[test]
fn an_answer_without_vectors_is_none() {
    let bodies: [&[u8]; 6] =
        [b"", b"not json", b"[]", b"{}", b"{\"data\":[]}", b"{\"embeddings\":[{\"values\":[\"a\"]}]}"];
    for player in [OPENAI, GOOGLE] {
        for body in bodies {
            assert!(
                matches!(read(&player, 200, body), Err(Error::InvalidResponse(_))),
                "{:?}",
                String::from_utf8_lossy(body)
            );
        }
        assert_eq!(read(&player, 404, b"{}"), Err(Error::ModelNotFound));
        let inside = br#"{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","type":"rate_limit_error"}}"#;
        assert!(matches!(read(&player, 200, inside), Err(Error::RateLimited { .. })), "{:?}", player.protocol);
    }
    let wish = embed(br#"{"model":"m","input":["a","b"]}"#);
    let one = EmbeddingBatch::Vectors { vectors: vec![vec![1.0]], tokens: 1 };
    assert!(matches!(merge_batches(&wish, vec![one.clone()]), Err(Error::InvalidResponse(_))));
    assert!(merge_batches(&wish, vec![one.clone(), one]).is_ok());
}

#[test]
fn numbers_are_as_short_as_single_precision_lets_them_be() {
    let written = serialize_response(&[&[0.1, -1.5]], "m", 2, Encoding::Float);
    assert!(written.contains("\"embedding\":[0.1,-1.5]"), "{written}");
    assert!(serialize_response(&[&[1.0, -2.0]], "m", 2, Encoding::Base64).contains("\"AACAPwAAAMA=\""));
}

//! Decoder invariants: it never panics, preserves IDs, decodes its own output, and gives the same result for any split
//! of the input.

use corbie_mcp::message::{self, DecodeError, DecodeLimits, Incoming, Message};
use serde_json::Value;

const DECODE_LIMITS: [DecodeLimits; 2] = [
    DecodeLimits { bare_allowed: false, max_batch: 4, max_depth: 32 },
    DecodeLimits { bare_allowed: true, max_batch: 100, max_depth: 128 },
];

pub(super) fn check_invariants(bytes: &[u8]) {
    for bounds in DECODE_LIMITS {
        let decoded = message::decode(bytes, bounds);
        let shared = message::decode_shared(bytes.to_vec().into(), bounds);
        assert_eq!(format!("{decoded:?}"), format!("{shared:?}"));
        match decoded {
            Incoming::Single(one) => check(one),
            Incoming::Batch(members) => {
                assert!(!members.is_empty() && members.len() <= bounds.max_batch);
                members.into_iter().for_each(check);
            }
        }
    }
}

fn check(decoded: Result<Message, DecodeError>) {
    let id = match &decoded {
        Ok(Message::Request(request)) => {
            // Params are an object or absent, regardless of other errors.
            let params: Result<Value, _> = request.params.parse();
            assert!(params.is_err() || params.is_ok_and(|params| params.is_object()));
            Some(request.id.clone())
        }
        Ok(Message::Notification(_)) => None,
        Ok(Message::Response(response)) => response.id.clone(),
        Err(rejection) => {
            let object = rejection.error.to_object(corbie_mcp::Era::Legacy);
            assert!(!message::encode_error(rejection.id.as_ref(), &object).contains(&b'\n'));
            rejection.id.clone()
        }
    };
    let Some(id) = id else { return };
    // A response with this ID decodes to the same ID.
    let answer = message::encode_result(&id, &serde_json::json!({})).expect("an id can be written");
    assert!(!answer.contains(&b'\n'), "a message is one line");
    match message::decode(&answer, DECODE_LIMITS[0]) {
        Incoming::Single(Ok(Message::Response(response))) => assert_eq!(response.id, Some(id)),
        other => panic!("our own answer was not understood: {other:?}"),
    }
}

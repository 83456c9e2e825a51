//! `requestState`: HMAC-protected state of a multi round-trip call, stored by the client.
//!
//! The client carries the state between rounds, so any of our instances can serve the next one. The client must
//! not change it: an HMAC covers all of it, and it is bound to the caller, to the request and to an expiry time.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, Mac};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::error::Error;

/// The secret for client-held state: the state of multi round-trip calls, and the ids of legacy sessions. Instances
/// behind one address share it; by default it is generated at startup.
#[derive(Clone)]
pub struct StateKey([u8; 32]);

/// The payload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct RequestState {
    /// Identity of the caller it was issued to.
    caller: String,
    /// Digest of the request it belongs to.
    request: String,
    /// Expiry in seconds since 1970.
    expires: u64,
    /// Answers of earlier rounds, by key.
    pub(crate) answers: Map<String, Value>,
}

const STATE_LIFETIME: Duration = Duration::from_secs(3600);

impl StateKey {
    pub fn random() -> StateKey {
        let mut key = [0; 32];
        getrandom::fill(&mut key).expect("the operating system provides random numbers");
        StateKey(key)
    }

    /// Any shared secret; it is hashed to the required size.
    pub fn from_secret(secret: &[u8]) -> StateKey {
        StateKey(Sha256::digest(secret).into())
    }

    pub(crate) fn seal(&self, caller: &str, request: &str, answers: Map<String, Value>) -> String {
        let expires = unix_seconds() + STATE_LIFETIME.as_secs();
        let state = RequestState { caller: caller.to_owned(), request: request.to_owned(), expires, answers };
        let payload = URL_SAFE_NO_PAD.encode(serde_json::to_vec(&state).expect("state has string keys only"));
        let tag = URL_SAFE_NO_PAD.encode(self.mac(payload.as_bytes()).finalize().into_bytes());
        format!("{payload}.{tag}")
    }

    /// Verifies and opens a sealed state. The error does not reveal which check failed, because only a forger could use
    /// that.
    pub(crate) fn open(&self, sealed: &str, caller: &str, request: &str) -> Result<RequestState, Error> {
        let refused = || {
            Error::invalid_params(
                "invalid `requestState`: not issued by this server for this request; retry without it",
            )
        };
        let (payload, tag) = sealed.split_once('.').ok_or_else(refused)?;
        let tag = URL_SAFE_NO_PAD.decode(tag).map_err(|_| refused())?;
        // `verify_slice` compares in constant time.
        self.mac(payload.as_bytes()).verify_slice(&tag).map_err(|_| refused())?;
        let payload = URL_SAFE_NO_PAD.decode(payload).map_err(|_| refused())?;
        let state: RequestState = serde_json::from_slice(&payload).map_err(|_| refused())?;
        if state.caller != caller || state.request != request || state.expires < unix_seconds() {
            return Err(refused());
        }
        Ok(state)
    }

    pub(crate) fn mac(&self, payload: &[u8]) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC accepts keys of any length");
        mac.update(payload);
        mac
    }
}

impl std::fmt::Debug for StateKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StateKey(***)")
    }
}

/// Digest of a request's method and parameters, independent of member order.
pub(crate) fn request_digest(method: &str, target: &str, arguments: &Value) -> String {
    let mut hash = Sha256::new();
    for part in [method, target] {
        hash.update(part.as_bytes());
        hash.update([0]);
    }
    update_sorted(&mut hash, arguments);
    URL_SAFE_NO_PAD.encode(hash.finalize())
}

fn update_sorted(hash: &mut Sha256, value: &Value) {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by_key(|(name, _)| *name);
            hash.update(b"{");
            for (name, value) in members {
                hash.update(Value::from(name.as_str()).to_string());
                hash.update([0]);
                update_sorted(hash, value);
            }
            hash.update(b"}");
        }
        Value::Array(items) => {
            hash.update(b"[");
            items.iter().for_each(|item| update_sorted(hash, item));
            hash.update(b"]");
        }
        other => {
            hash.update(other.to_string().as_bytes());
            hash.update([0]);
        }
    }
}

/// Seconds since 1970.
pub(crate) fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_seal_opens_for_its_caller_and_request_alone() {
        let key = StateKey::random();
        let answers = Map::from_iter([("step1".to_owned(), json!({ "action": "accept" }))]);
        let sealed = key.seal("ann", "r1", answers.clone());
        assert_eq!(key.open(&sealed, "ann", "r1").expect("own seal").answers, answers);
        assert!(key.open(&sealed, "bob", "r1").is_err());
        assert!(key.open(&sealed, "ann", "r2").is_err());
        assert!(StateKey::random().open(&sealed, "ann", "r1").is_err());
    }

    #[test]
    fn any_change_breaks_the_seal() {
        let key = StateKey::from_secret(b"shared");
        let sealed = key.seal("ann", "r1", Map::new());
        assert!(key.open(&format!("{sealed}-TAMPERED"), "ann", "r1").is_err());
        for position in 0..sealed.len() {
            let mut bytes = sealed.clone().into_bytes();
            bytes[position] = if bytes[position] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(bytes).expect("ascii");
            // The last character of unpadded base64 has spare bits; changing only those does not change the content.
            if changed != sealed && position + 1 != sealed.len() {
                assert!(key.open(&changed, "ann", "r1").is_err(), "position {position}");
            }
        }
    }

    #[test]
    fn the_digest_does_not_depend_on_member_order() {
        assert_eq!(
            request_digest("m", "t", &json!({ "a": 1, "b": [2] })),
            request_digest("m", "t", &json!({ "b": [2], "a": 1 }))
        );
        assert_ne!(request_digest("m", "t", &json!({ "a": 1 })), request_digest("m", "t", &json!({ "a": 2 })));
        assert_ne!(request_digest("m", "t", &json!(["ab", "c"])), request_digest("m", "t", &json!(["a", "bc"])));
    }
}

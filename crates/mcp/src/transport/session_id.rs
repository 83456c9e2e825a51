//! Self-contained ids of legacy sessions, which any instance with the shared key can resume.
//!
//! No clock, no state. An id encodes the result of `initialize` and its time, with an HMAC over this and the caller's
//! identity, in base64url. The identity is not included: only the caller that the id was issued to can present it,
//! otherwise the HMAC does not match. The id is opaque to clients.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, Mac};
use sha2::Sha256;

use crate::client::{ClientCapabilities, ClientFeature, LogLevel};
use crate::request_state::StateKey;
use crate::session::Session;
use crate::version::{Era, Version};

/// The content of an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SessionId {
    /// Random; distinguishes sessions with otherwise equal content.
    pub(super) serial: [u8; 16],
    /// Seconds since 1970.
    pub(super) issued: u64,
    version: Version,
    log_level: LogLevel,
    /// A bit for each of [`ClientFeature::ALL`]: features the server may use, without details.
    features: u8,
}

/// Seconds after issue in which instances that do not hold the session may resume it.
pub(super) const LIFETIME_SECONDS: u64 = 24 * 3600;

/// Maximum clock skew between instances, in seconds.
const MAX_CLOCK_SKEW_SECONDS: u64 = 300;

/// Format version, the first byte of every id.
const FORMAT_VERSION: u8 = 1;
const BODY_BYTES: usize = 28;
const MAC_BYTES: usize = 32;
/// Length of an id in characters. The byte length is a multiple of three, so there is no padding and exactly one
/// encoding.
const ENCODED_LEN: usize = (BODY_BYTES + MAC_BYTES) / 3 * 4;

/// Domain separation: no other use of the key starts with these bytes.
const DOMAIN_SEPARATOR: &[u8] = b"mcp-session-id\0";

impl SessionId {
    pub(super) fn new(session: &Session, serial: [u8; 16], now: u64) -> SessionId {
        let client = session.client();
        let can = ClientFeature::ALL.iter().enumerate().filter(|(_, feature)| client.supports(**feature));
        SessionId {
            serial,
            issued: now,
            version: session.version().unwrap_or(Version::DEFAULT),
            log_level: session.log_level(),
            features: can.fold(0, |bits, (place, _)| bits | 1 << place),
        }
    }

    /// Encodes the id as visible ASCII, as the protocol requires.
    pub(super) fn encode(&self, key: &StateKey, owner: &str) -> String {
        let body = self.body();
        let seal = mac(key, &body, owner).finalize().into_bytes();
        URL_SAFE_NO_PAD.encode([&body[..], &seal[..]].concat())
    }

    /// Decodes an id sealed with this key for this owner, if not expired. All other ids count as unknown.
    pub(super) fn decode(text: &str, key: &StateKey, owner: &str, now: u64) -> Option<SessionId> {
        if text.len() != ENCODED_LEN {
            return None;
        }
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (body, seal) = bytes.split_first_chunk::<BODY_BYTES>()?;
        // `verify_slice` compares in constant time.
        mac(key, body, owner).verify_slice(seal).ok()?;
        let id = SessionId::from_body(body)?;
        let fresh =
            id.issued <= now.saturating_add(MAX_CLOCK_SKEW_SECONDS) && now.saturating_sub(id.issued) < LIFETIME_SECONDS;
        fresh.then_some(id)
    }

    /// A session in the state right after `initialize`.
    pub(super) fn session(&self) -> Session {
        let has = |place: &usize| self.features & 1 << place != 0;
        let features = (0..ClientFeature::ALL.len()).filter(has).map(|place| ClientFeature::ALL[place]);
        let session = Session::new();
        session.initialize(self.version, ClientCapabilities::from_features(features));
        session.set_log_level(self.log_level);
        session
    }

    fn body(&self) -> [u8; BODY_BYTES] {
        let mut body = [0; BODY_BYTES];
        // Versions are declared by age, so their numbers are stable.
        body[..4].copy_from_slice(&[FORMAT_VERSION, self.version as u8, self.log_level as u8, self.features]);
        body[4..12].copy_from_slice(&self.issued.to_be_bytes());
        body[12..].copy_from_slice(&self.serial);
        body
    }

    /// `None` for formats of other releases.
    fn from_body(body: &[u8; BODY_BYTES]) -> Option<SessionId> {
        let ([form, version, log_level, features], rest) = body.split_first_chunk()?;
        let (issued, serial) = rest.split_first_chunk()?;
        let legacy = Version::ALL.into_iter().filter(|version| version.era() == Era::Legacy);
        (*form == FORMAT_VERSION).then_some(SessionId {
            serial: serial.try_into().ok()?,
            issued: u64::from_be_bytes(*issued),
            version: legacy.into_iter().find(|known| *known as u8 == *version)?,
            log_level: *LogLevel::ALL.get(usize::from(*log_level))?,
            features: *features,
        })
    }
}

fn mac(key: &StateKey, body: &[u8; BODY_BYTES], owner: &str) -> Hmac<Sha256> {
    let mut mac = key.mac(DOMAIN_SEPARATOR);
    mac.update(body);
    mac.update(owner.as_bytes());
    mac
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const NOW: u64 = 1_800_000_000;

    fn key() -> StateKey {
        StateKey::from_secret(b"shared")
    }

    fn read(text: &str) -> Option<SessionId> {
        SessionId::decode(text, &key(), "ann", NOW)
    }

    fn id() -> SessionId {
        SessionId {
            serial: [7; 16],
            issued: NOW,
            version: Version::V2025_06_18,
            log_level: LogLevel::Info,
            features: 1,
        }
    }

    /// Any body with a valid HMAC.
    fn sealed(body: &[u8; BODY_BYTES]) -> String {
        let seal = mac(&key(), body, "ann").finalize().into_bytes();
        URL_SAFE_NO_PAD.encode([&body[..], &seal[..]].concat())
    }

    #[test]
    fn an_id_is_short_and_visible() {
        let text = id().encode(&key(), &"a long name ".repeat(100));
        assert_eq!(text.len(), 80);
        assert!(text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)), "{text}");
    }

    #[test]
    fn an_id_is_for_its_owner_and_key_alone() {
        let text = id().encode(&key(), "ann");
        assert_eq!(read(&text), Some(id()));
        for owner in ["bob", "", "an", "anna", "ann\0"] {
            assert_eq!(SessionId::decode(&text, &key(), owner, NOW), None, "{owner:?}");
        }
        assert_eq!(SessionId::decode(&text, &StateKey::random(), "ann", NOW), None);
    }

    #[test]
    fn an_id_is_good_for_a_day_on_clocks_that_differ_a_little() {
        let text = id().encode(&key(), "ann");
        let at = |now| SessionId::decode(&text, &key(), "ann", now).is_some();
        assert!(at(NOW - MAX_CLOCK_SKEW_SECONDS) && at(NOW) && at(NOW + LIFETIME_SECONDS - 1));
        assert!(!at(NOW - MAX_CLOCK_SKEW_SECONDS - 1) && !at(NOW + LIFETIME_SECONDS) && !at(0) && !at(u64::MAX));
    }

    #[test]
    fn a_form_version_or_level_that_is_not_known_is_not_guessed() {
        let changed = |place: usize, byte: u8| {
            let mut body = id().body();
            body[place] = byte;
            read(&sealed(&body))
        };
        assert!(changed(0, FORMAT_VERSION).is_some() && changed(0, 2).is_none() && changed(0, 0).is_none());
        assert!(changed(1, Version::V2026_07_28 as u8).is_none(), "a modern peer has no session");
        assert!(changed(1, 200).is_none() && changed(2, 8).is_none());
        let newer = changed(3, 0xff).expect("what else a newer client can do is of no use here").session();
        assert!(ClientFeature::ALL.iter().all(|feature| newer.client().supports(*feature)));
    }

    #[test]
    fn a_sealed_state_is_no_id() {
        let state = key().seal("ann", "r1", serde_json::Map::new());
        assert_eq!(read(&state), None);
        assert_eq!(read(&state[..ENCODED_LEN]), None);
    }

    #[test]
    fn a_session_goes_on_with_what_was_agreed_on() {
        for (declared, features) in [
            (json!({}), &[][..]),
            (json!({ "elicitation": {} }), &[ClientFeature::Elicitation]),
            (
                json!({ "elicitation": { "url": {} }, "roots": { "listChanged": true } }),
                &[ClientFeature::ElicitationUrl, ClientFeature::Roots],
            ),
            (
                json!({ "elicitation": { "form": {}, "url": {} }, "sampling": { "tools": {} }, "experimental": {} }),
                &[ClientFeature::Elicitation, ClientFeature::ElicitationUrl, ClientFeature::Sampling],
            ),
        ] {
            let session = Session::new();
            session.initialize(Version::V2025_03_26, serde_json::from_value(declared.clone()).expect("an object"));
            session.set_log_level(LogLevel::Error);
            let text = SessionId::new(&session, [1; 16], NOW).encode(&key(), "ann");
            let again = read(&text).expect("own id").session();
            assert_eq!((again.version(), again.log_level()), (Some(Version::V2025_03_26), LogLevel::Error));
            for feature in ClientFeature::ALL {
                assert_eq!(again.client().supports(feature), features.contains(&feature), "{declared} {feature:?}");
            }
        }
    }

    proptest! {
        #[test]
        fn no_text_is_an_id_by_chance(text in any::<String>(), near in "[A-Za-z0-9_-]{76,84}") {
            prop_assert_eq!(read(&text), None);
            prop_assert_eq!(read(&near), None);
        }

        #[test]
        fn no_other_text_is_as_good_as_an_id(place in 0..ENCODED_LEN, letter in any::<char>(), length in 0..ENCODED_LEN) {
            let text = id().encode(&key(), "ann");
            let changed: String = text.chars().enumerate().map(|(at, old)| if at == place { letter } else { old }).collect();
            prop_assert_eq!(read(&changed).is_some(), changed == text);
            prop_assert_eq!(read(&text[..length]), None);
            prop_assert_eq!(read(&format!("{text}{letter}")), None);
        }

        #[test]
        fn any_sealed_body_is_read_as_written_or_not_at_all(body in any::<[u8; BODY_BYTES]>(), form in any::<bool>(), now in any::<u64>()) {
            let mut body = body;
            if form {
                (body[0], body[1], body[2]) = (FORMAT_VERSION, body[1] % 5, body[2] % 9);
            }
            if let Some(id) = SessionId::decode(&sealed(&body), &key(), "ann", now) {
                prop_assert_eq!(id.body(), body);
                prop_assert!(id.session().version().is_some_and(|version| version.era() == Era::Legacy));
            }
        }
    }
}

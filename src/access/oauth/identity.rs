//! Identity of an OAuth caller for logs, rate limits and sessions.

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use sha2::{Digest, Sha256};

/// Longer names are truncated and made unique by a digest.
const MAX_IDENTITY_LEN: usize = 160;

/// Characters to escape in a subject before it is logged. Everything beyond ASCII is escaped as well, because of
/// homoglyphs.
const SUBJECT_ESCAPE_SET: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'\\').add(b'%').add(b'~');
/// The separator is also escaped in a client id, so that two callers never have the same identity.
const CLIENT_ESCAPE_SET: &AsciiSet = &SUBJECT_ESCAPE_SET.add(b':');

/// `oauth:CLIENT:SUBJECT`; `None` if both are missing.
pub(super) fn identity(client: Option<&str>, subject: Option<&str>) -> Option<String> {
    let (client, subject) = (client.unwrap_or_default(), subject.unwrap_or_default());
    if client.is_empty() && subject.is_empty() {
        return None;
    }
    let client = utf8_percent_encode(client, CLIENT_ESCAPE_SET);
    let subject = utf8_percent_encode(subject, SUBJECT_ESCAPE_SET);
    let mut name = format!("oauth:{client}:{subject}");
    if name.len() > MAX_IDENTITY_LEN {
        let digest = format!("{:x}", Sha256::digest(&name));
        // The name is ASCII and can be truncated anywhere.
        name.truncate(MAX_IDENTITY_LEN - 1 - digest.len());
        name = format!("{name}~{digest}");
    }
    Some(name)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn s05_a_caller_is_called_by_its_client_and_its_subject() {
        assert_eq!(identity(Some("app"), Some("alice")).as_deref(), Some("oauth:app:alice"));
        assert_eq!(identity(None, Some("auth0|7")).as_deref(), Some("oauth::auth0|7"));
        assert_eq!(identity(Some("https://a.example"), None).as_deref(), Some("oauth:https%3A//a.example:"));
        assert_eq!(identity(Some(""), None), None);
    }

    proptest! {
        #[test]
        fn s05_names_are_clean_and_bounded_and_never_shared(
            one in ("\\PC{0,3}|.{0,200}|[a:%\n]{0,4}", ".{0,300}|[a:%\n]{0,4}"),
            other in ("[a:%\n]{0,4}", ".{0,300}|[a:%\n]{0,4}"),
        ) {
            let name = |(client, subject): &(String, String)| identity(Some(client), Some(subject));
            let (first, second) = (name(&one), name(&other));
            if let Some(name) = &first {
                prop_assert!(name.len() <= MAX_IDENTITY_LEN && name.bytes().all(|byte| byte.is_ascii_graphic()), "{name}");
            }
            prop_assert_eq!(first.is_some() && first == second, first.is_some() && one == other);
        }
    }
}

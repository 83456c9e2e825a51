//! Secret values: tokens, keys, and headers that contain them.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use zeroize::Zeroizing;

/// A secret. Cannot be displayed; `Debug` and serialization print `***`.
///
/// Zeroed on drop. There is no `PartialEq`, so that a token can only be compared in constant time.
#[derive(Clone)]
pub struct Secret(Zeroizing<String>);

/// Value of an outgoing header, such as `Bearer ${MCP_API_KEY}`. Protected like a [`Secret`], but may contain spaces.
/// It can be compared, because it authenticates no caller.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretLine(Zeroizing<String>);

const MASK: &str = "***";

/// An empty token would authenticate every caller, and a token with a newline none.
pub(super) fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// A newline would start another header, and surrounding spaces are not transmitted.
pub(super) fn is_header_value(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ') && text.trim_matches(' ') == text
}

macro_rules! is_unseen {
    ($type:ident, $format:literal) => {
        impl $type {
            pub fn new(text: impl Into<String>) -> Self {
                Self(Zeroizing::new(text.into()))
            }

            /// The secret text. Every call of this function is relevant for an audit of secrets.
            pub fn expose(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Debug for $type {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str(MASK)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer).map(Self::new)
            }
        }

        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(MASK)
            }
        }

        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                stringify!($type).into()
            }

            fn inline_schema() -> bool {
                true
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({"type": "string", "format": $format, "writeOnly": true})
            }
        }
    };
}

is_unseen!(Secret, "token");
is_unseen!(SecretLine, "header-value");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s02_a_header_value_is_one_line_without_spaces_at_its_ends() {
        assert!(["Bearer sk-1", "", "a  b", "~!"].into_iter().all(is_header_value));
        assert!(!["a\nb", "a\r", "a\tb", " a", "a ", "\u{e4}", "\0"].into_iter().any(is_header_value));
    }

    /// Freed memory cannot be inspected, so the test checks the types that hold the text.
    #[test]
    fn s01_secrets_and_their_copies_are_wiped_when_they_are_let_go() {
        fn is_wiped(_: &impl zeroize::ZeroizeOnDrop) {}
        let secret: Secret = serde_json::from_str("\"sk-1\"").unwrap();
        is_wiped(&secret.0);
        is_wiped(&secret.clone().0);
        is_wiped(&SecretLine::new("Bearer sk-1").0);
    }

    #[test]
    fn s01_a_secret_shows_as_stars_wherever_it_is_put() {
        let secret = Secret::new("sk-1");
        for shown in [format!("{secret:?}"), format!("{secret:#?}"), format!("{:?}", Some(vec![secret.clone()]))] {
            assert!(shown.contains("***") && !shown.contains("sk-1"), "{shown}");
        }
        assert_eq!(serde_json::to_string(&secret).unwrap(), "\"***\"");
    }

    #[test]
    fn s01_a_header_value_shows_as_stars() {
        let line = SecretLine::new("Bearer sk-1");
        assert_eq!(format!("{line:?}"), "***");
        assert_eq!(serde_json::to_string(&line).unwrap(), "\"***\"");
        assert_eq!(line.expose(), "Bearer sk-1");
    }
}

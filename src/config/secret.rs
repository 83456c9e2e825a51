//! Values that must not be seen: a token or a key, and a header that carries one.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use zeroize::Zeroizing;

/// Cannot be displayed, and shows as `***` wherever it is printed or written out.
///
/// Its memory is wiped when it is let go. There is deliberately no `PartialEq` either: a token is compared in constant
/// time or not at all.
#[derive(Clone)]
pub struct Secret(Zeroizing<String>);

/// The value of a header that is sent to others, such as `Bearer ${MCP_API_KEY}`. As unseen as a [`Secret`], but it may
/// hold spaces. It can be compared, as it is sent out and nobody is let in by it.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretLine(Zeroizing<String>);

const MASK: &str = "***";

/// An empty token would let everybody in, and a stray newline would let nobody in.
pub(super) fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// A newline would be a header of its own; spaces at the ends would be lost on the way.
pub(super) fn is_header_value(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ') && text.trim_matches(' ') == text
}

macro_rules! is_unseen {
    ($type:ident, $format:literal) => {
        impl $type {
            pub fn new(text: impl Into<String>) -> Self {
                Self(Zeroizing::new(text.into()))
            }

            /// The text itself. Each call of this is a place to look at when asking where secrets go.
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

    /// What is let go cannot be looked at, so this is said of the types that hold the text.
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

//! Human-readable sizes: `16KiB`, `4MiB`, or a number of bytes.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserializer, Error, Visitor};
use serde::{Deserialize, Serialize, Serializer};

/// A number of bytes, from 1 to 1 GiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteSize(u32);

/// The text is not a size, or out of range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("is not a size such as `16KiB` or `4MiB`, from `1B` to `1GiB`")]
pub struct ParseSizeError;

const MAX_BYTES: u64 = 1 << 30;

/// `KB` is 1000 and `KiB` is 1024 (IEC 80000-13). The units used for output come first.
const UNITS: [(&str, u64); 7] = [
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("B", 1),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("KB", 1_000),
];

impl ByteSize {
    pub(super) const fn kibibytes(kibibytes: u32) -> Self {
        assert!(kibibytes > 0 && kibibytes <= 1 << 20);
        Self(kibibytes << 10)
    }

    pub const fn bytes(self) -> usize {
        self.0 as usize
    }

    fn checked(bytes: u64) -> Result<Self, ParseSizeError> {
        if (1..=MAX_BYTES).contains(&bytes) { Ok(Self(bytes as u32)) } else { Err(ParseSizeError) }
    }
}

impl FromStr for ByteSize {
    type Err = ParseSizeError;

    fn from_str(text: &str) -> Result<Self, ParseSizeError> {
        let text = text.trim();
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (amount, unit) = (&text[..digits], text[digits..].trim_start());
        let amount: u64 = amount.parse().map_err(|_| ParseSizeError)?;
        let factor = match UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit)) {
            Some((_, factor)) => *factor,
            None if unit.is_empty() => 1,
            None => return Err(ParseSizeError),
        };
        Self::checked(amount.checked_mul(factor).ok_or(ParseSizeError)?)
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = u64::from(self.0);
        let exact = UNITS.iter().find(|(_, factor)| bytes.is_multiple_of(*factor));
        let (unit, factor) = exact.unwrap_or(&("B", 1));
        write!(out, "{}{unit}", bytes / factor)
    }
}

impl<'de> Deserialize<'de> for ByteSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextOrNumber;
        impl Visitor<'_> for TextOrNumber {
            type Value = ByteSize;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a size such as `4MiB`, or a number of bytes")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<ByteSize, E> {
                text.parse().map_err(E::custom)
            }

            fn visit_u64<E: Error>(self, bytes: u64) -> Result<ByteSize, E> {
                ByteSize::checked(bytes).map_err(E::custom)
            }

            fn visit_i64<E: Error>(self, bytes: i64) -> Result<ByteSize, E> {
                self.visit_u64(u64::try_from(bytes).map_err(|_| E::custom(ParseSizeError))?)
            }
        }
        deserializer.deserialize_any(TextOrNumber)
    }
}

impl Serialize for ByteSize {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl JsonSchema for ByteSize {
    fn schema_name() -> Cow<'static, str> {
        "ByteSize".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": ["string", "integer"], "format": "byte-size", "minimum": 1, "maximum": MAX_BYTES})
    }
}

//! Human-readable durations: `2s`, `1h30m`, `100ms`, or a number of seconds.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};

/// A duration that may be zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConfigDuration(Duration);

/// A duration that is never zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(try_from = "ConfigDuration", into = "ConfigDuration")]
pub struct Timeout(ConfigDuration);

/// The text is not a duration, or out of range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("is not a duration such as `2s`, `5m` or `100ms`")]
pub struct ParseDurationError;

/// A year. A larger value could overflow the clock.
const MAX_SECONDS: u64 = 366 * 24 * 60 * 60;

/// Largest unit first, in milliseconds.
const UNITS: [(&str, u64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// Serializes whole seconds as a number, for keys that end with `seconds`.
pub(super) fn as_seconds<S: Serializer>(
    duration: &(impl Copy + Into<Duration>),
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let duration: Duration = (*duration).into();
    match duration.subsec_nanos() {
        0 => serializer.serialize_u64(duration.as_secs()),
        _ => serializer.serialize_f64(duration.as_secs_f64()),
    }
}

// === impl Period ===

impl ConfigDuration {
    pub const fn seconds(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }

    pub const fn get(self) -> Duration {
        self.0
    }

    /// Rounds to milliseconds, the smallest unit.
    fn checked(seconds: f64) -> Result<Self, ParseDurationError> {
        if (0.0..=MAX_SECONDS as f64).contains(&seconds) {
            Ok(Self(Duration::from_millis((seconds * 1000.0).round() as u64)))
        } else {
            Err(ParseDurationError)
        }
    }
}

impl FromStr for ConfigDuration {
    type Err = ParseDurationError;

    /// One or more numbers with units, largest unit first; or a number of seconds.
    fn from_str(text: &str) -> Result<Self, ParseDurationError> {
        let text = text.trim();
        if !text.starts_with(|first: char| first.is_ascii_digit()) {
            return Err(ParseDurationError);
        }
        if text.ends_with(|last: char| last.is_ascii_digit()) && !text.contains(char::is_alphabetic) {
            return Self::checked(text.parse().map_err(|_| ParseDurationError)?);
        }
        let mut rest = text;
        let mut units = UNITS.iter();
        let mut seconds = 0.0;
        while !rest.is_empty() {
            let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or(ParseDurationError)?;
            let amount: f64 = rest[..end].parse().map_err(|_| ParseDurationError)?;
            let unit_end = rest[end..].find(|c: char| !c.is_ascii_alphabetic()).map_or(rest.len(), |len| end + len);
            let unit = &rest[end..unit_end];
            // `find` continues after the last match, so a unit cannot occur twice or out of order.
            let (_, milliseconds) = units.find(|(name, _)| *name == unit).ok_or(ParseDurationError)?;
            seconds += amount * (*milliseconds as f64) / 1000.0;
            rest = &rest[unit_end..];
        }
        Self::checked(seconds)
    }
}

impl fmt::Display for ConfigDuration {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_zero() {
            return out.write_str("0s");
        }
        let mut left = u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX);
        for (unit, milliseconds) in UNITS {
            if left >= milliseconds {
                write!(out, "{}{unit}", left / milliseconds)?;
                left %= milliseconds;
            }
        }
        Ok(())
    }
}

impl<'de> Deserialize<'de> for ConfigDuration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextOrNumber;
        impl Visitor<'_> for TextOrNumber {
            type Value = ConfigDuration;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a duration such as `2s`, or a number of seconds")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<ConfigDuration, E> {
                text.parse().map_err(E::custom)
            }

            fn visit_f64<E: serde::de::Error>(self, seconds: f64) -> Result<ConfigDuration, E> {
                ConfigDuration::checked(seconds).map_err(E::custom)
            }

            fn visit_u64<E: serde::de::Error>(self, seconds: u64) -> Result<ConfigDuration, E> {
                self.visit_f64(seconds as f64)
            }

            fn visit_i64<E: serde::de::Error>(self, seconds: i64) -> Result<ConfigDuration, E> {
                self.visit_f64(seconds as f64)
            }
        }
        deserializer.deserialize_any(TextOrNumber)
    }
}

impl Serialize for ConfigDuration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl From<ConfigDuration> for Duration {
    fn from(period: ConfigDuration) -> Self {
        period.0
    }
}

impl JsonSchema for ConfigDuration {
    fn schema_name() -> Cow<'static, str> {
        "Period".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": ["string", "number"], "format": "non-negative-duration", "minimum": 0, "maximum": MAX_SECONDS})
    }
}

// === impl Timeout ===

impl Timeout {
    /// For constant defaults; must not be zero.
    pub(super) const fn seconds(seconds: u64) -> Self {
        assert!(seconds > 0);
        Self(ConfigDuration::seconds(seconds))
    }

    pub const fn get(self) -> Duration {
        self.0.0
    }
}

impl TryFrom<ConfigDuration> for Timeout {
    type Error = ParseDurationError;

    fn try_from(period: ConfigDuration) -> Result<Self, ParseDurationError> {
        if period.0.is_zero() { Err(ParseDurationError) } else { Ok(Self(period)) }
    }
}

impl FromStr for Timeout {
    type Err = ParseDurationError;

    fn from_str(text: &str) -> Result<Self, ParseDurationError> {
        text.parse::<ConfigDuration>()?.try_into()
    }
}

impl fmt::Display for Timeout {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

impl From<Timeout> for ConfigDuration {
    fn from(timeout: Timeout) -> Self {
        timeout.0
    }
}

impl From<Timeout> for Duration {
    fn from(timeout: Timeout) -> Self {
        timeout.get()
    }
}

impl JsonSchema for Timeout {
    fn schema_name() -> Cow<'static, str> {
        "Timeout".into()
    }

    fn inline_schema() -> bool {
        true
    }

    /// The minimum is one millisecond, the smallest unit.
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": ["string", "number"], "format": "timeout", "minimum": 0.001, "maximum": MAX_SECONDS})
    }
}

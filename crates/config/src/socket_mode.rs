//! `server.socket_mode`: permissions of Unix sockets.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// Permissions in octal digits, as for `chmod`: `0660`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct SocketMode(u32);

/// The text is not such a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("is not a mode of three octal digits such as `0660`")]
pub struct ParseModeError;

impl SocketMode {
    pub fn bits(self) -> u32 {
        self.0
    }
}

impl Default for SocketMode {
    /// Owner only.
    fn default() -> Self {
        Self(0o600)
    }
}

impl FromStr for SocketMode {
    type Err = ParseModeError;

    fn from_str(text: &str) -> Result<Self, ParseModeError> {
        let digits = text.strip_prefix('0').filter(|rest| rest.len() == 3).unwrap_or(text);
        let fits = digits.len() == 3 && digits.bytes().all(|digit| (b'0'..=b'7').contains(&digit));
        let mode = fits.then(|| u32::from_str_radix(digits, 8).ok()).flatten();
        mode.map(Self).ok_or(ParseModeError)
    }
}

impl fmt::Display for SocketMode {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:04o}", self.0)
    }
}

impl TryFrom<String> for SocketMode {
    type Error = ParseModeError;

    fn try_from(text: String) -> Result<Self, ParseModeError> {
        text.parse()
    }
}

impl From<SocketMode> for String {
    fn from(mode: SocketMode) -> Self {
        mode.to_string()
    }
}

impl JsonSchema for SocketMode {
    fn schema_name() -> Cow<'static, str> {
        "SocketMode".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "format": "socket-mode", "examples": ["0660"]})
    }
}

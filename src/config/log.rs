//! `log`: log messages on stderr.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is written to stderr.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Log {
    /// The least important messages that are still written. The variable `LOG_LEVEL` sets it too. Where nothing sets it,
    /// `corbie ask` and `corbie providers` write warnings alone.
    pub level: Level,
    /// How a message is written. The variable `LOG_FORMAT` sets it too.
    pub format: Format,
}

/// How a message is written: always one line, in which nothing could control a terminal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// For people: time, level, request, message and fields.
    #[default]
    Text,
    /// For programs: an object with `time`, `level`, `message`, `fields` and `spans`, where the request is.
    Json,
}

/// How important a message is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Everything, for finding a fault.
    Debug,
    /// What the server is doing: where it listens, what it refuses, when it stops. Requests are told at `debug`.
    #[default]
    Info,
    /// What went wrong but could be coped with.
    Warn,
    /// What somebody has to act on.
    Error,
}

impl fmt::Display for Level {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
        })
    }
}

//! `log`: log messages on stderr.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Log messages on stderr.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Log {
    /// Minimum log level. The variable `LOG_LEVEL` also sets it. If it is unset, `corbie ask` and `corbie providers`
    /// log only warnings and errors.
    pub level: LogLevelSetting,
    /// Log format. The variable `LOG_FORMAT` also sets it.
    pub format: LogFormat,
}

/// Log format. A message is always one line without terminal control characters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// Human-readable: time, level, request, message and fields.
    #[default]
    Text,
    /// JSON: an object with `time`, `level`, `message`, `fields` and `spans`, which contain the request.
    Json,
}

/// Log level.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LogLevelSetting {
    /// Details for debugging, including each request.
    Debug,
    /// Operation of the server: listeners, refused requests, shutdown. Requests are logged at `debug`.
    #[default]
    Info,
    /// Problems that corbie recovered from.
    Warn,
    /// Problems that require action.
    Error,
}

impl fmt::Display for LogLevelSetting {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
        })
    }
}

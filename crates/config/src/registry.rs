//! `registry`: tool list.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::duration::{ConfigDuration, as_seconds};

/// Tool list.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Registry {
    /// How long a client may cache the tool list and cacheable tool results, in seconds; 0 disables caching.
    #[serde(serialize_with = "as_seconds")]
    pub cache_ttl: ConfigDuration,
}

impl Default for Registry {
    fn default() -> Self {
        Self { cache_ttl: ConfigDuration::seconds(300) }
    }
}

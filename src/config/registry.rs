//! `registry`: tool list.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::duration::{Period, as_seconds};

/// The list of tools.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Registry {
    /// How long a client may keep the list of tools and the answers of tools that allow it, in seconds;
    /// 0 turns keeping off.
    #[serde(serialize_with = "as_seconds")]
    pub cache_ttl: Period,
}

impl Default for Registry {
    fn default() -> Self {
        Self { cache_ttl: Period::seconds(300) }
    }
}

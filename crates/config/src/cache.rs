//! `router.cache`: response cache.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::duration::Timeout;
use super::size::ByteSize;

/// Response cache for the OpenAI-compatible API, separate for each caller. Nothing is cached unless enabled here.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Cache {
    /// Return the cached response to an identical request, byte for byte.
    pub exact: bool,
    /// Return the cached response to a question with the same meaning in the same conversation.
    pub semantic: bool,
    /// Minimum similarity of two questions, from 0.5 to 1. Independently of it, their numbers, the order of shared
    /// words and the number of negations must be equal.
    #[schemars(range(min = 0.5, max = 1.0))]
    pub threshold: f64,
    /// How long a response is cached.
    pub ttl: Timeout,
    /// Maximum memory for cached responses. The least recently used are evicted.
    pub max_bytes: ByteSize,
}

impl Default for Cache {
    fn default() -> Self {
        Self {
            exact: false,
            semantic: false,
            threshold: 0.95,
            ttl: Timeout::seconds(3600),
            max_bytes: ByteSize::kibibytes(64 * 1024),
        }
    }
}

impl Cache {
    pub(super) fn is_absent(&self) -> bool {
        *self == Self::default()
    }
}

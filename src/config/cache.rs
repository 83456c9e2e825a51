//! `router.cache`: response cache.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::duration::Timeout;
use super::size::ByteSize;

/// Answers of OpenAI's API that are given again to the caller who got them. Nothing is kept unless it is asked for here.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Cache {
    /// Answer a request that has come before, byte by byte, with the same answer.
    pub exact: bool,
    /// Answer a question that means the same as one before, after the same conversation, with the same answer.
    pub semantic: bool,
    /// How alike two questions must be, from 0.5 to 1. Their numbers, the order of the words that both have, and how often
    /// they say no must be the same in any case.
    #[schemars(range(min = 0.5, max = 1.0))]
    pub threshold: f64,
    /// How long an answer is given again.
    pub keep: Timeout,
    /// How much room the answers have; the ones least asked for make way.
    pub max_bytes: ByteSize,
}

impl Default for Cache {
    fn default() -> Self {
        Self {
            exact: false,
            semantic: false,
            threshold: 0.95,
            keep: Timeout::seconds(3600),
            max_bytes: ByteSize::kibibytes(64 * 1024),
        }
    }
}

impl Cache {
    pub(super) fn is_absent(&self) -> bool {
        *self == Self::default()
    }
}

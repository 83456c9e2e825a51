//! Reasoning effort.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Reasoning effort.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Effort {
    Minimal,
    Low,
    Medium,
    High,
    Max,
}

impl Effort {
    /// Approximate reasoning token budget, for models that take a number. Every such model accepts these values.
    pub fn tokens(self) -> u32 {
        match self {
            Effort::Minimal | Effort::Low => 1024,
            Effort::Medium => 8192,
            Effort::High => 16_384,
            Effort::Max => 24_576,
        }
    }

    /// Approximate effort for a reasoning token budget, for models that take an effort level.
    pub fn of_tokens(tokens: u32) -> Effort {
        match tokens {
            0..=1024 => Effort::Low,
            1025..=8192 => Effort::Medium,
            _ => Effort::High,
        }
    }
}

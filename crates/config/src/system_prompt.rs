//! `system_prompt`: what happens to the system prompt of a category.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Use of the category's system prompt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SystemPrompt {
    /// Inserted before the caller's system prompt.
    #[default]
    Before,
    /// Used if the caller sends no system prompt.
    IfNone,
    /// Not used.
    Off,
}

//! What a model can do, and which parameters it refuses.

mod parameter;

use std::collections::BTreeMap;

use serde::Serialize;

pub use parameter::Parameter;

/// What a model can do, as far as it is known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Capabilities {
    /// It sees pictures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub images: Option<bool>,
    /// It asks for tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<bool>,
    /// It can think before it answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<bool>,
    /// It can be held to a JSON Schema.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub structured_output: Option<bool>,
    /// Whether each parameter is refused. One that is not here is not known, and is sent.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub refuses: BTreeMap<Parameter, bool>,
}

impl Capabilities {
    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        *self == Capabilities::default()
    }
}

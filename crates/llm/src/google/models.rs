//! Google model list.

use std::collections::BTreeMap;

use serde_json::Value;

use super::fields::{Object, field, objects, text};
use crate::capabilities::{Capabilities, Parameter};
use crate::{Error, ModelInfo};

/// The chat models of a page, and the token of the next page.
pub(super) fn page(body: &Object) -> Result<(Vec<ModelInfo>, Option<String>), Error> {
    // An empty page omits the list, so only a wrong type is an error.
    if !matches!(field(body, "models"), None | Some(Value::Array(_))) {
        return Err(Error::InvalidResponse("`models` is not a list"));
    }
    let models = objects(body, "models").into_iter().filter(|model| supports_chat(model)).filter_map(model).collect();
    let next = text(body, "nextPageToken").filter(|token| !token.is_empty());
    Ok((models, next.map(str::to_owned)))
}

/// Whether the model supports chat. The list also contains embedding, image and video models.
fn supports_chat(model: &Object) -> bool {
    let methods = field(model, "supportedGenerationMethods").and_then(Value::as_array);
    methods.is_none_or(|methods| methods.iter().any(|method| method == "generateContent"))
}

fn model(model: &Object) -> Option<ModelInfo> {
    let name = text(model, "name")?;
    let id = Some(name.strip_prefix("models/").unwrap_or(name)).filter(|id| !id.is_empty())?;
    let thinks = field(model, "thinking").and_then(Value::as_bool);
    Some(ModelInfo {
        id: id.to_owned(),
        name: text(model, "displayName").map(str::to_owned),
        context: field(model, "inputTokenLimit").and_then(Value::as_u64),
        output: field(model, "outputTokenLimit").and_then(Value::as_u64),
        capabilities: Capabilities {
            reasoning: thinks,
            // A model without reasoning rejects every reasoning parameter.
            unsupported_parameters: thinks
                .map(|thinks| (Parameter::Reasoning, !thinks))
                .into_iter()
                .collect::<BTreeMap<_, _>>(),
            ..Capabilities::default()
        },
    })
}

//! Anthropic model list, with pagination.

use std::collections::BTreeMap;

use serde_json::Value;
use url::Url;

use crate::capabilities::{Capabilities, Parameter};
use crate::{Error, ModelInfo};

/// Maximum page size of the API.
const PAGE_SIZE: &str = "1000";

/// Maximum length of a page token. A token is a model ID; a longer one is invalid and would not fit into a URL.
const MAX_PAGE_TOKEN_LEN: usize = 512;

pub(super) fn page(mut url: Url, token: Option<&str>) -> Url {
    url.query_pairs_mut().append_pair("limit", PAGE_SIZE).extend_pairs(token.map(|token| ("after_id", token)));
    url
}

pub(super) fn list(body: &[u8]) -> Result<(Vec<ModelInfo>, Option<String>), Error> {
    let body: Value = serde_json::from_slice(body).map_err(|_| Error::InvalidResponse("response is not JSON"))?;
    let data =
        body.get("data").and_then(Value::as_array).ok_or(Error::InvalidResponse("response has no list of models"))?;
    let more = body.get("has_more").and_then(Value::as_bool).unwrap_or(false);
    let next =
        body.get("last_id").and_then(Value::as_str).filter(|id| more && (1..=MAX_PAGE_TOKEN_LEN).contains(&id.len()));
    if more && next.is_none() {
        return Err(Error::InvalidResponse("next page of models has no cursor"));
    }
    // Retired models remain in the list, and every request to them fails.
    let answers = data.iter().filter(|model| model["lifecycle"] != "retired");
    Ok((answers.filter_map(model).collect(), next.map(str::to_owned)))
}

fn model(model: &Value) -> Option<ModelInfo> {
    let text = |member: &str| model.get(member).and_then(Value::as_str).map(str::to_owned);
    Some(ModelInfo {
        id: text("id").filter(|id| !id.is_empty())?,
        name: text("display_name"),
        context: model.get("max_input_tokens").and_then(Value::as_u64),
        output: model.get("max_tokens").and_then(Value::as_u64),
        capabilities: capabilities(&model["capabilities"]),
    })
}

fn capabilities(told: &Value) -> Capabilities {
    let supported = |capability: &Value| capability.get("supported").and_then(Value::as_bool);
    let thinking = |kind: &str| supported(&told["thinking"]["types"][kind]);
    let (thinks, takes_effort) = (supported(&told["thinking"]), supported(&told["effort"]));
    let takes = [
        (Parameter::ReasoningAdaptive, thinking("adaptive")),
        (Parameter::ReasoningBudget, thinking("enabled")),
        (Parameter::ReasoningOff, thinking("disabled")),
        (Parameter::ReasoningBetweenTools, thinking("between_tools")),
        (Parameter::ReasoningEffort, takes_effort),
        (Parameter::ReasoningMax, supported(&told["effort"]["max"])),
        // Effort also shortens the answers of a model without reasoning.
        (Parameter::Reasoning, thinks.zip(takes_effort).map(|(thinks, takes_effort)| thinks || takes_effort)),
    ];
    let refuses = takes.into_iter().filter_map(|(parameter, taken)| Some((parameter, !taken?)));
    Capabilities {
        images: supported(&told["image_input"]),
        // The API reports only the server tools that Anthropic runs.
        tools: None,
        reasoning: thinks,
        structured_output: supported(&told["structured_outputs"]),
        unsupported_parameters: refuses.collect::<BTreeMap<_, _>>(),
    }
}

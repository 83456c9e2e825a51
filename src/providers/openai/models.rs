//! The models a server has.

use serde_json::Value;

use super::{content, failure};
use crate::providers::{Error, ModelInfo};

pub(super) fn read(body: &[u8]) -> Result<Vec<ModelInfo>, Error> {
    let unreadable = Error::Unreadable("it is no list of models");
    let body: Value = serde_json::from_slice(body).map_err(|_| unreadable.clone())?;
    if let Some(error) = body.as_object().and_then(failure::inside) {
        return Err(error);
    }
    // Together answers with the list alone.
    match body.get("data").unwrap_or(&body) {
        Value::Array(models) => Ok(models.iter().filter_map(model).collect()),
        // Ollama, while it has no models.
        Value::Null if body.is_object() => Ok(Vec::new()),
        _ => Err(unreadable),
    }
}

fn model(model: &Value) -> Option<ModelInfo> {
    let number = |names: &[&str]| names.iter().find_map(|name| model[name].as_u64()).filter(|number| *number > 0);
    Some(ModelInfo {
        id: content::text(&model["id"])?.to_owned(),
        name: content::text(&model["name"]).map(str::to_owned),
        // OpenAI tells neither limit; OpenRouter, Groq, vLLM and Mistral each have their word.
        context: number(&["context_length", "context_window", "max_model_len", "max_context_length"])
            // llama.cpp knows what the model was trained for.
            .or_else(|| model["meta"]["n_ctx_train"].as_u64()),
        output: number(&["max_completion_tokens"]).or_else(|| model["top_provider"]["max_completion_tokens"].as_u64()),
    })
}

//! OpenAI model list.

use serde_json::Value;

use super::{content, error};
use crate::{Capabilities, Error, ModelInfo};

pub(super) fn read(body: &[u8]) -> Result<Vec<ModelInfo>, Error> {
    let unreadable = Error::InvalidResponse("response is not a list of models");
    let body: Value = serde_json::from_slice(body).map_err(|_| unreadable.clone())?;
    if let Some(error) = body.as_object().and_then(error::from_body) {
        return Err(error);
    }
    // Together returns the bare list.
    match body.get("data").unwrap_or(&body) {
        Value::Array(models) => Ok(models.iter().filter_map(model).collect()),
        // Ollama returns null while it has no models.
        Value::Null if body.is_object() => Ok(Vec::new()),
        _ => Err(unreadable),
    }
}

fn model(model: &Value) -> Option<ModelInfo> {
    let number = |names: &[&str]| names.iter().find_map(|name| model[name].as_u64()).filter(|number| *number > 0);
    Some(ModelInfo {
        id: content::text(&model["id"])?.to_owned(),
        name: content::text(&model["name"]).map(str::to_owned),
        // OpenAI reports neither limit; OpenRouter, Groq, vLLM and Mistral each use a different name. LM Studio reports
        // the allocated part of a model's context window.
        context: number(&[
            "loaded_context_length",
            "context_length",
            "context_window",
            "max_model_len",
            "max_context_length",
        ])
        // llama.cpp reports the allocated context and the one the model was trained with.
        .or_else(|| ["n_ctx", "n_ctx_train"].iter().find_map(|name| model["meta"][name].as_u64())),
        output: number(&["max_completion_tokens"]).or_else(|| model["top_provider"]["max_completion_tokens"].as_u64()),
        capabilities: capabilities(model),
    })
}

/// OpenAI reports no capabilities; some compatible servers do, each in a different format.
fn capabilities(model: &Value) -> Capabilities {
    // OpenRouter's list is exhaustive, so a missing entry means unsupported.
    let listed = |list: &Value, word: &str| list.as_array().map(|words| words.iter().any(|listed| listed == word));
    let parameter = |name: &str| listed(&model["supported_parameters"], name);
    // Mistral reports booleans. LM Studio, Ollama and llama.cpp list only some capabilities: a missing entry means
    // unknown.
    let capability = |names: &[&str]| {
        let told = &model["capabilities"];
        let yes_or_no = || names.iter().find_map(|name| told[name].as_bool());
        let named = || names.iter().any(|name| listed(told, name) == Some(true)).then_some(true);
        yes_or_no().or_else(named)
    };
    Capabilities {
        images: listed(&model["architecture"]["input_modalities"], "image")
            .or_else(|| capability(&["vision", "multimodal"]))
            .or_else(|| (model["type"] == "vlm").then_some(true)),
        tools: parameter("tools").or_else(|| capability(&["function_calling", "tool_use", "tools"])),
        reasoning: parameter("reasoning").or_else(|| capability(&["reasoning", "thinking"])),
        structured_output: parameter("structured_outputs"),
        // Servers that list parameters also ignore parameters that a model rejects.
        ..Capabilities::default()
    }
}

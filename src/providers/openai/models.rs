//! The models a server has.

use serde_json::Value;

use super::{content, failure};
use crate::providers::{Capabilities, Error, ModelInfo};

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
        // OpenAI tells neither limit; OpenRouter, Groq, vLLM and Mistral each have their word. LM Studio says how much
        // of a model's window it has made room for.
        context: number(&[
            "loaded_context_length",
            "context_length",
            "context_window",
            "max_model_len",
            "max_context_length",
        ])
        // llama.cpp knows what it has made room for, and what the model was trained for.
        .or_else(|| ["n_ctx", "n_ctx_train"].iter().find_map(|name| model["meta"][name].as_u64())),
        output: number(&["max_completion_tokens"]).or_else(|| model["top_provider"]["max_completion_tokens"].as_u64()),
        capabilities: capabilities(model),
    })
}

/// OpenAI says nothing of what its models can do; some compatible servers do, each in its own way.
fn capabilities(model: &Value) -> Capabilities {
    // OpenRouter lists everything, so that what is not listed is not there.
    let listed = |list: &Value, word: &str| list.as_array().map(|words| words.iter().any(|listed| listed == word));
    let parameter = |name: &str| listed(&model["supported_parameters"], name);
    // Mistral writes yes and no. LM Studio, Ollama and llama.cpp name some of what there is: a missing word says nothing.
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
        // Whoever lists parameters also passes over those that a model refuses.
        ..Capabilities::default()
    }
}
